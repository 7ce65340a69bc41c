package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
)

// profiled is the model of the studies. With random=1 its trials are independent, so what is true of it are
// the figures of all tasks in many repeats. Others follow from its name: hurt_by_phrasing=0.25 leaves 75 %.
const profiled = sim.Made + ":right_arguments=0.93+retries=0.7+follows_flaw=0.6+claims_falsely=0.5+random=1" +
	"+hurt_by_phrasing=0.25+hurt_by_interface=0.2+confident_right=0.85+confident_wrong=0.5"

// A profileStudy draws experiments from the file of one.
type profileStudy struct {
	text, dir string
	// truth has the values of the measures for all tasks of the file's library.
	truth map[*report.Measure]float64
	// hurts remembers whether flaws hurt, which takes much longer than a trial.
	hurts sync.Map
}

// A flawedPlan is one whose flaw may hurt.
type flawedPlan struct {
	task              assay.TaskID
	variant, severity string
	reliability       float64
	faults            string
}

// remembering returns the same function, which asks about each plan once.
func (s *profileStudy) remembering(hurts func(*assay.Trial) bool) func(*assay.Trial) bool {
	return func(t *assay.Trial) bool {
		key := flawedPlan{t.Task, t.Variant, t.Severity, t.Reliability, t.Faults}
		known, ok := s.hurts.Load(key)
		if !ok {
			known, _ = s.hurts.LoadOrStore(key, hurts(t))
		}
		return known.(bool)
	}
}

// profileMeasures are those of a profile that have an interval.
func profileMeasures() []*report.Measure {
	return slices.Concat(report.Tables["profile"], report.Tables["variance"], []*report.Measure{report.Overconfidence},
		report.Tables["robustness"])
}

// An errorTally sums up the errors of an estimate, which are estimate less truth.
type errorTally struct {
	studies, covers int
	sum, square     float64
}

func (t *errorTally) add(v report.Value, truth float64) {
	d := v.Number - truth
	t.studies++
	t.sum, t.square = t.sum+d, t.square+d*d
	if v.Interval.Low <= truth && truth <= v.Interval.High {
		t.covers++
	}
}

// mean returns the mean error and its standard error.
func (t *errorTally) mean() (mean, se float64) {
	n := float64(t.studies)
	mean = t.sum / n
	return mean, math.Sqrt(max(0, t.square/n-mean*mean) / n)
}

// studyProfile prints how far the figures of a profile are from the truth, and how often their intervals
// hold it. The experiment is the suite profile, or a like one with tools of one's own. Its truth comes from
// all tasks of its library, played so many times with luck of their own.
func studyProfile(ctx context.Context, out io.Writer, own bool, studies, plays int, sizes []int) error {
	dir, err := os.MkdirTemp("", "levels")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	text := string(plan.SuiteFile("profile"))
	if own {
		if text, err = ownLibrary(dir); err != nil {
			return err
		}
	}
	s := &profileStudy{text: text, dir: dir, truth: make(map[*report.Measure]float64)}
	for n := range plays { // further repeats within one would count in other conditions, too
		all, err := s.play(ctx, 1_000_000+n, "all")
		if err != nil {
			return err
		}
		for m, v := range all {
			s.truth[m] += v.Number / float64(plays)
		}
	}
	log.Print("the truth is known")
	fmt.Fprint(out, "| figure | true value |")
	for _, n := range sizes {
		fmt.Fprintf(out, " %d tasks of each type: mean error (standard error) | holds the truth |", n)
	}
	fmt.Fprintf(out, "\n|---|--:|")
	for range sizes {
		fmt.Fprint(out, "--:|--:|")
	}
	fmt.Fprintln(out)
	sums := make(map[*report.Measure][]errorTally)
	for m := range s.truth {
		sums[m] = make([]errorTally, len(sizes))
	}
	for i, size := range sizes {
		if err := s.repeat(ctx, studies, size, func(m *report.Measure, v report.Value) {
			sums[m][i].add(v, s.truth[m])
		}); err != nil {
			return err
		}
		log.Printf("%d tasks of each type: done", size)
	}
	for _, m := range profileMeasures() {
		if sums[m] == nil {
			continue
		}
		fmt.Fprintf(out, "| %s | %.1f |", m.Heads[0], 100*s.truth[m])
		for _, t := range sums[m] {
			mean, se := t.mean()
			fmt.Fprintf(out, " %+.2f (%.2f) | %.1f %% |", 100*mean, 100*se, 100*float64(t.covers)/float64(t.studies))
		}
		fmt.Fprintln(out)
	}
	return nil
}

