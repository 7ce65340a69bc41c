package main

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A drawTally counts the draws in which a figure was such.
type drawTally struct{ hits, of int }

func (t drawTally) percent() float64 { return 100 * float64(t.hits) / float64(max(1, t.of)) }

func (t drawTally) compare(o drawTally) int { return cmp.Compare(t.percent(), o.percent()) }

func total(all []drawTally) (sum drawTally) {
	for _, t := range all {
		sum.hits, sum.of = sum.hits+t.hits, sum.of+t.of
	}
	return sum
}

// counts has the tallies of each figure, one for each number of repeats.
type counts map[string][]drawTally

func (c counts) add(more counts) {
	for name, all := range more {
		c[name] = append(c[name], all...)
	}
}

// note counts a draw.
func (c counts) note(name string, hit bool) {
	if c[name] == nil {
		c[name] = []drawTally{{}}
	}
	t := &c[name][0]
	t.of++
	if hit {
		t.hits++
	}
}

// The figures that are counted. The alarms come from experiments without effects.
const (
	alarm = "alarm: "
	gate  = "gate: "
	holds = "holds: "
)

var figures = []string{
	alarm + "best", alarm + "flawed plans", alarm + "worst flaw", alarm + "failing tools",
	alarm + "worst kind", alarm + "compare", alarm + "conditions",
	gate + "equal fails, similar", gate + "equal fails, these",
	gate + "worse by the margin passes, similar", gate + "worse by the margin passes, these",
	holds + "success", holds + "skill", holds + "recovery", holds + "false success",
	holds + "price", holds + "loss of none", holds + "loss by flawed plans",
	holds + "loss by failing tools", holds + "compare",
}

// count simulates experiments, half of them with effects.
func (f field) count(draws int, seed uint64) (counts, error) {
	r := rand.New(rand.NewPCG(seed, 2031))
	c := make(counts)
	truth := meanRate(r)
	for range draws {
		if err := f.null(r, c, truth); err != nil {
			return nil, err
		}
		if err := f.effect(r, c, truth); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// null counts the false alarms of an experiment in which nothing makes a difference.
func (f field) null(r *rand.Rand, c counts, rate float64) error {
	x := f.draw(r, effects{})
	rows, err := x.standings()
	if err != nil {
		return err
	}
	c.note(alarm+"best", slices.ContainsFunc(rows, func(s report.Standing) bool { return !s.Best }))
	s := rows[r.IntN(2)]
	c.note(alarm+"flawed plans", s.FlawedPlan.P < .05)
	c.note(alarm+"worst flaw", s.FlawedPlan.Kinds[0].Q < .05)
	c.note(alarm+"failing tools", s.FailingTools.P < .05)
	c.note(alarm+"worst kind", s.FailingTools.Kinds[0].Q < .05)
	c.note(holds+"loss of none", within(s.FlawedPlan.Lost, 0))
	c.noteRow(s, rate)

	compared, err := x.compare()
	if err != nil {
		return err
	}
	c.note(alarm+"compare", compared.Whole.P < .05)
	c.note(alarm+"conditions", compared.Whole.PConditions < .05)
	g, err := compared.Gate(terms(.05))
	if err != nil {
		return err
	}
	c.note(gate+"equal fails, similar", g.Similar.Verdict == report.Fail)
	c.note(gate+"equal fails, these", g.These.Verdict == report.Fail)
	return nil
}

// noteRow counts the intervals of a row that do not depend on effects.
func (c counts) noteRow(s report.Standing, rate float64) {
	in := func(i stat.Interval, truth float64) bool { return i.Low <= truth && truth <= i.High }
	c.note(holds+"success", in(s.Success.Interval, rate))
	c.note(holds+"skill", in(s.Skill.Interval, (rate-floorRate)/(ceilingRate-floorRate)))
	c.note(holds+"recovery", in(s.Recovery.Interval, rate))
	c.note(holds+"false success", in(s.FalseSuccess.Interval, claims))
	low, high, truth := s.Price.Low, s.Price.High, meanUSD/rate
	c.note(holds+"price", (low == nil || *low <= truth) && (high == nil || truth <= *high))
}

func within(l stat.Loss, truth float64) bool {
	return (l.Low == nil || *l.Low <= truth) && (l.High == nil || truth <= *l.High)
}

// effect counts the intervals and verdicts of an experiment with effects.
func (f field) effect(r *rand.Rand, c counts, rate float64) error {
	e := effects{flawed: .3, failing: .2, second: .15}
	x := f.draw(r, e)
	rows, err := x.standings()
	if err != nil {
		return err
	}
	s := rows[r.IntN(2)]
	c.note(holds+"loss by flawed plans", within(s.FlawedPlan.Lost, e.flawed))
	c.note(holds+"loss by failing tools", within(s.FailingTools.Lost, e.failing))
	compared, err := x.compare()
	if err != nil {
		return err
	}
	margin := rate * e.second * e.mean()
	i := compared.Whole.Interval
	c.note(holds+"compare", i.Low <= -margin && -margin <= i.High)
	g, err := compared.Gate(terms(margin))
	if err != nil {
		return err
	}
	c.note(gate+"worse by the margin passes, similar", g.Similar.Verdict == report.Pass)
	// These tasks lose another amount than tasks at large do.
	if g, err = compared.Gate(terms(x.mean * e.second * e.mean())); err != nil {
		return err
	}
	c.note(gate+"worse by the margin passes, these", g.These.Verdict == report.Pass)
	return nil
}

func terms(margin float64) report.Terms {
	return report.Terms{Tasks: report.Similar, Margin: margin, Look: report.Looks(1)[0]}
}
