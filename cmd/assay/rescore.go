package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/score"
)

func newRescore(p *process) *cobra.Command {
	var path string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "rescore",
		Short: "Judge stored transcripts again by today's rules",
		Long: `Rescore judges the transcript of every outcome in a store by the rules of this
program and stores what differs beside the attempt, which is never changed. From
then on reports and exports show the new verdicts; each names the version of the
rules that gave it.

A transcript is judged with its own task, so the libraries that the runs used have
to be where they were.`,
		Example: `  assay rescore --dry-run
  assay rescore --store results.db`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var sum rescored
			err := untilInterrupted(cmd.Context(), p, func(ctx context.Context) (err error) {
				sum, err = rescore(ctx, path, dry)
				return err
			})
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(p.out).Encode(sum)
			}
			writeRescored(p, sum, dry)
			return nil
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "say what would change, and store nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// rescored is what `assay rescore` says.
type rescored struct {
	// Outcomes are those that were judged.
	Outcomes int `json:"outcomes"`
	// Changed counts outcomes of which anything differs from what was stored,
	// their version too; Levels those whose level does, by "from → to".
	Changed    int            `json:"changed"`
	Levels     map[string]int `json:"levels"`
	Categories int            `json:"categories"`
	// Skipped counts outcomes that cannot be judged again, by the reason.
	Skipped map[string]int `json:"skipped"`
}

// rescoreBatch outcomes are stored at once.
const rescoreBatch = 256

func rescore(ctx context.Context, path string, dry bool) (sum rescored, err error) {
	open := openExisting
	if dry {
		open = store.OpenReadOnly
	}
	db, err := open(ctx, path)
	if err != nil {
		return sum, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tasks := newTaskBook(db)
	defer func() { err = errors.Join(err, tasks.close()) }()
	sum = rescored{Levels: make(map[string]int), Skipped: make(map[string]int)}
	var batch []store.Rescored
	save := func() error {
		if dry {
			batch = nil
		}
		err := db.Rescore(ctx, batch)
		batch = batch[:0]
		return err
	}
	for s, err := range db.Transcripts(ctx, store.Filter{OnlySettled: true}) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return sum, err
		}
		if err != nil || s.Transcript == nil {
			sum.Skipped["its transcript is missing or damaged"]++
			continue
		}
		if score.Version(s.Attempt.World) == "" {
			sum.Skipped[fmt.Sprintf("this program does not know the world %q", s.Attempt.World)]++
			continue
		}
		task, judge, err := tasks.task(ctx, &s.Attempt)
		if err != nil {
			if ctx.Err() != nil {
				return sum, err
			}
			sum.Skipped[err.Error()]++
			continue
		}
		sum.Outcomes++
		outcome := judge.Outcome(&s.Attempt.Trial, task, s.Transcript)
		if sum.differs(s.Attempt.Outcome, outcome) {
			batch = append(batch, store.Rescored{
				Trial: s.Attempt.ID, Number: s.Attempt.Number, Outcome: outcome, At: time.Now().UTC(), Program: version(),
			})
		}
		if len(batch) >= rescoreBatch {
			if err := save(); err != nil {
				return sum, err
			}
		}
	}
	return sum, save()
}

// openExisting opens a store to write, which brings one of an earlier version to
// today's, and makes none where there is none.
func openExisting(ctx context.Context, path string) (*store.DB, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return store.OpenReadOnly(ctx, path) // whose error says what to do
	}
	return store.Open(ctx, path, store.Options{})
}

// differs counts a change of an outcome, if there is one.
func (r *rescored) differs(before, after assay.Outcome) bool {
	if sameOutcome(before, after) {
		return false
	}
	r.Changed++
	if before.Level != after.Level {
		r.Levels[fmt.Sprintf("%s → %s", before.Level, after.Level)]++
	}
	if before.ErrorCategory != after.ErrorCategory {
		r.Categories++
	}
	return true
}

// sameOutcome compares as a store reads: an empty list is none.
func sameOutcome(a, b assay.Outcome) bool {
	for _, o := range []*assay.Outcome{&a, &b} {
		if len(o.RequiredTools) == 0 {
			o.RequiredTools = nil
		}
		if len(o.ExecutedTools) == 0 {
			o.ExecutedTools = nil
		}
	}
	return reflect.DeepEqual(a, b)
}

func writeRescored(p *process, sum rescored, dry bool) {
	verb := "were stored"
	if dry {
		verb = "would be stored"
	}
	fmt.Fprintf(p.out, "%d outcomes judged again by the rules %s; %d differ and %s\n",
		sum.Outcomes, strings.Join(score.Versions(), " and "), sum.Changed, verb)
	for _, change := range slices.Sorted(maps.Keys(sum.Levels)) {
		fmt.Fprintf(p.out, "  %6d  %s\n", sum.Levels[change], change)
	}
	if sum.Categories > 0 {
		fmt.Fprintf(p.out, "  %6d  another error category\n", sum.Categories)
	}
	for _, why := range slices.Sorted(maps.Keys(sum.Skipped)) {
		fmt.Fprintf(p.out, "  %6d  left as they are: %s\n", sum.Skipped[why], why)
	}
}

// A taskBook finds the tasks of stored attempts in the libraries that their
// runs used. Libraries stay open until close. It is safe for concurrent use.
type taskBook struct {
	db      *store.DB
	mu      sync.Mutex                       // guards what follows
	runs    map[assay.RunID]store.Experiment // nil until asked for
	shelves map[string]*shelf                // by path
}

// A shelf is an open library, or why it cannot be had.
type shelf struct {
	library *library.Library
	tasks   *job.TaskCache
	judge   *score.Judge
	err     error
}

func newTaskBook(db *store.DB) *taskBook {
	return &taskBook{db: db, shelves: make(map[string]*shelf)}
}

// task returns the task of an attempt and the judge for its library. An error
// says why it cannot be had.
func (b *taskBook) task(ctx context.Context, a *assay.Attempt) (*assay.Task, *score.Judge, error) {
	s, path, err := b.shelf(ctx, a.Run)
	if err == nil {
		err = s.err
	}
	if err != nil {
		return nil, nil, err
	}
	task, err := s.tasks.Task(ctx, &a.Trial)
	if err != nil {
		return nil, nil, fmt.Errorf("library %s no longer has its task as it was", path)
	}
	return task, s.judge, nil
}

// shelf returns the library that a run used, with its path.
func (b *taskBook) shelf(ctx context.Context, run assay.RunID) (*shelf, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.runs == nil {
		var err error
		if b.runs, err = b.db.Plans(ctx); err != nil {
			return nil, "", err
		}
	}
	path := b.runs[run].Library.Path
	if b.shelves[path] == nil {
		b.shelves[path] = openShelf(ctx, path)
	}
	return b.shelves[path], path, nil
}

func openShelf(ctx context.Context, path string) *shelf {
	if path == "" {
		path = plan.BuiltinLibrary
	}
	lib, err := job.OpenLibrary(ctx, path)
	if err != nil {
		return &shelf{err: fmt.Errorf("library %s cannot be opened", path)}
	}
	return &shelf{library: lib, tasks: job.NewTaskCache(lib), judge: score.New(lib.Catalog())}
}

func (b *taskBook) close() error {
	var errs []error
	for _, s := range b.shelves {
		if s.library != nil {
			errs = append(errs, s.library.Close())
		}
	}
	return errors.Join(errs...)
}
