package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// Suite describes the library of a stored experiment.
func Suite(ctx context.Context, db *store.DB, e store.Experiment) (s report.Suite, err error) {
	j, err := job.Reopen(ctx, db, e)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return LibraryOf(ctx, j)
}

// LibraryOf describes the library of a job.
func LibraryOf(ctx context.Context, j *job.Job) (s report.Suite, err error) {
	s.Own = j.Experiment.Library != plan.BuiltinLibrary
	counts, err := j.Library.Counts(ctx)
	for _, c := range counts {
		s.Tasks += c.Tasks
	}
	return s, err
}

// Plan returns everything that the report of a planned experiment needs. Only attempts that satisfy
// the conditions will count.
func Plan(
	ctx context.Context, db *store.DB, j *job.Job, e store.Experiment, where export.Where,
) (x *Experiment, err error) {
	references, err := references(ctx, db, j)
	if err != nil {
		return nil, err
	}
	earlier, err := earlierLibraries(ctx, db, e)
	if err != nil {
		return nil, err
	}
	left, err := leftOut(ctx, db, where)
	if err != nil {
		return nil, err
	}
	x = &Experiment{
		Stored: e,
		Design: Design(ctx, j),
		Where:  where,
		Trials: func(yield func(assay.Trial) bool) {
			for _, trials := range []iter.Seq[assay.Trial]{slices.Values(references), j.Trials()} {
				for t := range trials {
					if where.HasTrial(&t) && !left[t.ID] && !yield(t) {
						return
					}
				}
			}
		},
	}
	floors, err := floor.Find(ctx, j.Library, j.Trials())
	if err != nil {
		return nil, err
	}
	x.Design.Floor = floors.Rate
	x.Facts = append(Settings(j), earlier...)
	if n := len(references); n > 0 {
		x.Facts = append(x.Facts, report.Fact{
			Name:  "beside the plan",
			Value: fmt.Sprintf("%d trials with the optimal plan, which other experiments ran", n),
		})
	}
	skipped, stops, err := j.StoppedEarly(ctx, db, where.HasTrial)
	if err != nil {
		return nil, err
	}
	x.Skipped, x.Again = skipped, j.Experiment.Again > 0
	for _, s := range stops {
		x.Stopped = append(x.Stopped, fmt.Sprintf("%s; %d trials skipped", s, s.Skipped))
	}
	unplanned, err := Unplanned(ctx, db, j.IDs, e)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(unplanned)) {
		x.Unplanned = append(x.Unplanned, fmt.Sprintf("%s: %d attempts", name, unplanned[name]))
	}
	unsound, err := j.Unsound(ctx)
	if err != nil {
		return nil, err
	}
	for _, f := range unsound.Findings {
		if f.Doubt == validate.NotDiscriminating || f.Doubt == validate.SolvedByNothing {
			x.Careless = append(x.Careless, f.String())
		} else {
			x.Unsound = append(x.Unsound, f.String())
		}
	}
	if x.Prompts, err = prompts(ctx, j); err != nil {
		return nil, err
	}
	x.Compared, err = comparedJudges(ctx, db)
	return x, err
}

// leftOut returns the trials whose outcomes do not satisfy the conditions, although they may. They are neither
// selected nor unfinished.
func leftOut(ctx context.Context, db *store.DB, where export.Where) (map[assay.TrialID]bool, error) {
	left := make(map[assay.TrialID]bool)
	if len(where.Conditions()) == 0 {
		return left, nil
	}
	for a, err := range db.Attempts(ctx, store.Filter{OnlySettled: true}) {
		if err != nil {
			return nil, err
		}
		if !where.Has(&a) {
			left[a.ID] = true
		}
	}
	return left, nil
}

// references returns the trials with the optimal plan that the store has for an experiment with
// flawed plans only. Without them, its report could not show the cost of the flaws.
func references(
	ctx context.Context, db *store.DB, j *job.Job,
) (trials []assay.Trial, err error) {
	e, needed := j.Experiment.WithOptimal()
	if !needed {
		return nil, nil
	}
	settled, err := db.Settled(ctx)
	if err != nil {
		return nil, err
	}
	p, err := e.Expand(ctx, j.Library.Refs, nil)
	if err == nil {
		err = p.Put(ctx, j.Library.Phrase)
	}
	if err != nil {
		return nil, err
	}
	for _, m := range e.Models {
		for t := range p.Trials(m) {
			if settled.Has(t.ID) {
				trials = append(trials, t)
			}
		}
	}
	return trials, nil
}

