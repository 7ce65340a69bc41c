// Package query finds the attempts that a user names in a store, and collects reports,
// comparisons, gates, transcripts and exports from it.
//
// It owns the ways to name attempts: by experiment, run, model, variant, and snapshot. Conditions
// on fields are [export.Where]. An experiment owns the trials that it plans, whichever experiment's
// run carried them out.
//
// It fetches attempts, runs, imports and transcripts, asks package job for the plan of an
// experiment, and hands it all to package report, which computes the figures. It also finds the
// tasks of stored attempts, in the libraries of their runs. Exports are files in the formats of
// packages export, atif, evallog, publish and legacy, with a manifest that the package also finds and checks.
package query

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/store"
)

// An Experiment is a stored experiment that was planned again.
type Experiment struct {
	Stored store.Experiment
	Design report.Design
	// Trials yields the planned trials that satisfy Where.
	Trials iter.Seq[assay.Trial]
	// Where selects the attempts that count.
	Where export.Where
	// Beside has the information from the plan, and its Facts, such as the seed and the limits.
	report.Beside
	// Program is the version of the program that makes the report.
	Program string
	// Command starts the program, and Store is the path of the store, for commands that a reader
	// can copy. Empty means assay and assay.db.
	Command, Store string
	// Reveal shows the texts of private libraries.
	Reveal bool
	// Undated leaves out when the report was made, so that equal results have equal reports.
	Undated bool
	// Snapshot is the state of the store to read, the present one if it is empty.
	Snapshot string
}

// Only returns the experiment with those of its trials that satisfy conditions on fields of trials.
func (x *Experiment) Only(where export.Where) *Experiment {
	some := *x
	some.Where = where
	some.Trials = func(yield func(assay.Trial) bool) {
		for t := range x.Trials {
			if where.HasTrial(&t) && !yield(t) {
				return
			}
		}
	}
	return &some
}

// A Report has the figures of an experiment. Its JSON is the JSON of the analysis.
type Report struct {
	*report.Analysis
	// Headline has the lines that a person reads first.
	Headline []document.Point `json:"headline"`

	db         *store.DB
	experiment *Experiment
	snapshot   string // the state of the store that was read; empty if the store is damaged
}

// Analyze computes the figures of an experiment.
func (x *Experiment) Analyze(ctx context.Context, db *store.DB) (*Report, error) {
	left, err := db.Left(ctx) // before the attempts, so that each is in one of both
	if err != nil {
		return nil, err
	}
	snapshot := x.Snapshot
	if snapshot == "" {
		if snapshot, err = db.Snapshot(ctx); err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, err
		}
	}
	runs, err := db.Runs(ctx, x.Stored.Name)
	if err != nil {
		return nil, err
	}

	b := x.Beside
	b.Unread, b.UnreadRows = db.Skipped, db.SkippedRows
	if err := readSpeeds(runs, &b); err != nil {
		return nil, err
	}
	t, err := readTimes(db, runs, left)
	if err != nil {
		return nil, err
	}
	b.Killed = len(t.killed)
	x.addBegun(&b, left)
	if b.Programs, err = x.programs(ctx, db); err != nil {
		return nil, err
	}
	if b.Others, err = Others(ctx, db); err != nil {
		return nil, err
	}
	b.Facts = x.facts(runs, snapshot)

	filter := store.Filter{Snapshot: snapshot, All: true}
	attempts := db.Verdicts(ctx, filter)
	if len(x.Where.Conditions()) > 0 { // verdicts lack trials
		attempts = Filter(db.Attempts(ctx, filter), x.Where.Has)
	}
	v, err := readVeil(ctx, db, x.Reveal)
	if err != nil {
		return nil, err
	}
	attempts = t.note(attempts)
	a, err := x.Design.Analyze(x.Stored.Name, x.Trials, v.attempts(x.withBegun(attempts, left)), b)
	if err != nil {
		return nil, err
	}
	a.Seconds += t.seconds()
	a.AtLeast = len(t.killed) > 0
	a.Where, a.Show = x.Where.Conditions(), x.commandLine("show")
	if a.Done == 0 {
		filter := store.Filter{Snapshot: snapshot, OnlyFaults: true}
		if a.Faulted, err = x.faulted(v.attempts(db.Attempts(ctx, filter)), runs); err != nil {
			return nil, err
		}
	}
	return &Report{
		Analysis: a, Headline: sections.Headline(a),
		db: db, experiment: x, snapshot: snapshot,
	}, nil
}

// Snapshot names the state of the store that was read. It is empty if the store is damaged.
func (r *Report) Snapshot() string { return r.snapshot }

// Attempts yields the attempts that the report counts, without the texts of private libraries. Those that
// count for their cost only are left out.
func (r *Report) Attempts(ctx context.Context) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		v, err := readVeil(ctx, r.db, r.experiment.Reveal)
		if err != nil {
			yield(assay.Attempt{}, err)
			return
		}
		all := r.db.Attempts(ctx, store.Filter{Snapshot: r.snapshot})
		for a, err := range v.attempts(Filter(all, r.experiment.counts())) {
			if !yield(a, err) {
				return
			}
		}
	}
}

// counts returns a function that reports whether an attempt counts.
func (x *Experiment) counts() func(*assay.Attempt) bool {
	planned := make(map[assay.TrialID]bool)
	for t := range x.Trials {
		planned[t.ID] = true
	}
	return func(a *assay.Attempt) bool { return planned[a.ID] && x.Where.Has(a) }
}