// repeat plays studies with so many tasks, two at a time.
func (s *profileStudy) repeat(ctx context.Context, studies, tasks int, add func(*report.Measure, report.Value)) error {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for seed := range studies {
		group.Go(func() error {
			values, err := s.play(ctx, seed+1, fmt.Sprint(tasks))
			if err != nil {
				return fmt.Errorf("study %d of %d tasks: %w", seed, tasks, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for m, v := range values {
				add(m, v)
			}
			return nil
		})
	}
	return group.Wait()
}

var (
	seedField  = regexp.MustCompile(`(?m)^seed:.*$`)
	tasksField = regexp.MustCompile(`(?m)^tasks_per_type:.*$`)
)

// play plays an experiment with so many tasks of each type, and returns what its report says of the model.
func (s *profileStudy) play(ctx context.Context, seed int, tasks string) (map[*report.Measure]report.Value, error) {
	text := seedField.ReplaceAllString(s.text, fmt.Sprint("seed: ", seed))
	text = tasksField.ReplaceAllString(text, "tasks_per_type: "+tasks) + "\nmodels: [\"" + profiled + "\"]\n"
	path := filepath.Join(s.dir, fmt.Sprintf("%d-%s.yaml", seed, tasks))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return nil, err
	}
	e, err := plan.Load(path)
	if err != nil {
		return nil, err
	}
	j, err := job.Open(ctx, e, 0)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	design := query.Design(ctx, j)
	design.Hurts = s.remembering(design.Hurts)
	design.Survivable, design.Winnable, design.Open = nil, nil, nil // no measure of a profile needs them
	a, err := design.Analyze(e.Name, j.Trials(), attempts(ctx, j), report.Beside{})
	if err != nil {
		return nil, err
	}
	values := make(map[*report.Measure]report.Value)
	for _, g := range []*report.Grid{a.Profile, a.Robustness} {
		for _, row := range g.All() {
			for _, m := range profileMeasures() {
				if v := row.Get(m); v.Known && v.Interval != nil {
					values[m] = v
				}
			}
		}
	}
	return values, nil
}

// attempts plays the trials of an experiment, in any order.
func attempts(ctx context.Context, j *job.Job) func(yield func(assay.Attempt, error) bool) {
	models := sim.New(j.Library.Catalog(), sim.Latency{}).Knowing(j.Library.Answer).KnowingTasks(j.Library.Described)
	runner := episode.NewRunner(j.Library.Catalog(), 0)
	return func(yield func(assay.Attempt, error) bool) {
		played := make(chan assay.Attempt, 100)
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(runtime.GOMAXPROCS(0))
		go func() {
			defer close(played)
			for trial := range j.Trials() {
				group.Go(func() error {
					task, err := j.Library.TaskOf(ctx, &trial)
					if err == nil {
						a, _ := runner.Run(ctx, models, &trial, &task)
						played <- *a
					}
					return err
				})
			}
			_ = group.Wait() // it returns the same error again below
		}()
		for a := range played {
			if !yield(a, nil) {
				panic("levels: a report has not read all attempts")
			}
		}
		if err := group.Wait(); err != nil {
			yield(assay.Attempt{}, err)
		}
	}
}
