// Package job holds an experiment that is ready to run: its library, its planned trials, the
// lanes of its models, and forecasts of its pending trials.
//
// Everything that works on an experiment starts with a Job: run, plan, status, report and export.
// The package reads stores but does not write to them. It sends no requests, does not print and
// does not know flags.
package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A Job is an experiment with its open library and its planned trials.
type Job struct {
	Experiment *plan.Experiment
	Library    *library.Library
	Plan       *plan.Plan
	// Transport, if set, carries requests to endpoints instead of the network.
	Transport http.RoundTripper
}

// Open opens the library of an experiment and plans its trials. A positive limit keeps only the
// first trials of each model.
func Open(ctx context.Context, e *plan.Experiment, limit int) (*Job, error) {
	e.FindAgents()
	if err := e.CheckAgents(); err != nil {
		return nil, err
	}
	lib, err := library.OpenNamed(ctx, e.Library)
	if err != nil {
		return nil, err
	}
	j, err := open(ctx, e, lib, limit)
	if err != nil {
		return nil, err
	}
	if err := checkToolFaults(e, lib.Catalog()); err != nil { // what was run already can be read
		return nil, errors.Join(err, j.Close())
	}
	return j, nil
}

// open plans the trials of an experiment over a library, which it closes if that fails.
func open(
	ctx context.Context, e *plan.Experiment, lib *library.Library, limit int,
) (*Job, error) {
	p, err := expand(ctx, e, lib)
	if err == nil {
		if limit > 0 {
			p = p.Limit(limit)
		}
		err = errors.Join(checkFunctions(e, lib.Catalog()), checkKinds(e, lib.Catalog()))
	}
	if err != nil {
		return nil, errors.Join(err, lib.Close())
	}
	return &Job{Experiment: e, Library: lib, Plan: p}, nil
}

// expand plans the trials of an experiment over a library.
func expand(ctx context.Context, e *plan.Experiment, lib *library.Library) (*plan.Plan, error) {
	own := world.Of(e.World).OwnTools
	if carries := world.For(lib.Catalog()); own != lib.Own() || own && carries != e.World {
		message, hint := "the world "+e.World+" needs tasks with tools that somebody wrote",
			"write library: tasks.yaml"
		more := assay.HintNewTasks
		if lib.Own() {
			message = fmt.Sprintf("the tasks of %s have tools of their own, which the world %s "+
				"does not carry out", e.Library, e.World)
			hint, more = "write world: "+carries, ""
		}
		return nil, assay.WithHint(e.FieldError("world", message, hint), more)
	}
	if own {
		levels, err := lib.Levels(ctx)
		if err == nil {
			err = e.SetLibrary(levels)
		}
		if err != nil {
			return nil, err
		}
	}
	p, err := e.Expand(ctx, lib.Refs, applies(lib, e.World))
	if err != nil {
		return nil, err
	}
	if err := p.Put(ctx, lib.Phrase); err != nil {
		return nil, err
	}
	return p, p.PlanForks()
}

// Keep stores the tasks that an experiment draws from the job's library, so that its results can be
// read without the library's file. The experiment is the job's, perhaps joined with earlier models.
// Libraries with own tools are stored as a whole, because their tasks may define variants that the
// experiment names.
func (j *Job) Keep(ctx context.Context, db *store.DB, e *plan.Experiment) error {
	var keys []library.TaskKey
	add := func(difficulty string, task assay.TaskRef) {
		keys = append(keys, library.TaskKey{ID: task.ID, Difficulty: difficulty})
	}
	if !j.Library.Own() {
		if err := e.Drawn(ctx, j.Library.Refs, add); err != nil {
			return err
		}
		return keepLibrary(ctx, db, j.Library, keys)
	}
	counts, err := j.Library.Counts(ctx)
	for _, c := range counts {
		var refs []assay.TaskRef
		if refs, err = j.Library.Refs(ctx, c.Type, c.Difficulty); err != nil {
			break
		}
		for _, r := range refs {
			add(c.Difficulty, r)
		}
	}
	if err != nil {
		return err
	}
	return keepLibrary(ctx, db, j.Library, keys)
}

// Changes returns the differences between the job's library and the library of the experiment's
// latest run in a store. Without such a run, it returns nil.
func (j *Job) Changes(ctx context.Context, db *store.DB) (changes []library.Change, err error) {
	all, err := db.Experiments(ctx)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(e store.Experiment) bool { return e.Name == j.Experiment.Name })
	if at < 0 || all[at].Library.Digest == j.Library.Meta().Digest {
		return nil, nil
	}
	earlier, err := OpenLibrary(ctx, db, all[at].Library)
	if err != nil {
		return nil, nil // without the earlier tasks, they cannot be compared
	}
	changes, err = j.Library.Changes(ctx, earlier)
	return changes, errors.Join(err, earlier.Close())
}

