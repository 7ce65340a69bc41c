// Package audit judges what a store holds.
//
// Package store proves that rows are as they were written. This package checks their content:
// names and reliabilities must belong to the run's experiment, the requested model must have
// answered, and the transcript must still give the stored score. It also finds the trials that
// would be pending again after a deletion.
//
// It judges outcomes again by today's rules, and asks a model why trials failed. New outcomes and
// opinions are stored next to the old ones, which never change. Package classify owns the question
// to the model and the reading of its reply.
package audit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

// A Report is the result of an audit.
type Report struct {
	Store    string          `json:"store"`
	Snapshot string          `json:"snapshot"`
	Problems []store.Problem `json:"problems"`
	store.Proof
	// Rescored counts the outcomes that were judged again. Unjudged counts the others, by reason.
	Rescored int            `json:"rescored"`
	Unjudged map[string]int `json:"not_rescored"`
	// Mark is the path of the file that keeps runs from writing to a damaged store.
	Mark string `json:"-"`
	// NotMarked is the error of writing the mark, if the store is damaged.
	NotMarked error `json:"-"`
}

// Damaged reports whether the store is not as it was written.
func (r *Report) Damaged() bool {
	return slices.ContainsFunc(r.Problems, func(p store.Problem) bool { return p.Damage })
}

