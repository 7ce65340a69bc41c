package live

import (
	"encoding/json"
	"fmt"
	"io"

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
	Event    string          `json:"event"`
	Elapsed  float64         `json:"elapsed_s"`
	Stopping bool            `json:"stopping"`
	Models   []modelProgress `json:"models"`
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
	Waits           string                   `json:"waits"`
	Closed          string                   `json:"closed"`
	Left            float64                  `json:"left_s"`
}

// Show implements [View].
func (j *JSON) Show(s Snapshot) {
	for _, note := range s.Notes[j.noted:] {
		j.write(map[string]string{"event": "note", "text": note})
	}
	j.noted = len(s.Notes)
	p := progress{
		Event: "progress", Elapsed: s.Elapsed.Seconds(), Stopping: s.Stopping,
		Models: []modelProgress{},
	}
	for _, m := range s.Models {
		p.Models = append(p.Models, modelProgress{
			Model: m.Name, Planned: m.Planned, Done: m.Done, Pending: m.Pending(),
			Parked: m.Parked, Skipped: m.Skipped, InFlight: m.InFlight,
			Agents: m.Agents, Requests: m.Requests, Faults: m.Faults, TokensPerMinute: m.TokensPerMinute,
			Waits: m.Waits, Closed: m.Closed, Left: m.Left.Seconds(),
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