// MeantEasy reports whether the experiment's latest run in a store was at the default difficulty of
// earlier versions, because the file names none.
func (j *Job) MeantEasy(ctx context.Context, db *store.DB) (bool, error) {
	all, err := db.Experiments(ctx)
	return err == nil && slices.ContainsFunc(all, func(e store.Experiment) bool {
		return e.Name == j.Experiment.Name && j.Experiment.MeantEasy(e.Spec)
	}), err
}

// Again opens an experiment with a further repeat of everything. If trials of the repeats that the
// store knows are pending, they have to be done before a further one.
func Again(ctx context.Context, db *store.DB, e *plan.Experiment) (*Job, error) {
	stored, err := db.Experiments(ctx)
	if err != nil {
		return nil, err
	}
	e.FindAgents() // they belong to the design that is compared
	for _, s := range stored {
		if s.Name != e.Name {
			continue
		}
		if err := e.RepeatLike(s.Spec); err != nil {
			return nil, err
		}
	}
	settled, err := db.Settled(ctx)
	if err != nil {
		return nil, err
	}
	j, err := Open(ctx, e, 0)
	if err != nil || j.pending(settled) {
		return j, err
	}
	if err := j.Close(); err != nil {
		return nil, err
	}
	e.Again++
	return Open(ctx, e, 0)
}

// pending reports whether a trial has no outcome.
func (j *Job) pending(settled store.Set) bool {
	for t := range j.Trials() {
		if !settled.Has(t.ID) {
			return true
		}
	}
	return false
}

// Reopen plans an experiment again from the text and the tasks that a store holds, whatever has
// happened to its files.
func Reopen(ctx context.Context, db *store.DB, e store.Experiment) (*Job, error) {
	return Forked(ctx, db, e, func(e *plan.Experiment) *plan.Experiment { return e })
}

// Forked plans an experiment that has the text and the tasks of a stored one, but for what change does.
func Forked(
	ctx context.Context, db *store.DB, e store.Experiment, change func(*plan.Experiment) *plan.Experiment,
) (*Job, error) {
	if e.Lost() {
		err := fmt.Errorf("the text of experiment %s was lost to damage", e.Name)
		return nil, assay.WithHint(err, assay.HintLostText)
	}
	var spec plan.Experiment
	if err := json.Unmarshal(e.Spec, &spec); err != nil {
		return nil, fmt.Errorf("experiment %s in the store: %w", e.Name, err)
	}
	lib, err := OpenLibrary(ctx, db, e.Library)
	if err != nil {
		return nil, fmt.Errorf("experiment %s in the store: %w", e.Name, err)
	}
	return open(ctx, change(&spec), lib, 0)
}

// Close closes the library.
func (j *Job) Close() error { return j.Library.Close() }

// functionName matches the function names that endpoints accept.
var functionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkFunctions returns an error if tools are to be listed as functions and the name of one is
// not a valid function name.
func checkFunctions(e *plan.Experiment, catalog *assay.Catalog) error {
	if e.Tools != assay.Listed {
		return nil
	}
	for _, name := range catalog.Names() {
		if !functionName.MatchString(name) {
			message := fmt.Sprintf("tool %q of library %s cannot be listed as a function: "+
				"function names consist of letters, digits, _ and -", name, e.Library)
			return e.FieldError("tools", message, "write tools: discover, which allows any name")
		}
	}
	return nil
}

// checkKinds returns an error if no tool can meet a fault of a mix: because each has an effect, which the call
// that shows the fault would repeat, or because none takes a quantity.
func checkKinds(e *plan.Experiment, catalog *assay.Catalog) error {
	for _, mix := range e.Failures.Kinds {
		for _, kind := range assay.ToolFaultsThat(assay.ToolFaultRule.NeedsValues) {
			meets, why := func(t assay.Tool) bool { return t.Effect == "" },
				"each has an effect, so nobody could call it again to learn the truth"
			if kind.Rule().Rescales {
				meets, why = func(t assay.Tool) bool { return len(spec.Quantities(t)) > 0 },
					"none has a parameter of the type number"
			}
			if mix[kind] > 0 && !slices.ContainsFunc(catalog.All(), meets) {
				return e.FieldError("failures.kinds", fmt.Sprintf("no tool of library %s can meet the kind %s: %s",
					e.Library, kind, why), "leave "+string(kind)+" out")
			}
		}
	}
	return nil
}

