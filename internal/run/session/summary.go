package session

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/store"
)

// A Summary is the result of a run. Its JSON is the done event of `assay run --display json`,
// and the store keeps it with the run.
type Summary struct {
	Event      string      `json:"event"` // "done"
	Experiment string      `json:"experiment"`
	Run        assay.RunID `json:"run"` // "" if no trial was pending
	Store      string      `json:"store"`

	job.Trials // after the run

	// Settled and Faulted count attempts of this run.
	Settled int `json:"settled"`
	Faulted int `json:"faults"`
	// Unsaved counts the attempts that could not be saved. Their trials stay pending.
	Unsaved int `json:"unsaved,omitempty"`
	Usage
	// Resumed counts the attempts of earlier runs that this one went on with, and Begun those that the
	// next run goes on with.
	Resumed Resumed   `json:"resumed,omitzero"`
	Begun   job.Begun `json:"begun,omitzero"`
	Wall    float64   `json:"wall_s"`

	// Stopped is true if a signal stopped the run before its trials were done.
	Stopped bool `json:"stopped"`
	// Cancelled counts the trials that the user cancelled, before they began or in flight.
	Cancelled int `json:"cancelled,omitempty"`
	// NotRun counts the trials that did not start, by the reason.
	NotRun       map[string]int `json:"not_run"`
	StoppedEarly []job.Stop     `json:"stopped_early"`
	// Exhausted lists the budgets that stopped trials.
	Exhausted []job.Exhausted `json:"exhausted_budgets,omitempty"`
	// Closed has the models whose lanes are all closed, and the closed lanes of other models, with
	// the reason. A lane whose key or deployment was refused until the end counts as closed.
	Closed map[string]string `json:"closed"`
	// ParkedFor counts the parked trials by the reason, without those of GivenUp.
	ParkedFor map[string]int `json:"parked_for,omitempty"`
	// GivenUp names the agents in Closed whose programs do not work.
	GivenUp []string `json:"given_up,omitempty"`
	// OtherSettings counts the attempts in which an endpoint reported another setting than was
	// asked, by model and setting.
	OtherSettings map[string]int `json:"other_settings,omitempty"`
	// BrokenScripts lists the users' functions that broke, with the place and the reason. They
	// break again unless they are changed.
	BrokenScripts []string `json:"broken_scripts,omitempty"`

	// Stillness reports that the machine was suspended, and how this affected attempts.
	Stillness string `json:"stillness,omitempty"`

	Lanes []LaneSpeed `json:"lanes"`
	// Least is the shortest time in seconds in which the requests could have been made.
	Least        float64 `json:"least_s"`
	ForecastWall float64 `json:"forecast_s"`
	// ForecastRange has the range of that if the endpoint was unknown.
	ForecastRange job.Range           `json:"forecast_range,omitzero"`
	Forecast      []job.ModelForecast `json:"forecast"`
	Speeds        []ModelSpeed        `json:"speeds"`
	Error         string              `json:"error,omitempty"`
}

// A LaneSpeed reports how busy a lane was.
type LaneSpeed struct {
	Model string `json:"model"`
	Lane  string `json:"lane"`
	// Occupancy is the share of the lane's tightest limit that was used while trials waited to start.
	Occupancy float64 `json:"occupancy"`
	Used      float64 `json:"used_s"`
	// Lost is the time in which requests were in flight that got no reply, such as by a timeout.
	Lost      float64            `json:"lost_s"`
	Available float64            `json:"available_s"`
	Waited    map[string]float64 `json:"waited_s"`
	Requests  int                `json:"requests"`
	Limits    lane.Limits        `json:"limits"`
	// Found lists the limits that the run found out; see [limit.Limiter.Words].
	Found  string `json:"found,omitempty"`
	Closed string `json:"closed,omitempty"` // the reason
}

