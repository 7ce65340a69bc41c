package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A cell is a planned cell with the results of its trials.
type cell struct {
	assay.Cell
	// sampling is the sampling of the cell's trials, which attempts may lack.
	sampling assay.Sampling
	// runs counts the outcomes of each run.
	runs map[assay.RunID]int
	tally
}

// A task numbers tasks in the order in which they were met.
type task int32

// An outcome is the attempt that settles a trial, with what the plan of the experiment knows of the
// trial.
type outcome struct {
	*assay.Attempt
	task task
	// floor is the chance of a policy without skill, if it is known. For measured outcomes it is at
	// most the ceiling.
	floor      float64
	floorKnown bool
	trialFacts
}

// trialFacts are the facts of a trial that its attempts do not have; see [Design].
type trialFacts struct {
	hurts      bool // the plan has a flaw that hurts
	survivable bool // the right plan is shown, and survives the faults of tools
	open       bool // the best policy's chance is unknown
	winnable   bool // the best policy succeeds with the luck
}

// What is counted is declared where a figure is, by count, amount, paid, tag and histogram. Each call
// reserves a place in all tallies.
type (
	countKind     int // outcomes of a kind, by task
	amountKind    int // a sum
	tagKind       int // counts by name
	histogramKind int // a distribution
)

// outcomes counts outcomes of trials by kind. They are kept for each task of each cell, so that their
// number decides the memory of a report.
type outcomes [maxCounts]int32

// The places in tallies.
const (
	maxCounts  = 30
	maxAmounts = 44
	maxTags    = 16
)

// An adder adds what a declaration says of an attempt to a tally.
type adder func(*tally, *outcome)

var (
	counts []func(*outcome) bool
	// ofAll adds every attempt, and ofOutcomes those that settle a trial.
	ofAll, ofOutcomes         []adder
	amounts, tags, histograms int // how many there are
)

// place reserves the next place of n.
func place(n *int, most int) int {
	if *n == most {
		panic(fmt.Sprintf("report: more than %d declarations of one kind", most))
	}
	*n++
	return *n - 1
}

func count(is func(*outcome) bool) countKind {
	n := len(counts)
	at := place(&n, maxCounts)
	counts = append(counts, is)
	return countKind(at)
}

func amountOf(some *[]adder, of func(*outcome) float64) amountKind {
	k := amountKind(place(&amounts, maxAmounts))
	*some = append(*some, func(t *tally, o *outcome) { t.amounts[k] += of(o) })
	return k
}

func amount(of func(*outcome) float64) amountKind { return amountOf(&ofOutcomes, of) }

// paid adds up a figure of all attempts, whatever their end.
func paid(of func(*assay.Attempt) float64) amountKind {
	return amountOf(&ofAll, func(o *outcome) float64 { return of(o.Attempt) })
}

// A spender is who has spent something in an attempt: its agent or its simulated user.
type spender func(*assay.Attempt) assay.Spend

func ofAgent(a *assay.Attempt) assay.Spend { return a.Spend }

// money adds up dollars of all attempts in billionths; see [assay.RoundUSD].
func money(by spender) amountKind {
	return paid(func(a *assay.Attempt) float64 { return math.Round(1e9 * by(a).CostUSD) })
}

// tokens adds up tokens of all attempts.
func tokens(by spender, of func(assay.Spend) int) amountKind {
	return paid(func(a *assay.Attempt) float64 { return float64(of(by(a))) })
}

// howMany counts outcomes that need no interval, and so no count for each task.
func howMany(is func(*outcome) bool) amountKind {
	return amount(func(o *outcome) float64 { return float64(flag(is(o))) })
}

func tag(of func(o *outcome, add func(name string, n int))) tagKind {
	k := tagKind(place(&tags, maxTags))
	ofOutcomes = append(ofOutcomes, func(t *tally, o *outcome) {
		of(o, func(name string, n int) { bump(&t.tags[k], name, n) })
	})
	return k
}

// named counts attempts by a name. Those without one are not counted.
func named(some *[]adder, of func(*outcome) string) tagKind {
	k := tagKind(place(&tags, maxTags))
	*some = append(*some, func(t *tally, o *outcome) {
		if name := of(o); name != "" {
			bump(&t.tags[k], name, 1)
		}
	})
	return k
}

// withNames counts outcomes by each name of a list.
func withNames(of func(*outcome) []string) tagKind {
	return tag(func(o *outcome, add func(string, int)) {
		for _, name := range of(o) {
			add(name, 1)
		}
	})
}

func histogram(of func(*outcome) int) histogramKind {
	k := histogramKind(place(&histograms, maxTags))
	ofOutcomes = append(ofOutcomes, func(t *tally, o *outcome) { bump(&t.histograms[k], of(o), 1) })
	return k
}

// A play tells the trials of a task in a cell apart.
type play struct{ repeat, replay int }

// A tally has the sums of some trials.
type tally struct {
	planned int
	// first is the play of the first trial. repeated is true if other trials have others.
	first    play
	repeated bool
	// all counts the outcomes, and tasks the outcomes of each task.
	all        outcomes
	tasks      map[task]outcomes
	from       *population[task] // all tasks of the experiment
	amounts    [maxAmounts]float64
	tags       [maxTags]map[string]int
	histograms [maxTags]map[int]int
	errors     map[taskCause]int // causes of trials without full success
	met        assay.FaultCount  // by all attempts
	// spent has the dollars of the attempts at each task of the trials that models have in common.
	spent map[task]float64
	// doubted is true if a run was killed, so that some of the money may be unknown.
	doubted bool
	// blocked counts trials without an outcome by the first of [contentFaults] that they have met.
	blocked [len(contentFaults)]int
}

