package query

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/store"
)

// An AmbiguousNameError reports a name that stands for several things.
type AmbiguousNameError struct {
	Name       string
	Candidates []string
}

func (e *AmbiguousNameError) Error() string {
	candidates := strings.Join(e.Candidates, ", ")
	return fmt.Sprintf("%q is ambiguous\nhint: write one of %s", e.Name, candidates)
}

// FindExperiment returns the experiment of a name, or of a file, as it was run.
func FindExperiment(ctx context.Context, db *store.DB, name string) (e store.Experiment, err error) {
	all, err := db.Experiments(ctx)
	if err != nil {
		return e, err
	}
	wanted, err := nameIn(name, all)
	if err != nil {
		return e, err
	}
	for _, e := range all {
		if e.Name == wanted {
			return e, nil
		}
	}
	_, _, err = resolve(ctx, db, "experiment:"+name)
	return e, err
}

// nameIn returns the name of the experiment in a file of the user's, or what it is given if an experiment has
// that name or there is no such file. It returns an error if the file is none of an experiment, or plans other
// trials than the experiment of its name, which would be taken for the results of the file.
func nameIn(name string, all []store.Experiment) (string, error) {
	ext := filepath.Ext(name)
	known := func(name string) int {
		return slices.IndexFunc(all, func(e store.Experiment) bool { return e.Name == name })
	}
	if ext != ".yaml" && ext != ".yml" || known(name) >= 0 {
		return name, nil
	}
	e, err := plan.Load(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name, nil
	case err != nil:
		return "", err
	}
	if at := known(e.Name); at >= 0 && !planned(e, all[at].Spec) {
		return "", fmt.Errorf("%s plans other trials than those that were run as %s\n"+
			"hint: name %s to see what was run, or run the file first", name, e.Name, e.Name)
	}
	return e.Name, nil
}

// planned reports whether a stored experiment has the plan of a file. It may have further models, and other
// budgets.
func planned(e *plan.Experiment, stored json.RawMessage) bool {
	text, err := json.Marshal(e)
	var file, ran map[string]any
	if errors.Join(err, json.Unmarshal(text, &file), json.Unmarshal(stored, &ran)) != nil {
		return false
	}
	models, _ := ran["models"].([]any)
	for _, m := range e.Models {
		if !slices.Contains(models, any(m)) {
			return false
		}
	}
	for _, fields := range []map[string]any{file, ran} {
		for _, other := range []string{"models", "levels", "agents", "budget", "stop", "providers", "again"} {
			delete(fields, other)
		}
	}
	return reflect.DeepEqual(file, ran)
}

// CheckModel returns an error if the store has no attempt of a model.
func CheckModel(ctx context.Context, db *store.DB, model string) error {
	_, _, err := resolve(ctx, db, "model:"+model)
	return err
}

// shortestRun is the number of characters of a run's ID that can stand for all of it.
const shortestRun = 4

func isRun(id, text string) bool {
	return id == text || len(text) >= shortestRun && strings.HasPrefix(id, text)
}

// kinds are the kinds of things that a side of a comparison can name.
var kinds = []string{"experiment", "run", "model", "variant"}

// Names returns all names of experiments, runs, models and variants.
func Names(ctx context.Context, db *store.DB) (all []string, err error) {
	known, err := names(ctx, db)
	for _, kind := range kinds {
		all = append(all, known[kind]...)
	}
	return all, err
}