// Design returns the facts that a report needs besides the trials.
func Design(ctx context.Context, j *job.Job) report.Design {
	read := newTaskReader(ctx, j)
	// ask returns a function that asks about the task of a trial, of which unread is the answer if it
	// cannot be read.
	ask := func(
		unread bool, of func(*assay.Catalog, *assay.Trial, *assay.Task) bool,
	) func(*assay.Trial) bool {
		return onceForAllModels(func(t *assay.Trial) bool {
			task, err := read(t)
			if err != nil {
				return unread
			}
			return of(j.Library.Catalog(), t, task)
		})
	}
	d := report.Design{
		Models: j.Experiment.Models, Hurts: ask(true, workflow.Hurts),
		Winnable: ask(true, func(c *assay.Catalog, t *assay.Trial, task *assay.Task) bool {
			return workflow.Winnable(ctx, c, t, task)
		}),
	}
	d.StatesHarm = slices.ContainsFunc(j.Library.Catalog().All(), func(t assay.Tool) bool { return t.Severity != "" })
	if world.Of(j.Experiment.World).Throws != nil {
		schedules := ask(false, workflow.Survivable)
		d.Survivable = func(t *assay.Trial) bool { return t.Reliability == 1 || schedules(t) }
	}
	if world.Of(j.Experiment.World).OwnTools {
		known := ask(true, workflow.BestKnown)
		d.Open = func(t *assay.Trial) bool { return !known(t) }
	}
	for _, f := range j.Experiment.EachFactors() {
		d.Variants = append(d.Variants, f.Variants...)
		d.TaskTypes = append(d.TaskTypes, f.TaskTypes...)
	}
	for _, p := range j.Plan.Parts() {
		d.Parts = append(d.Parts, report.Part{
			Name: p.Name, Models: p.Models, Varies: p.Varies, Has: p.Has,
		})
	}
	d.LeftOut = j.Plan.NotApplicable()
	return d
}

// A taskReader returns the task of a trial.
type taskReader func(*assay.Trial) (*assay.Task, error)

// newTaskReader returns a reader that remembers the latest 4,096 tasks, because trials of many cells
// and repeats have the same. A remembered task has no initial state, because that can be large
// and no question about a plan needs it.
func newTaskReader(ctx context.Context, j *job.Job) taskReader {
	latest, _ := lru.New[assay.TaskRef, *assay.Task](4096) // the size is positive
	return func(t *assay.Trial) (*assay.Task, error) {
		ref := assay.TaskRef{ID: t.Task, Digest: t.TaskDigest}
		if task, ok := latest.Get(ref); ok {
			return task, nil
		}
		task, err := j.Library.TaskOf(ctx, t)
		if err == nil {
			task.State = nil
			latest.Add(ref, &task)
		}
		return &task, err
	}
}

// onceForAllModels returns a function that asks once about trials that differ in their model only.
func onceForAllModels(ask func(*assay.Trial) bool) func(*assay.Trial) bool {
	type alike struct {
		assay.Cell
		task assay.TaskID
		seed uint64
	}
	known := make(map[alike]bool)
	return func(t *assay.Trial) bool {
		key := alike{t.Cell, t.Task, t.Seed}
		key.Model = ""
		answer, ok := known[key]
		if !ok {
			answer = ask(t)
			known[key] = answer
		}
		return answer
	}
}

// earlierLibraries returns the versions of its library that an experiment had before, latest first.
func earlierLibraries(
	ctx context.Context, db *store.DB, e store.Experiment,
) (facts []report.Fact, err error) {
	plans, err := db.Plans(ctx)
	if err != nil {
		return nil, err
	}
	runs, err := db.Runs(ctx, e.Name)
	known := map[string]bool{e.Library.Digest: true}
	for _, r := range slices.Backward(runs) {
		l := plans[r.ID].Library
		if known[l.Digest] {
			continue
		}
		known[l.Digest] = true
		facts = append(facts, report.Fact{Name: "earlier library", Value: fmt.Sprintf(
			"%s, digest %s, last used %s", l.Name, l.Digest, r.StartedAt.Format("2006-01-02 15:04"))})
	}
	return facts, err
}