// Run audits the store at a path. If the store is damaged, Run leaves a mark next to it. Words are for
// the advice, and progress receives the number of checked rows and the number of all rows.
func Run(
	ctx context.Context, path string, words assay.Words, progress func(done, of int),
) (r *Report, err error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SkipDamage(func(error) {}) // the proof reports the damage itself

	const tries = 3 // a deletion during the audit makes it start again
	for try := 1; ; try++ {
		r, err = run(ctx, db, path, words, progress)
		if !errors.Is(err, store.ErrChanged) || try == tries {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	if r.NotMarked = db.MarkDamaged(r.Problems); r.NotMarked == nil {
		r.Mark = db.MarkPath()
	}
	return r, nil
}

func run(
	ctx context.Context, db *store.DB, path string, words assay.Words, progress func(done, of int),
) (r *Report, err error) {
	r = &Report{Store: path, Problems: []store.Problem{}}
	if r.Snapshot, err = db.Snapshot(ctx); err != nil {
		r.Snapshot = "unknown" // Verify reports the reason
	}
	i := &inspector{
		ctx:       ctx,
		libraries: query.NewLibraries(db),
		levels:    make(map[assay.RunID]*plannedLevels),
		unjudged:  make(map[string]int),
	}
	defer func() { err = errors.Join(err, i.libraries.Close()) }()
	if i.plans, err = db.Plans(ctx); err != nil {
		i.plans = nil
	}
	found := func(p store.Problem) { r.Problems = append(r.Problems, p.Worded(words, path)) }
	r.Proof, err = db.Verify(ctx, i.inspect, found, progress)
	r.Rescored, r.Unjudged = i.judged, i.unjudged
	return r, err
}

// An inspector checks the content of attempts. Several goroutines use it.
type inspector struct {
	ctx       context.Context
	plans     map[assay.RunID]store.Experiment
	libraries *query.Libraries

	mu       sync.Mutex // guards the following fields
	levels   map[assay.RunID]*plannedLevels
	judged   int
	unjudged map[string]int
}

// plannedLevels are the factor levels that an experiment plans. A nil list is not known.
type plannedLevels struct {
	models, variants, severities, types, faults, phrasings []string

	reliabilities []float64
	serves        map[string][]string
}

// A finding records a problem with an attempt.
type finding func(check, do, format string, args ...any)

func (i *inspector) inspect(s *store.Stored) (problems []store.Problem) {
	a := &s.Attempt
	found := func(check, do, format string, args ...any) {
		problems = append(problems, store.Problem{
			Check: check,
			Where: fmt.Sprintf("attempt %d at trial %s", a.Number, a.ID),
			What:  fmt.Sprintf(format, args...),
			Do:    do,
		})
	}
	l := i.levelsOf(a.Run)
	l.checkCell(a, found)
	if !a.Settles() {
		return problems
	}
	l.checkServed(a, found)

	full := a.Level == assay.FullSuccess
	known := slices.Contains(assay.ErrorCategories, a.ErrorCategory)
	if full != (a.ErrorCategory == "") || !full && !known {
		found("category", string(assay.HintRescore),
			"its level is %s and its error category %q", a.Level, a.ErrorCategory)
	}
	i.rescore(s, found)
	return problems
}

// checkCell checks that the run's experiment plans the levels of an attempt's cell.
func (l *plannedLevels) checkCell(a *assay.Attempt, found finding) {
	const do = string(assay.HintDelete)
	for _, f := range []struct {
		name, value string
		known       []string
	}{
		{"model", a.Model, l.models},
		{"variant", a.Variant, l.variants},
		{"severity", a.Severity, l.severities},
		{"task type", a.TaskType, l.types},
		{"mix of faults", a.Faults, l.faults},
		{"phrasing", a.Phrasing, l.phrasings},
	} {
		if f.known != nil && !slices.Contains(f.known, f.value) {
			found("known", do, "the experiment of its run does not have %s %q", f.name, f.value)
		}
	}
	if l.reliabilities != nil && !slices.Contains(l.reliabilities, a.Reliability) {
		found("known", do, "the experiment of its run does not have reliability %s",
			assay.FormatReliability(a.Reliability))
	}
}

// checkServed checks that the requested model answered. An agent need not ask its model, and may only
// have met planted faults of it.
func (l *plannedLevels) checkServed(a *assay.Attempt, found finding) {
	names, ok := l.serves[a.Model]
	if !ok || a.Unmetered || a.ModelFaults != "" && a.Outcome.Turns == 0 {
		return
	}
	foreign := func(served string) bool {
		return !slices.ContainsFunc(names, func(name string) bool {
			_, same := assay.SameModel(name, served)
			return same
		})
	}
	served := a.Served()
	if len(served) == 0 {
		served = []string{""} // names has "" if responses may leave out the name
	}
	if slices.ContainsFunc(served, foreign) {
		const do = "another model gave this result; delete it, so that the trial is pending again"
		found("served model", do, "%q answered, but %s was requested", a.ServedModel, strings.Join(names, " or "))
	}
}

// rescore judges the transcript again and compares the outcomes.
func (i *inspector) rescore(s *store.Stored, found finding) {
	a := &s.Attempt
	skip := func(why string) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.unjudged[why]++
	}
	switch version := score.Version(a.World); {
	case s.Transcript == nil:
		skip("there is no transcript")
		return
	case a.ScoreVersion != version:
		skip(fmt.Sprintf("the rules %s judged them, and today's are %s", a.ScoreVersion, version))
		return
	}
	task, judge, err := i.libraries.Task(i.ctx, a)
	if err != nil {
		skip(err.Error())
		return
	}

	again := judge.Outcome(&a.Trial, task, s.Transcript)
	i.mu.Lock()
	i.judged++
	i.mu.Unlock()
	if !sameOutcome(a.Outcome, again) {
		found("score", "one of the two was changed; go back to a backup",
			"its transcript gives %s, but %s is stored", outcomeText(again), outcomeText(a.Outcome))
	}
}

// outcomeText names the fields of an outcome that differ most often.
func outcomeText(o assay.Outcome) string {
	text := fmt.Sprintf("%s (%s, %d turns, %d calls", o.Level, o.Ended, o.Turns, o.ToolCalls)
	if o.ErrorCategory != "" {
		text += ", " + o.ErrorCategory
	}
	return text + ")"
}

// levelsOf returns the levels that the experiment of a run plans.
func (i *inspector) levelsOf(run assay.RunID) *plannedLevels {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.levels[run]; l != nil {
		return l
	}
	l := &plannedLevels{serves: i.plans[run].Serves}
	i.levels[run] = l
	var spec plan.Experiment
	if json.Unmarshal(i.plans[run].Spec, &spec) != nil || len(spec.Models) == 0 {
		return l
	}
	l.models = spec.Models
	l.severities, l.faults = []string{""}, spec.Failures.Kinds.Texts()
	for _, f := range spec.EachFactors() {
		l.variants = append(l.variants, f.Variants...)
		l.severities = append(l.severities, f.Severities...)
		l.types = append(l.types, f.TaskTypes...)
		l.reliabilities = append(l.reliabilities, f.Reliabilities...)
		l.phrasings = append(l.phrasings, f.Puts()...)
	}
	if slices.Contains(l.phrasings, plan.All) {
		l.phrasings = nil
	}
	if slices.Contains(l.types, plan.All) {
		l.types = nil // the types come from the library, where users named them
	}
	return l
}