// names returns the names that a store holds, by kind.
func names(ctx context.Context, db *store.DB) (map[string][]string, error) {
	known := make(map[string][]string)
	experiments, err := db.Experiments(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range experiments {
		known["experiment"] = append(known["experiment"], e.Name)
	}
	runs, err := db.Runs(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, r := range runs {
		known["run"] = append(known["run"], string(r.ID))
	}
	if known["model"], err = db.Models(ctx); err != nil {
		return nil, err
	}
	known["variant"], err = db.Variants(ctx)
	return known, err
}

// A Planner yields the trials that an experiment in a store plans, or an error if the experiment
// cannot be planned again, for example because its text is lost to damage. [job.PlannedTrials] is
// the usual one.
type Planner func(context.Context, *store.DB, store.Experiment) iter.Seq2[assay.Trial, error]

// sideOf returns the side that a name stands for: an experiment, run, model or variant. The name
// may start with its kind and a colon, as in model:gpt-4o. Two experiments may plan the same trial
// of a model or a variant. The trials of a run are those that it tried, with or without an outcome.
//
// Superseded outcomes are on the side, whatever its name, because the first outcome of a trial counts.
func sideOf(
	ctx context.Context, db *store.DB, name string, where export.Where, planner Planner,
) (*side, error) {
	kind, name, err := resolve(ctx, db, name)
	if err != nil {
		return nil, err
	}
	experiments, err := db.Experiments(ctx)
	if err != nil {
		return nil, err
	}
	tries := store.Filter{All: true}
	var of func(*assay.Trial) bool
	switch kind {
	case "run":
		tries.Run = assay.RunID(name)
		return triedSide(db.Attempts(ctx, tries), where), nil
	case "model":
		tries.Model = name
		of = func(t *assay.Trial) bool { return t.Model == name && t.Of == "" }
	case "variant":
		of = func(t *assay.Trial) bool { return t.Variant == name && t.Of == "" }
	case "experiment":
		if of, forks := plan.ForkedFrom(name); forks {
			return nil, fmt.Errorf("%s has forks of attempts of %s, whose successes are no rate of anything\n"+
				"hint: `assay report %s` shows them, and `assay gate %s --fault KIND --at-most 5pt` judges them",
				name, of, name, of)
		}
		of = func(*assay.Trial) bool { return true }
		i := slices.IndexFunc(experiments, func(e store.Experiment) bool { return e.Name == name })
		experiments = experiments[i : i+1]
	}
	s := &side{where: where, trials: func(yield func(assay.Trial, error) bool) {
		for _, e := range experiments {
			if kind != "experiment" && !where.HasExperiment(e.Name) {
				continue
			}
			for t, err := range planner(ctx, db, e) {
				if (err != nil || of(&t)) && !yield(t, err) {
					return
				}
			}
		}
	}}
	s.stopped = func() (func(assay.Cell) bool, error) { return stoppedCells(ctx, db, experiments) }
	if kind == "experiment" {
		planned := make(map[assay.TrialID]bool, experiments[0].Planned)
		for t, err := range s.trials {
			if err != nil {
				return nil, fmt.Errorf("cannot plan experiment %s again: %w", name, err)
			}
			planned[t.ID] = true
		}
		of = func(t *assay.Trial) bool { return planned[t.ID] }
	}
	counts := func(a *assay.Attempt) bool { return of(&a.Trial) }
	s.attempts = Filter(db.Attempts(ctx, tries), counts)
	return s, nil
}

// stoppedCells returns a function that reports whether a stop rule of an experiment skips a cell.
func stoppedCells(
	ctx context.Context, db *store.DB, experiments []store.Experiment,
) (func(assay.Cell) bool, error) {
	var rules []func(assay.Cell) bool
	for _, e := range experiments {
		skips, err := job.StoppedCells(ctx, db, e)
		if err != nil {
			return nil, err
		}
		rules = append(rules, skips)
	}
	return func(c assay.Cell) bool {
		return slices.ContainsFunc(rules, func(skips func(assay.Cell) bool) bool { return skips(c) })
	}, nil
}

// resolve returns the kind of a name, and the name without its kind. A run may be named by the
// beginning of its ID.
func resolve(ctx context.Context, db *store.DB, name string) (kind, full string, err error) {
	known, err := names(ctx, db)
	if err != nil {
		return "", "", err
	}
	kind, rest, explicit := strings.Cut(name, ":")
	if !explicit || !slices.Contains(kinds, kind) {
		kind, rest = "", name
	}
	said := rest
	if kind == "" || kind == "experiment" {
		experiments, err := db.Experiments(ctx)
		if err == nil {
			rest, err = nameIn(rest, experiments)
		}
		if err != nil {
			return "", "", err
		}
	}

	var matches [][2]string // kind and name
	var all []string
	what := "experiment, run, model or variant"
	for _, k := range kinds {
		if kind == k {
			what = kind
		} else if kind != "" {
			continue
		}
		all = append(all, known[k]...)
		for _, n := range known[k] {
			if n == rest || k == "run" && isRun(n, rest) {
				matches = append(matches, [2]string{k, n})
			}
		}
	}
	switch len(matches) {
	case 1:
		return matches[0][0], matches[0][1], nil
	case 0:
		message := fmt.Sprintf("the store has no %s %q", what, rest)
		if rest != said {
			return "", "", fmt.Errorf("%s, which %s describes\nhint: `assay run %s` runs it", message, said, said)
		}
		if hint := assay.NameHint(rest, all); hint != "" {
			message += "\nhint: " + hint
		}
		return "", "", errors.New(message)
	}

	ambiguous := &AmbiguousNameError{Name: rest}
	for _, m := range matches {
		if kind == "" {
			m[1] = m[0] + ":" + m[1]
		}
		ambiguous.Candidates = append(ambiguous.Candidates, m[1])
	}
	return "", "", ambiguous
}