// A ModelSpeed reports the occupancy of all lanes of a model, from 0 to 1, and their bottleneck.
type ModelSpeed struct {
	Model string  `json:"model"`
	Used  float64 `json:"used"`
	// Lost is the share of the time with a request in flight that produced no reply.
	Lost       float64 `json:"lost"`
	Bottleneck string  `json:"bottleneck,omitempty"` // "" if no limit was reached
	Waited     float64 `json:"waited_s"`
}

// SummaryOf decodes the stored summary of a run. It is empty if the run has not ended.
func SummaryOf(r store.Run) (s Summary, err error) {
	if len(r.Summary) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(r.Summary, &s); err != nil {
		return s, fmt.Errorf("summary of run %s: %w", r.ID, err)
	}
	return s, nil
}

// A storedSummary is too long for the done event.
type storedSummary struct {
	*Summary
	runStrips
}

type runStrips struct {
	Strips []LaneStrip `json:"strips,omitempty"`
}

// StripsOf returns the strips of the lanes in a run that has ended.
func StripsOf(r store.Run) ([]LaneStrip, error) {
	var s runStrips
	if len(r.Summary) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Summary, &s); err != nil {
		return nil, fmt.Errorf("summary of run %s: %w", r.ID, err)
	}
	return s.Strips, nil
}

// finish ends the run in the store and in the log, and returns its summary.
func (s *Session) finish(ctx context.Context, ran engine.Summary, err error) (*Summary, error) {
	sum := s.summarize(ran)
	if err == nil && s.id != "" {
		err = s.end(ctx, sum)
	}
	if err != nil {
		sum.Error = err.Error()
	}
	s.observed(func(o Observer) { o.End(sum) })
	s.closeLog(sum)
	return sum, err
}

// end stores that the run has ended.
func (s *Session) end(ctx context.Context, sum *Summary) error {
	b, err := json.Marshal(storedSummary{sum, runStrips{s.strips.read()}})
	if err != nil {
		return fmt.Errorf("encode summary: %w", err)
	}
	if left := s.journal.Unfinished(false); len(left) > 0 {
		if err := s.db.MarkJournal(ctx, s.id, len(left)); err != nil {
			return err
		}
	}
	return s.db.EndRun(ctx, s.id, b)
}

func (s *Session) summarize(ran engine.Summary) *Summary {
	closed := make(map[string]string, len(ran.Closed))
	for model, err := range ran.Closed {
		closed[model] = err.Error()
	}
	var givenUp []string
	for _, model := range s.Experiment.Models {
		if err := s.starters.neverStarted(model); err != nil {
			closed[model] = cmp.Or(closed[model], err.Error())
			givenUp = append(givenUp, model)
		}
	}
	// Also of a model whose trials had all begun when its last lane was closed.
	for _, model := range s.Experiment.Models {
		if err := s.unaskable(model); err != nil && closed[model] == "" && s.tally.Standing(model).Pending > 0 {
			closed[model] = err.Error()
		}
	}
	lanes := s.laneSpeeds()
	for _, l := range lanes {
		if l.Closed != "" && closed[l.Model] == "" {
			closed[l.Lane] = l.Closed
		}
	}
	closeModels(s.tally, s.Experiment.Models, closed)
	_, trials := s.unsettled()

	// The run has ended, so the meter does not change any more.
	wall, inRun := time.Since(s.started), s.inRun()
	sum := &Summary{
		Event: "done", Experiment: s.Experiment.Name, Run: s.id, Store: s.options.Store,
		Trials: trials, Settled: inRun.Settled(), Faulted: inRun.Faulted(),
		Unsaved: int(s.unsaved.Load()), Usage: s.meter.usage(),
		Resumed: s.resumed.Resumed, Begun: job.BegunBy(s.begun(false)...), Wall: wall.Seconds(),
		Stopped: ran.Stopped, Cancelled: ran.Cancelled, NotRun: ran.Skipped,
		StoppedEarly: s.tally.Stops(), Closed: closed,
		Exhausted: s.stopper.Exhausted(),
		GivenUp:   givenUp, ParkedFor: s.tally.ParkedFor(givenUp...),
		OtherSettings: inRun.OtherSettings, BrokenScripts: s.brokenScripts(),
		Stillness: s.still.String(),
		Lanes:     lanes, Least: s.least().Seconds(),
		ForecastWall: s.outlook.forecast.Wall, Forecast: s.outlook.forecast.Models,
		ForecastRange: s.outlook.forecast.Range,
		Speeds:        s.modelSpeeds(wall),
	}
	return sum
}

