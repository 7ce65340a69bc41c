package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// A tallied claim was true in some of a number of draws.
type tallied struct{ hits, of int }

func (t *tallied) add(hit bool) {
	t.of++
	if hit {
		t.hits++
	}
}

func (t tallied) plus(o tallied) tallied { return tallied{t.hits + o.hits, t.of + o.of} }

// row shows the share and its exact interval. The target is reached if the interval meets it.
func (t tallied) row(what string, low, high float64) row {
	a, b := t.interval()
	what = fmt.Sprintf("%s: %d of %d, %.1f–%.1f %%", what, t.hits, t.of, 100*a, 100*b)
	r := newRow(what, share, quotient(float64(t.hits), float64(t.of)))
	return r.aim(fmt.Sprintf("%g to", 100*low), high, b >= low && a <= high)
}

// interval returns the 95 % interval of Clopper and Pearson (Biometrika 26, 1934).
func (t tallied) interval() (low, high float64) {
	bound := func(k int) float64 { // the rate at which k or more hits have a probability of q
		q := .025
		if k > t.hits {
			q = .975
		}
		low, high := 0., 1.
		for range 50 {
			p, tail := (low+high)/2, 0.
			for i := k; i <= t.of; i++ {
				tail += binomial(t.of, i, p)
			}
			if tail < q {
				low = p
			} else {
				high = p
			}
		}
		return low
	}
	if t.hits > 0 {
		low = bound(t.hits)
	}
	high = 1
	if t.hits < t.of {
		high = bound(t.hits + 1)
	}
	return low, high
}

func binomial(n, k int, p float64) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return math.Exp(a - b - c + float64(k)*math.Log(p) + float64(n-k)*math.Log1p(-p))
}

// read runs assay with --json and decodes its output.
func (b *bench) read(ctx context.Context, into any, args ...string) error {
	out, err := b.command(ctx, b.assay, append(args, "--json")...).Output()
	if err != nil {
		return fmt.Errorf("assay %q: %w", args, err)
	}
	return json.Unmarshal(out, into)
}

// equals returns the designs of measurement 7a.
func equals() (designs []study) {
	var populations []study
	for _, tasks := range []int{20, 50, 100} {
		populations = append(populations, study{tasks: tasks}.independent())
	}
	for _, sequences := range []int{13, 25, 50} {
		populations = append(populations, study{tasks: 3 * sequences}.clustered(sequences))
	}
	for _, s := range populations {
		for _, s.conditions = range []int{1, 4} {
			for _, s.unequal = range []bool{false, true} {
				s.repeats = 1
				if s.unequal {
					s.repeats = 3
				}
				s.name = s.population() + ", " + s.condition() + ", " + s.repeat()
				designs = append(designs, s)
			}
		}
	}
	return designs
}

func (s study) population() string {
	if s.sequences > 0 {
		return fmt.Sprintf("%d sequences of tools", s.sequences)
	}
	return fmt.Sprintf("%d tasks", s.tasks)
}

func (s study) condition() string {
	if s.conditions > 1 {
		return "four conditions"
	}
	return "one condition"
}

func (s study) repeat() string {
	if s.unequal {
		return "unequal repeats"
	}
	return "equal repeats"
}

// cluster is the value of --cluster for the study.
func (s study) cluster() string {
	if s.sequences > 0 {
		return "sequence"
	}
	return "task"
}

// comparisons is measurement 7a: how often `assay compare` calls equal models different.
func (b *bench) comparisons(ctx context.Context) (rows []row, err error) {
	sums := make(map[string]tallied)
	order := []string{
		"all", "one condition", "four conditions", "equal repeats", "unequal repeats",
		"tasks are independent", "tasks have common sequences",
	}
	designs := equals()
	for _, s := range designs[:b.size(len(designs), 4)] {
		different, err := b.callDifferent(ctx, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, different.row(s.name, .03, .06))
		of := order[5]
		if s.sequences > 0 {
			of = order[6]
		}
		for _, sum := range []string{order[0], s.condition(), s.repeat(), of} {
			sums[sum] = sums[sum].plus(different)
		}
	}
	for _, name := range order {
		rows = append(rows, sums[name].row("p < .05: "+name, .03, .06))
	}
	return rows, nil
}