// Settings returns the facts of the plan that a reader needs in order to reproduce it.
func Settings(j *job.Job) []report.Fact {
	x := j.Experiment
	meta := j.Library.Meta()
	calls := ""
	if x.Limits.Calls > 0 {
		calls = fmt.Sprintf("%d calls, ", x.Limits.Calls)
	}
	limits := fmt.Sprintf("%s%d turns, %s a request, %s a trial", calls, x.Limits.Turns,
		time.Duration(x.Limits.Request), time.Duration(x.Limits.Trial))
	return []report.Fact{
		{Name: "seed", Value: fmt.Sprint(x.Seed)},
		{Name: "world", Value: x.World},
		{Name: "library", Value: fmt.Sprintf("%s, digest %s", meta.Name, meta.Digest)},
		{Name: "tools", Value: "digest " + j.Library.ToolsDigest()},
		{Name: "protocol", Value: x.Protocol},
		{Name: "tools are", Value: x.Tools},
		{Name: "limits", Value: limits},
		{Name: "templates", Value: episode.TemplatesHash + " today"},
		{Name: "trials", Value: "digest " + digestOf(j.IDs())},
	}
}

// digestOf identifies a set of trials.
func digestOf(ids map[assay.TrialID]bool) string {
	h := sha256.New()
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		h.Write([]byte(id + "\n"))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// A promptCell is a group of trials whose prompts are sampled together.
type promptCell struct{ variant, severity, taskType string }

// sampleSize is the number of tasks per promptCell that show whether two variants have the same
// prompts.
const sampleSize = 4

// prompts returns a digest of the opening prompts of each variant and severity, over a sample of
// tasks. The keys come from [report.PromptKey].
func prompts(ctx context.Context, j *job.Job) (map[string]string, error) {
	digests := make(map[string][]string)
	seen := make(map[promptCell]map[assay.TaskID]bool)
	for _, m := range j.Experiment.Models { // models may have different variants
		for t := range sample(j, m, seen) {
			task, err := j.Library.TaskOf(ctx, &t)
			if err != nil {
				return nil, err
			}
			messages, err := episode.Opening(j.Library.Catalog(), &t, &task)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(messages)
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(text)
			key := report.PromptKey(t.Variant, t.Severity)
			digests[key] = append(digests[key], string(t.Task)+" "+hex.EncodeToString(sum[:8]))
		}
	}

	prompts := make(map[string]string)
	for key, all := range digests {
		slices.Sort(all)
		sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
		prompts[key] = hex.EncodeToString(sum[:8])
	}
	return prompts, nil
}

// sample yields a model's first trials in each promptCell that is not in seen, and adds these to
// seen.
func sample(
	j *job.Job, model string, seen map[promptCell]map[assay.TaskID]bool,
) iter.Seq[assay.Trial] {
	mine := make(map[promptCell]map[assay.TaskID]bool)
	for c, n := range j.Plan.Cells(model) {
		if s := (promptCell{c.Variant, c.Severity, c.TaskType}); n > 0 && seen[s] == nil {
			mine[s] = make(map[assay.TaskID]bool)
		}
	}
	maps.Copy(seen, mine)
	return func(yield func(assay.Trial) bool) {
		open, visited := len(mine), 0
		for t := range j.Plan.Trials(model) {
			// Cells take turns, so the first trials cover all of them.
			if visited++; open == 0 || visited > 40*len(mine)*sampleSize {
				return
			}
			tasks := mine[promptCell{t.Variant, t.Severity, t.TaskType}]
			if tasks == nil || len(tasks) == sampleSize || tasks[t.Task] {
				continue
			}
			if tasks[t.Task] = true; len(tasks) == sampleSize {
				open--
			}
			if !yield(t) {
				return
			}
		}
	}
}

// Unplanned counts the attempts that runs with other plans of the experiment's name made at
// trials that are not planned now, by model and variant. The function ids returns the planned ones.
func Unplanned(
	ctx context.Context, db *store.DB, ids func() map[assay.TrialID]bool, e store.Experiment,
) (map[string]int, error) {
	if e.Plans < 2 {
		return nil, nil
	}
	planned := ids()
	counts := make(map[string]int)
	for a, err := range db.Attempts(ctx, store.Filter{Experiment: e.Name}) {
		if err != nil {
			return nil, err
		}
		if !planned[a.ID] {
			counts[a.Model+", "+report.PromptKey(a.Variant, a.Severity)]++
		}
	}
	return counts, nil
}