// faulted counts the attempts that count and ended in faults.
func (x *Experiment) faulted(
	faults iter.Seq2[assay.Attempt, error], runs []store.Run,
) (*report.Faulted, error) {
	var last assay.RunID
	if len(runs) > 0 {
		last = runs[len(runs)-1].ID
	}
	var tally report.FaultTally
	for a, err := range Filter(faults, x.counts()) {
		if err != nil {
			return nil, err
		}
		tally.Add(&a, last)
	}
	sum := tally.Sum()
	return &sum, nil
}

// maxLanes is the number of lanes that a report shows, from the latest runs.
const maxLanes = 60

// CommandLine returns a command for the store of the report.
func (r *Report) CommandLine(verb string) string { return r.experiment.commandLine(verb) }

// Lasting returns the report with commands for readers who have the program on their path, as those
// of a file have.
func (r *Report) Lasting() *Report {
	lasting, x, a := *r, *r.experiment, *r.Analysis
	x.Command = ""
	a.Show = x.commandLine("show")
	lasting.experiment, lasting.Analysis, lasting.Headline = &x, &a, sections.Headline(&a)
	return &lasting
}

func (x *Experiment) commandLine(verb string) string {
	return CommandLine(x.Command, verb, x.Store)
}

// CommandLine returns a command for a store. The program is assay if its name is empty.
func CommandLine(program, verb, store string) string {
	return cmp.Or(program, "assay") + " " + verb + assay.StorePath(store).Option()
}

// readSpeeds reads from the summaries of runs how busy their lanes were, how fast those with an outcome
// were, and which budgets ended the latest one.
func readSpeeds(runs []store.Run, b *report.Beside) error {
	b.Runs = len(runs)
	for _, r := range runs {
		if len(r.Summary) == 0 {
			b.Exhausted = nil // it works, or was killed
			continue
		}
		var summary struct {
			Lanes   []report.Lane `json:"lanes"`
			Settled int           `json:"settled"`
			Range   struct {
				Unknown string `json:"unknown"`
			} `json:"forecast_range"`
			report.Speed
			Exhausted []job.Exhausted `json:"exhausted_budgets"`
		}
		if err := json.Unmarshal(r.Summary, &summary); err != nil {
			return fmt.Errorf("summary of run %s: %w", r.ID, err)
		}
		for _, l := range summary.Lanes {
			l.Run = r.ID
			b.Lanes = append(b.Lanes, l)
		}
		if summary.Range.Unknown != "" {
			summary.ForecastS = 0
		}
		b.Seconds += summary.WallS
		if summary.Settled > 0 {
			b.Speed = &summary.Speed
		}
		b.Exhausted = nil
		for _, e := range summary.Exhausted {
			b.Exhausted = append(b.Exhausted, e.String())
		}
	}
	b.Lanes = b.Lanes[max(0, len(b.Lanes)-maxLanes):]
	return nil
}

// facts returns the facts that are needed to reproduce the experiment.
func (x *Experiment) facts(runs []store.Run, snapshot string) []report.Fact {
	text := portable(x.Stored.Spec)
	spec := sha256.Sum256([]byte(text))
	facts := []report.Fact{
		{Name: "experiment", Value: x.Stored.Name},
		{Name: "specification", Value: text},
		{Name: "its SHA-256", Value: hex.EncodeToString(spec[:])},
		{Name: "snapshot", Value: snapshot},
	}
	facts = append(facts, x.Facts...)

	programs := make(map[string]bool)
	for _, r := range runs {
		programs[r.Program] = true
	}
	facts = append(facts,
		report.Fact{Name: "programs", Value: strings.Join(slices.Sorted(maps.Keys(programs)), ", ")},
		report.Fact{Name: "runs", Value: fmt.Sprint(len(runs))})
	if len(runs) > 0 {
		started := runs[0].StartedAt.Format(time.RFC3339)
		ended := lastEnd(runs).Format(time.RFC3339)
		facts = append(facts, report.Fact{Name: "ran", Value: started + " to " + ended})
	}
	facts = append(facts, report.Fact{Name: "Assay", Value: x.Program})
	if !x.Undated {
		facts = append(facts, report.Fact{Name: "reported", Value: time.Now().UTC().Format(time.RFC3339)})
	}
	return facts
}

// portable returns a specification with the names of its library and providers file instead of their places on
// this machine.
func portable(spec json.RawMessage) string {
	var paths struct{ Library, Providers string }
	if json.Unmarshal(spec, &paths) != nil {
		return string(spec)
	}
	text := string(spec)
	for field, path := range map[string]string{"library": paths.Library, "providers": paths.Providers} {
		if !filepath.IsAbs(path) {
			continue
		}
		was, _ := json.Marshal(path) // texts always can be
		is, _ := json.Marshal(filepath.Base(path))
		text = strings.Replace(text, fmt.Sprintf("%q:%s", field, was), fmt.Sprintf("%q:%s", field, is), 1)
	}
	return text
}

// lastEnd returns the end of the run that ended last, or the start of the latest run if that is
// later.
func lastEnd(runs []store.Run) time.Time {
	last := runs[len(runs)-1].StartedAt
	for _, r := range runs {
		if r.FinishedAt.After(last) {
			last = r.FinishedAt
		}
	}
	return last
}