// callDifferent compares the pairs of a study. They are in several stores, because a comparison
// reads all of its store.
func (b *bench) callDifferent(ctx context.Context, s study) (different tallied, err error) {
	pairs, stores := b.size(14, 2), b.size(4, 1)
	for i := range stores {
		s.models = slices.Concat(numbered("a", i*pairs, pairs), numbered("b", i*pairs, pairs))
		path, err := b.store(ctx, s)
		if err != nil {
			return different, err
		}
		for i := range pairs {
			var c struct{ Whole struct{ P float64 } }
			err := b.read(ctx, &c, "compare", "model:"+s.models[i], "model:"+s.models[pairs+i],
				"--store", path, "--cluster", s.cluster())
			if err != nil {
				return different, err
			}
			different.add(c.Whole.P < .05)
		}
	}
	return different, nil
}

// intervals is measurement 7b: how often the interval of a rate in `assay report` holds the rate of
// the population.
func (b *bench) intervals(ctx context.Context) (rows []row, err error) {
	measure := func(s study, cluster string) (held tallied, err error) {
		s.name, s.conditions = s.population(), 1
		s.models = numbered("a", 0, b.size(1200/max(3, s.tasks/20), 4))
		path, err := b.store(ctx, s)
		if err != nil {
			return held, err
		}
		var report struct {
			Rows []struct {
				Interval struct{ Low, High float64 } `json:"full_success_95"`
			}
		}
		err = b.read(ctx, &report, "report", "--store", path, "--cluster", cluster)
		for _, r := range report.Rows {
			held.add(r.Interval.Low <= s.rate() && s.rate() <= r.Interval.High)
		}
		return held, err
	}
	for _, tasks := range []int{20, 50, 100} {
		held, err := measure(study{tasks: tasks, repeats: 3}.independent(), "task")
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("intervals that hold the rate: %d tasks of 3 repeats", tasks)
		rows = append(rows, held.row(what, .94, .97))
	}
	for _, sequences := range []int{13, 25, 50} {
		s := study{tasks: 400, repeats: 1}.clustered(sequences)
		s.own = 0
		at, err := measure(s, "task")
		if err != nil {
			return nil, err
		}
		held, err := measure(s, "sequence")
		if err != nil {
			return nil, err
		}
		what := fmt.Sprintf("intervals that hold the rate: %d sequences of 400 tasks", sequences)
		by := at.row(what+", by task", .94, .97)
		by.Aim = nil
		rows = append(rows, held.row(what, .94, .97), by)
	}
	return rows, nil
}

// alarms is measurement 7c: how often a report wonders that two equally good variants have the same
// result at each of 20 tasks.
func (b *bench) alarms(ctx context.Context) ([]row, error) {
	s := study{name: "alarms", tasks: 20, conditions: 1, repeats: 1, mean: math.Log(19)}
	s.variants = []string{"baseline", "optimal"}
	s.models = numbered("a", 0, b.size(200, 10))
	path, err := b.store(ctx, s)
	if err != nil {
		return nil, err
	}
	var report struct {
		Variants []struct {
			P     float64
			OnlyA int `json:"only_a"`
			OnlyB int `json:"only_b"`
		} `json:"variant_comparisons"`
		Warnings []struct {
			Kind  string
			Where []string
		}
	}
	if err := b.read(ctx, &report, "report", "--store", path); err != nil {
		return nil, err
	}
	var alike, different, alarmed tallied
	for _, v := range report.Variants {
		alike.add(v.OnlyA+v.OnlyB == 0)
		different.add(v.P < .05)
	}
	for _, w := range report.Warnings {
		if w.Kind == "no_difference" {
			alarmed.hits = len(w.Where)
		}
	}
	alarmed.of = alike.of
	const at = "20 tasks at 95 %, one trial: "
	same, p := alike.row(at+"no task differs", 0, 1), different.row(at+"p < .05", 0, .06)
	same.Aim = nil
	return []row{same, alarmed.row(at+"false alarms about that", 0, 0), p}, nil
}