// n returns the number of outcomes of a kind.
func (t *tally) n(kind countKind) int { return int(t.all[kind]) }

// count adds outcomes of a task.
func (t *tally) count(of task, some outcomes) {
	if t.tasks == nil {
		t.tasks = make(map[task]outcomes)
	}
	at := t.tasks[of]
	for k, n := range some {
		at[k] += n
		t.all[k] += n
	}
	t.tasks[of] = at
}

func (t *tally) plan(repeat, replay int) {
	this := play{repeat, replay}
	if t.planned == 0 {
		t.first = this
	}
	t.repeated = t.repeated || this != t.first
	t.planned++
}

// pay counts an attempt, whatever its end.
func (t *tally) pay(o *outcome) {
	for _, add := range ofAll {
		add(t, o)
	}
	t.met.Add(o.Attempt)
}

// settle counts an outcome. It returns the kinds of the outcome as bits.
func (t *tally) settle(o *outcome) (kinds uint32) {
	t.from.add(o.task, strings.Join(o.RequiredTools, " "))
	var one outcomes
	for k, is := range counts {
		one[k] = flag(is(o))
		kinds |= uint32(one[k]) << k
	}
	t.count(o.task, one)
	for _, add := range ofOutcomes {
		add(t, o)
	}
	if one[full] == 0 {
		bump(&t.errors, taskCause{o.Cause, o.task}, 1)
	}
	return kinds
}

// groups counts outcomes by task or by sequence of tools, in the order of tasks.
func (t *tally) groups(count func(task, outcomes) (some, of int32)) []stat.Group {
	return t.from.groups(slices.Sorted(maps.Keys(t.tasks)), func(at task) stat.Group {
		some, of := count(at, t.tasks[at])
		return stat.Group{Full: int(some), N: int(of)}
	})
}

// share computes a rate over tasks, with an interval that accounts for repeats within tasks. count
// returns the counted outcomes of a task and the number that they are a share of.
func (t *tally) share(count func(task, outcomes) (some, of int32)) Share {
	groups := t.groups(count)
	r := stat.Clustered(groups, .95)
	s := Share{Rate: r.Rate, Interval: r.Interval}
	for _, g := range groups {
		s.Count += g.Full
		s.Of += g.N
	}
	return s
}

// byTask counts full successes among all outcomes.
func (t *tally) byTask() []stat.Group {
	return t.groups(func(_ task, o outcomes) (some, of int32) { return o[full], o[done] })
}

// among computes the share of outcomes of some kinds among the outcomes of another kind.
func (t *tally) among(all countKind, some ...countKind) Share {
	return t.share(func(_ task, o outcomes) (n, of int32) {
		for _, k := range some {
			n += o[k]
		}
		return n, o[all]
	})
}

// failedBy computes the share of a cause among the trials that did not fully succeed.
func (t *tally) failedBy(cause assay.Cause) Share {
	return t.share(func(of task, o outcomes) (int32, int32) {
		return int32(t.errors[taskCause{cause, of}]), o[done] - o[full]
	})
}

// causes returns the causes that occurred, in the order of tables.
func (t *tally) causes() []assay.Cause {
	all := []assay.Cause{}
	for m := range t.errors {
		all = append(all, m.cause)
	}
	slices.SortFunc(all, func(a, b assay.Cause) int {
		return cmp.Compare(slices.Index(assay.Causes, a), slices.Index(assay.Causes, b))
	})
	return slices.Compact(all)
}

// sum merges the tallies of cells.
func sum(cells []*cell) (total tally) {
	for _, c := range cells {
		total.merge(&c.tally)
	}
	return total
}

func bump[K comparable, N int | float64](counts *map[K]N, k K, n N) {
	if *counts == nil {
		*counts = make(map[K]N)
	}
	(*counts)[k] += n
}

func bumpAll[K comparable, N int | float64](counts *map[K]N, more map[K]N) {
	for k, n := range more {
		bump(counts, k, n)
	}
}

// merge adds the counts of other trials.
func (t *tally) merge(o *tally) {
	if t.planned == 0 {
		t.first = o.first
	}
	t.repeated = t.repeated || o.repeated || o.first != t.first
	t.planned += o.planned
	if t.from == nil {
		t.from = o.from
	}
	if t.tasks == nil && len(o.tasks) > 0 {
		t.tasks = make(map[task]outcomes, len(o.tasks))
	}
	for of, more := range o.tasks {
		t.count(of, more)
	}
	for k, v := range o.amounts {
		t.amounts[k] += v
	}
	for k := range o.tags {
		bumpAll(&t.tags[k], o.tags[k])
		bumpAll(&t.histograms[k], o.histograms[k])
	}
	bumpAll(&t.errors, o.errors)
	for i, n := range o.blocked {
		t.blocked[i] += n
	}
	t.met.Merge(o.met)
	bumpAll(&t.spent, o.spent)
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func (o outcomes) group() stat.Group { return stat.Group{Full: int(o[full]), N: int(o[done])} }

func isFull(l assay.Level) int32 { return flag(l == assay.FullSuccess) }