// checkToolFaults returns an error if a tool's own mix of faults has a kind that it cannot meet, or that cannot be
// combined with the experiment.
func checkToolFaults(e *plan.Experiment, catalog *assay.Catalog) error {
	for _, t := range catalog.All() {
		mix, err := assay.ParseFaultMix(t.Faults)
		if err != nil {
			return err
		}
		for _, kind := range assay.ToolFaultsThat(assay.ToolFaultRule.AddsArguments) {
			has := fmt.Sprintf("tool %s of library %s has the kind %s of faults, ", t.Name, e.Library, kind)
			switch {
			case mix[kind] == 0:
			case kind.Rule().Rescales && len(spec.Quantities(t)) == 0:
				return e.FieldError("library", has+"and no parameter of the type number", "give the tool another kind")
			case offersOthers(e):
				return e.FieldError("interfaces", has+"which changes its parameters, and so do interfaces",
					"leave one of them out")
			case len(e.Agents) > 0 && e.Tools == assay.Listed:
				return e.FieldError("tools", has+"which agents with listed tools cannot have, because their frameworks refuse "+
					"or drop an argument that the schema of its tool does not list", "write tools: discover")
			}
		}
	}
	return nil
}

// offersOthers reports whether tools are offered with other interfaces than their own.
func offersOthers(e *plan.Experiment) bool {
	all := slices.Clone(e.Interfaces)
	for _, part := range e.Parts {
		all = append(all, part.Interfaces...)
	}
	return slices.ContainsFunc(all, func(name string) bool { return name != assay.PlainInterface })
}

// applies returns a function that reports whether the flaw of a variant has a severity for a task's
// plan.
func applies(lib *library.Library, worldName string) plan.Applies {
	ownTools := world.Of(worldName).OwnTools
	return func(
		ctx context.Context, ref assay.TaskRef, difficulty, variant, severity string,
	) (bool, error) {
		flaw, flawed := assay.FlawOf(variant)
		if !flawed && !ownTools {
			return true, nil
		}
		task, err := lib.Task(ctx, ref.ID, difficulty)
		if err != nil {
			return false, err
		}
		if ownTools {
			return workflow.OwnApplies(lib.Catalog(), worldName, &task, variant, severity), nil
		}
		return workflow.Applies(lib.Catalog(), worldName, &task, flaw, severity), nil
	}
}

// Planned returns the number of trials of all models.
func (j *Job) Planned() int {
	n := 0
	for _, m := range j.Experiment.Models {
		n += j.Plan.Planned(m)
	}
	return n
}

// Trials yields all planned trials, model by model.
func (j *Job) Trials() iter.Seq[assay.Trial] {
	return func(yield func(assay.Trial) bool) {
		for _, m := range j.Experiment.Models {
			for t := range j.Plan.Trials(m) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// IDs returns the set of all planned trials.
func (j *Job) IDs() map[assay.TrialID]bool {
	ids := make(map[assay.TrialID]bool, j.Planned())
	for t := range j.Trials() {
		ids[t.ID] = true
	}
	return ids
}

// StoppedEarly returns the number of trials of each model that stop rules skip, and the stops
// that skip any. Only trials that keep returns true for count.
func (j *Job) StoppedEarly(
	ctx context.Context, db *store.DB, keep func(*assay.Trial) bool,
) (skipped map[string]int, stops []Stop, err error) {
	if j.Experiment.Stop == (plan.StopRules{}) {
		return nil, nil, nil
	}
	r, err := j.Recount(ctx, db, j.Rules(), keep)
	if err != nil {
		return nil, nil, err
	}
	skipped = make(map[string]int)
	for _, m := range j.Experiment.Models {
		skipped[m] = r.Standing(m).Skipped
	}
	return skipped, r.Stops(), nil
}

// StoppedCells returns a function that reports whether the stop rules of a stored experiment skip the
// trials of a cell that have no outcome.
func StoppedCells(
	ctx context.Context, db *store.DB, e store.Experiment,
) (skips func(assay.Cell) bool, err error) {
	j, err := Reopen(ctx, db, e)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	if j.Experiment.Stop == (plan.StopRules{}) {
		return func(assay.Cell) bool { return false }, nil
	}
	rules := j.Rules()
	if _, err = j.Recount(ctx, db, rules, nil); err != nil {
		return nil, err
	}
	return func(c assay.Cell) bool {
		_, stopped := rules.Skip(c)
		return stopped
	}, nil
}

// PlannedTrials plans a stored experiment again and yields its trials.
func PlannedTrials(
	ctx context.Context, db *store.DB, e store.Experiment,
) iter.Seq2[assay.Trial, error] {
	return func(yield func(assay.Trial, error) bool) {
		j, err := Reopen(ctx, db, e)
		if err != nil {
			yield(assay.Trial{}, err)
			return
		}
		for t := range j.Trials() {
			if !yield(t, nil) {
				_ = j.Close() // it was only read
				return
			}
		}
		if err := j.Close(); err != nil {
			yield(assay.Trial{}, err)
		}
	}
}