// inRun returns what the attempts of the run have come to.
func (s *Session) inRun() *job.RunCount {
	sum := job.NewRunCount()
	for _, m := range s.Experiment.Models {
		sum.Add(s.tally.InRun(m))
	}
	return sum
}

func (s *Session) brokenScripts() []string {
	broken := make(map[string]bool)
	for _, p := range s.tally.Parked() {
		for reason := range p.Reasons {
			if s.scripted(p.Kind) {
				broken[withoutKind(reason, p.Kind)] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(broken))
}

// withoutKind returns the words of a fault, whose kind is named elsewhere.
func withoutKind(reason string, kind assay.FaultKind) string {
	return strings.TrimPrefix(reason, string(kind)+": ")
}

func (s *Session) laneSpeeds() []LaneSpeed {
	all := []LaneSpeed{}
	for _, r := range s.readLanes() {
		l, waited, closed := r.Ledger, make(map[string]float64, len(r.Ledger.Waited)), ""
		for reason, d := range l.Waited {
			waited[reason] = d.Seconds()
		}
		if f := cmp.Or(r.Status.Closed, r.Status.Denial); f != nil {
			closed = f.Error()
		}
		all = append(all, LaneSpeed{
			Closed: closed,
			Model:  r.Model, Lane: l.Name, Occupancy: l.Occupancy(),
			Used: l.Used.Seconds(), Available: l.Available.Seconds(), Waited: waited,
			Requests: l.Requests, Limits: l.Limits, Found: r.Status.Found,
			Lost: s.meter.lost(l.Name).Seconds(),
		})
	}
	return all
}

// modelSpeeds leaves out models whose lanes were never open.
func (s *Session) modelSpeeds(wall time.Duration) (all []ModelSpeed) {
	for _, model := range s.pools.Apart(s.Experiment.Asked()) {
		ledgers := s.pools.ByModel[model].Ledgers()
		var used, available, worked, lost time.Duration
		for _, l := range ledgers {
			used += l.Used + l.Bound
			available += l.Available
			worked += l.Worked
			lost += s.meter.lost(l.Name)
		}
		if available == 0 {
			continue
		}
		m := ModelSpeed{Model: model, Used: used.Seconds() / available.Seconds()}
		bottleneck, waited := job.Bottleneck(ledgers, wall)
		m.Bottleneck, m.Waited = bottleneck, waited.Seconds()
		if m.Lost = share(lost, worked); m.Lost > 0.5 {
			m.Bottleneck, m.Waited = "requests without a reply", 0
		}
		all = append(all, m)
	}
	return all
}

// least returns the shortest time in which this run's replies could have come: by the limits of
// the slowest model's lanes, or by the longest episode. Requests without a reply could have taken
// no time.
func (s *Session) least() time.Duration {
	least := s.meter.longest
	for _, p := range s.pools.ByModel {
		ledgers := p.Ledgers()
		for i := range ledgers {
			ledgers[i].Worked = max(0, ledgers[i].Worked-s.meter.lost(ledgers[i].Name))
		}
		least = max(least, lane.Least(ledgers))
	}
	return least
}

func share(part, of time.Duration) float64 {
	if of <= 0 {
		return 0
	}
	return min(1, part.Seconds()/of.Seconds())
}
