package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

// verified is what `assay verify` says.
type verified struct {
	mark     string          // the file that keeps runs away, where the store is damaged
	Store    string          `json:"store"`
	Snapshot string          `json:"snapshot"`
	Problems []store.Problem `json:"problems"`
	store.Proof
	// Rescored outcomes were judged again; Unjudged could not be, by the reason.
	Rescored int            `json:"rescored"`
	Unjudged map[string]int `json:"not_rescored"`
}

func newVerify(p *process) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Prove that a store is whole",
		Long: `Verify reads everything in a store once and holds it against all that is known of
it: the file and its tables, each row against its seal, each trial against its ID,
each transcript against the score that it gave, that nothing is missing that nobody
deleted, that trials are settled once, that models, variants, task types and
reliabilities are those of the run's experiment, and that whoever answered was the
model that was ordered.

It changes no row. Where something is wrong it says what, where and what to do,
leaves a file beside the store that keeps runs from writing to it, and ends with
exit code 1. The store can still be read, and "assay recover" copies what is whole.
A run that has not ended is not known to be whole: what it had last may be cut off.`,
		Example: `  assay verify
  assay verify --store results.db --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			v, unmarked, err := verifyStore(cmd.Context(), p, path)
			if err != nil {
				return err
			}
			if asJSON {
				err = json.NewEncoder(p.out).Encode(v)
			} else {
				err = v.write(p)
			}
			if unmarked != nil {
				fmt.Fprintf(p.err, "assay: %v\nhint: where the store lies nothing can be written, so nothing keeps a run from writing to a copy of it\n", unmarked)
			}
			if err == nil && len(v.Problems) > 0 {
				err = &codedError{code: exitError}
			}
			return err
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// verifyStore proves a store, and says beside what it found why that could not be left
// beside the store.
func verifyStore(ctx context.Context, p *process, path string) (v *verified, unmarked, err error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SkipDamage(func(error) {}) // of which the proof itself tells
	const tries = 3
	for try := 1; ; try++ {
		v, err = proveStore(ctx, p, db, path)
		if !errors.Is(err, store.ErrChanged) || try == tries {
			break
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if unmarked = db.MarkDamaged(v.Problems); unmarked == nil {
		v.mark = db.MarkPath()
	}
	return v, unmarked, nil
}

func proveStore(ctx context.Context, p *process, db *store.DB, path string) (v *verified, err error) {
	v = &verified{Store: path, Problems: []store.Problem{}}
	if v.Snapshot, err = db.Snapshot(ctx); err != nil {
		v.Snapshot = "unknown" // which Verify says more of
	}
	i := &inspector{ctx: ctx, tasks: newTaskBook(db), unjudged: make(map[string]int)}
	defer func() { err = errors.Join(err, i.tasks.close()) }()
	if i.plans, err = db.Plans(ctx); err != nil {
		i.plans = nil
	}
	show := p.progress("verifying")
	v.Proof, err = db.Verify(ctx, i.inspect, func(found store.Problem) { v.Problems = append(v.Problems, found) }, show.at)
	show.end()
	v.Rescored, v.Unjudged = i.judged, i.unjudged
	return v, err
}

// An inspector looks at what attempts say. It is used by several goroutines.
type inspector struct {
	ctx   context.Context
	plans map[assay.RunID]store.Experiment
	tasks *taskBook

	mu       sync.Mutex // guards what follows
	levels   map[assay.RunID]*levels
	judged   int
	unjudged map[string]int
}

// levels are those that an experiment may have, nil for what is not known.
type levels struct {
	models, variants, severities, types []string
	reliabilities                       []float64
	serves                              map[string][]string
}

func (i *inspector) inspect(s *store.Stored) (problems []store.Problem) {
	a := &s.Attempt
	complain := func(check, do, format string, args ...any) {
		problems = append(problems, store.Problem{
			Check: check, Where: fmt.Sprintf("attempt %d at trial %s", a.Number, a.ID), What: fmt.Sprintf(format, args...), Do: do,
		})
	}
	const foreign = "it did not come from that run; go back to a backup, or delete it with \"assay delete\""
	l := i.levelsOf(a.Run)
	for _, f := range []struct {
		name, value string
		known       []string
	}{
		{"model", a.Model, l.models},
		{"variant", a.Variant, l.variants},
		{"severity", a.Severity, l.severities},
		{"task type", a.TaskType, l.types},
	} {
		if f.known != nil && !slices.Contains(f.known, f.value) {
			complain("known", foreign, "its %s %q is none of its run's experiment", f.name, f.value)
		}
	}
	if l.reliabilities != nil && !slices.Contains(l.reliabilities, a.Reliability) {
		complain("known", foreign, "its reliability %s is none of its run's experiment", assay.FormatReliability(a.Reliability))
	}
	if !a.Settles() {
		return problems
	}
	if names, ok := l.serves[a.Model]; ok {
		foreign := func(served string) bool {
			return !slices.ContainsFunc(names, func(n string) bool { return lane.Matches(n, served) })
		}
		if served := a.Served(); len(served) == 0 || slices.ContainsFunc(served, foreign) {
			complain("served model", "its result is another model's; delete it, so that the trial is pending again", "%q answered, and %s was ordered", a.ServedModel, strings.Join(names, " or "))
		}
	}
	if full := a.Level == assay.FullSuccess; full != (a.ErrorCategory == "") || !full && !slices.Contains(assay.ErrorCategories, a.ErrorCategory) {
		complain("category", "\"assay rescore\" judges it again", "its level is %s and its error category %q", a.Level, a.ErrorCategory)
	}
	i.rescore(s, complain)
	return problems
}

// rescore judges the transcript again and compares.
func (i *inspector) rescore(s *store.Stored, complain func(check, do, format string, args ...any)) {
	a := &s.Attempt
	skip := func(why string) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.unjudged[why]++
	}
	switch {
	case s.Transcript == nil:
		skip("there is no transcript")
		return
	case a.ScoreVersion != score.Version(a.World):
		skip(fmt.Sprintf("the rules %s judged them, and today's are %s", a.ScoreVersion, score.Version(a.World)))
		return
	}
	task, judge, err := i.tasks.task(i.ctx, a)
	if err != nil {
		skip(err.Error())
		return
	}
	again := judge.Outcome(&a.Trial, task, s.Transcript)
	i.mu.Lock()
	i.judged++
	i.mu.Unlock()
	if !sameOutcome(a.Outcome, again) {
		complain("score", "one of the two was changed; go back to a backup", "its transcript gives %s, and %s is stored", outcomeText(again), outcomeText(a.Outcome))
	}
}

// outcomeText names what differs most often.
func outcomeText(o assay.Outcome) string {
	text := fmt.Sprintf("%s (%s, %d turns, %d calls", o.Level, o.Ended, o.Turns, o.ToolCalls)
	if o.ErrorCategory != "" {
		text += ", " + o.ErrorCategory
	}
	return text + ")"
}

func (i *inspector) levelsOf(run assay.RunID) *levels {
	i.mu.Lock()
	defer i.mu.Unlock()
	if l := i.levels[run]; l != nil {
		return l
	}
	if i.levels == nil {
		i.levels = make(map[assay.RunID]*levels)
	}
	l := &levels{serves: i.plans[run].Serves}
	i.levels[run] = l
	var spec plan.Experiment
	if json.Unmarshal(i.plans[run].Spec, &spec) != nil || len(spec.Models) == 0 {
		return l
	}
	l.models = spec.Models
	l.severities = []string{""}
	for _, f := range spec.EachFactors() {
		l.variants = append(l.variants, f.Variants...)
		l.severities = append(l.severities, f.Severities...)
		l.types = append(l.types, f.TaskTypes...)
		l.reliabilities = append(l.reliabilities, f.Reliabilities...)
	}
	return l
}

func (v *verified) write(p *process) error {
	var b strings.Builder
	const most = 50
	for n, problem := range v.Problems {
		if n == most {
			fmt.Fprintf(&b, "… and %d more; --json lists all\n", len(v.Problems)-most)
			break
		}
		fmt.Fprintf(&b, "%s: %s: %s\n    → %s\n", problem.Check, problem.Where, problem.What, problem.Do)
	}
	if len(v.Problems) > 0 {
		fmt.Fprintln(&b)
	}
	fmt.Fprintf(&b, "%s, snapshot %s: %d trials, %d attempts, %d outcomes, %d transcripts; %d scores proved by their transcripts\n",
		v.Store, v.Snapshot, v.Trials, v.Attempts, v.Outcomes, v.Transcripts, v.Rescored)
	for _, why := range slices.Sorted(maps.Keys(v.Unjudged)) {
		fmt.Fprintf(&b, "%d scores are not proved: %s\n", v.Unjudged[why], why)
	}
	for _, n := range []struct {
		n    int
		text string
	}{
		{v.Unsealed, "attempts are older than seals; a change that leaves them plausible would not be found"},
		{v.Deleted, "attempts were deleted on purpose"},
		{v.Dropped, "transcripts were deleted on purpose"},
		{v.Lost, "transcripts were lost before, and a recovery kept their attempts"},
	} {
		if n.n > 0 {
			fmt.Fprintf(&b, "%d %s\n", n.n, n.text)
		}
	}
	damage := 0
	for _, problem := range v.Problems {
		if problem.Damage {
			damage++
		}
	}
	switch n := len(v.Problems); {
	case damage > 0 && v.mark != "":
		fmt.Fprintf(&b, "%s: the store is damaged, and no run writes to it while %s is there.\n", counted(n, "problem"), v.mark)
	case damage > 0:
		fmt.Fprintf(&b, "%s: the store is damaged.\n", counted(n, "problem"))
	case n > 0:
		fmt.Fprintf(&b, "%s: the store is as it was written, but what it says cannot be right.\n", counted(n, "problem"))
	default:
		fmt.Fprintln(&b, "The store is whole.")
	}
	_, err := fmt.Fprint(p.out, b.String())
	return err
}

// openToRead opens a store for reading as far as it can be read, and tells what
// cannot.
func (p *process) openToRead(ctx context.Context, path string) (*store.DB, error) {
	db, err := p.openForOne(ctx, path)
	if err != nil {
		return nil, err
	}
	if err := db.SkipGone(ctx); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// openForOne is openToRead for what does not go through all attempts.
func (p *process) openForOne(ctx context.Context, path string) (*store.DB, error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	if db.MarkedDamaged() {
		fmt.Fprintf(p.err, "assay: %s is damaged, says \"assay verify\"; what follows is of what can be read\n", path)
	}
	const most = 10
	n := 0
	db.SkipDamage(func(err error) {
		switch n++; {
		case n <= most:
			fmt.Fprintf(p.err, "assay: skipped %s\n", strings.SplitN(err.Error(), "\n", 2)[0])
		case n == most+1:
			fmt.Fprintln(p.err, "assay: more attempts cannot be read; \"assay verify\" lists them")
		}
	})
	return db, nil
}

// unread says that attempts could not be read, or nothing.
func unread(n int) string {
	if n == 0 {
		return ""
	}
	return counted(n, "attempt") + " cannot be read"
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
