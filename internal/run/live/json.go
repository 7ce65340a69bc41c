package live

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/assay-eval/assay"
)

// JSON writes one object per line: {"event":"progress",…} for a snapshot and
// {"event":"note","text":…} once for each note. The field names are part of the
// contract of --display json. Times are in seconds.
type JSON struct {
	W     io.Writer
	noted int // number of notes written
}

type progress struct {
	Event    string  `json:"event"`
	Elapsed  float64 `json:"elapsed_s"`
	Stopping bool    `json:"stopping"`
	// PausedSince is missing unless the user paused all lanes.
	PausedSince time.Time       `json:"paused_since,omitzero"`
	Attention   []Attention     `json:"attention"`
	Models      []modelProgress `json:"models"`
	// Workers is missing if the run itself carries out the attempts.
	Workers []Worker `json:"workers,omitempty"`
}

type modelProgress struct {
	Model    string `json:"model"`
	Planned  int    `json:"planned"`
	Done     int    `json:"done"`
	Pending  int    `json:"pending"`
	Parked   int    `json:"parked"`
	Skipped  int    `json:"skipped"`
	InFlight int    `json:"in_flight"`
	// Agents is missing for a bare model.
	Agents          map[assay.AgentState]int `json:"agents,omitzero"`
	Requests        int                      `json:"requests"`
	Faults          map[assay.FaultKind]int  `json:"faults"`
	TokensPerMinute float64                  `json:"tokens_per_minute"`
	Lost            float64                  `json:"lost"`
	Waits           string                   `json:"waits"`
	Closed          string                   `json:"closed"`
	// Left is 0 if it is unknown. LeftLow and LeftHigh are its 90 % interval, or 0 if it is the
	// plan's forecast for an endpoint that is known.
	Left     float64 `json:"left_s"`
	LeftLow  float64 `json:"left_low_s"`
	LeftHigh float64 `json:"left_high_s"`
	// Full counts full successes. SuccessLow and SuccessHigh are the 95 % interval of their rate.
	Full        int     `json:"full_success"`
	SuccessLow  float64 `json:"success_low"`
	SuccessHigh float64 `json:"success_high"`
}

// Show implements [View].
func (j *JSON) Show(s Snapshot) {
	for _, note := range s.Notes[j.noted:] {
		j.write(map[string]string{"event": "note", "text": note})
	}
	j.noted = len(s.Notes)
	p := progress{
		Event: "progress", Elapsed: s.Elapsed.Seconds(),
		Stopping: s.Stopping, PausedSince: s.PausedSince,
		Attention: append([]Attention{}, s.Attention...),
		Models:    []modelProgress{}, Workers: s.Workers,
	}
	for _, m := range s.Models {
		p.Models = append(p.Models, modelProgress{
			Model: m.Name, Planned: m.Planned, Done: m.Done, Pending: m.Pending(),
			Parked: m.Parked, Skipped: m.Skipped, InFlight: m.InFlight,
			Agents: m.Agents, Requests: m.Requests, Faults: m.Faults,
			TokensPerMinute: m.TokensPerMinute, Lost: m.Lost, Waits: m.Waits, Closed: m.Closed,
			Left:    m.Left.Expected.Seconds(),
			LeftLow: m.Left.Low.Seconds(), LeftHigh: m.Left.High.Seconds(),
			Full: m.Full, SuccessLow: m.Success.Low, SuccessHigh: m.Success.High,
		})
	}
	j.write(p)
}

// Close implements [View].
func (j *JSON) Close(last Snapshot) { j.Show(last) }

// write ignores errors, because a run goes on even if the reader is gone.
func (j *JSON) write(object any) {
	b, err := json.Marshal(object)
	if err != nil {
		panic("live: " + err.Error())
	}
	_, _ = fmt.Fprintf(j.W, "%s\n", b)
}
