package report

import (
	"cmp"
	"fmt"
	"maps"
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

// What is counted of outcomes is declared where a figure is, by count, amount, tag and histogram. Each
// call reserves a place in all tallies.
type (
	countKind     int // outcomes of a kind, by task
	amountKind    int // a sum over outcomes
	tagKind       int // counts by name
	histogramKind int // a distribution
)

// outcomes counts outcomes of trials by kind.
type outcomes [maxCounts]int32

// The places in tallies. outcomes are kept for each task of each cell, so that their number decides
// the memory of a report.
const (
	maxCounts  = 24
	maxAmounts = 20
	maxTags    = 12
)

var (
	counts     []func(*outcome) bool
	amounts    []func(*outcome) float64
	tags       []func(o *outcome, add func(name string, n int))
	histograms []func(*outcome) int
)

// place appends a declaration and returns its place.
func place[F any](all *[]F, f F, most int) int {
	if len(*all) == most {
		panic(fmt.Sprintf("report: more than %d declarations of one kind", most))
	}
	*all = append(*all, f)
	return len(*all) - 1
}

func count(is func(*outcome) bool) countKind { return countKind(place(&counts, is, maxCounts)) }

func amount(of func(*outcome) float64) amountKind {
	return amountKind(place(&amounts, of, maxAmounts))
}

// howMany counts outcomes that need no interval, and so no count for each task.
func howMany(is func(*outcome) bool) amountKind {
	return amount(func(o *outcome) float64 { return float64(flag(is(o))) })
}

func tag(of func(o *outcome, add func(name string, n int))) tagKind {
	return tagKind(place(&tags, of, maxTags))
}

// named counts outcomes by a name. Outcomes without one are not counted.
func named(of func(*outcome) string) tagKind {
	return tag(func(o *outcome, add func(string, int)) {
		if name := of(o); name != "" {
			add(name, 1)
		}
	})
}

func histogram(of func(*outcome) int) histogramKind {
	return histogramKind(place(&histograms, of, maxTags))
}

// A tally has the sums of some trials.
type tally struct {
	planned int
	// repeat is the number of the first trial's repeat. repeated is true if there are others.
	repeat   int
	repeated bool
	// all counts the outcomes, and tasks the outcomes of each task.
	all        outcomes
	tasks      map[task]outcomes
	bounds     map[task]bounds
	from       *population[task] // all tasks of the experiment
	amounts    [maxAmounts]float64
	tags       [maxTags]map[string]int
	histograms [maxTags]map[int]int
	errors     map[taskCause]int // causes of trials without full success
	// blocked counts trials without an outcome by the first of [contentFaults] that they have met.
	blocked [len(contentFaults)]int
	bill
}

// bounds are sums over the measured outcomes of a task whose floor is known.
type bounds struct {
	n, winnable, full int
	floor, ceiling    float64
}

func (b bounds) plus(o bounds) bounds {
	return bounds{
		b.n + o.n, b.winnable + o.winnable, b.full + o.full, b.floor + o.floor, b.ceiling + o.ceiling,
	}
}

// A bill is about all attempts, whatever their end.
type bill struct {
	faults     int
	faultKinds map[assay.FaultKind]int
	met        assay.FaultCount // by all attempts
	costUSD    float64
	usage      assay.Usage
	// spent adds up the dollars at each task, and unpriced the tokens of unknown cost.
	spent    map[task]float64
	unpriced map[task]int
	// uncertain counts the attempts with uncertain tokens, and uncertainUSD is the most that these
	// tokens cost.
	uncertain    int
	uncertainUSD float64
	// The model behind a simulated user is apart from costUSD and usage.
	userUSD                  float64
	userTokens, userUnpriced int
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

// only returns the cell with just the outcomes of a task that keep returns, and with the money that
// was spent on the tasks that are kept.
func (c *cell) only(keep func(task, outcomes) outcomes) *cell {
	some := &cell{Cell: c.Cell, tally: tally{from: c.from}}
	for of, o := range c.tasks {
		if kept := keep(of, o); kept[done] > 0 {
			some.count(of, kept)
			bumpBounds(&some.bounds, of, c.bounds[of])
			bump(&some.spent, of, c.spent[of])
			bump(&some.unpriced, of, c.unpriced[of])
		}
	}
	return some
}

func (t *tally) plan(repeat int) {
	if t.planned == 0 {
		t.repeat = repeat
	}
	t.repeated = t.repeated || repeat != t.repeat
	t.planned++
}

// pay counts an attempt at a task.
func (b *bill) pay(a *assay.Attempt, of task) {
	b.costUSD = assay.RoundUSD(b.costUSD + a.CostUSD)
	if a.CostUSD > 0 {
		bump(&b.spent, of, a.CostUSD)
	}
	if a.UnpricedTokens > 0 {
		bump(&b.unpriced, of, a.UnpricedTokens)
	}
	b.usage = b.usage.Add(a.Usage())
	b.userUSD = assay.RoundUSD(b.userUSD + a.UserCostUSD)
	b.userTokens += a.UserInputTokens + a.UserOutputTokens
	b.userUnpriced += a.UserUnpricedTokens
	if a.UncertainTokens > 0 {
		b.uncertain++
		share := float64(a.UncertainTokens) / float64(max(1, a.OutputTokens))
		b.uncertainUSD += a.CostUSD * min(1, share)
	}
	b.met.Add(a)
	if !a.OnlyCosts() && !a.Settles() {
		b.faults++
		bump(&b.faultKinds, a.FaultKind, 1)
	}
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
	if o.floorKnown && one[measured] > 0 {
		bumpBounds(&t.bounds, o.task,
			bounds{1, int(one[winnable]), int(one[full]), o.floor, o.Best})
	}
	for k, of := range amounts {
		t.amounts[k] += of(o)
	}
	for k, of := range tags {
		of(o, func(name string, n int) { bump(&t.tags[k], name, n) })
	}
	for k, of := range histograms {
		bump(&t.histograms[k], of(o), 1)
	}
	if one[full] == 0 {
		bump(&t.errors, taskCause{o.Cause, o.task}, 1)
	}
	return kinds
}

// bound adds up the bounds of all tasks, in their order so that sums are the same each time.
func (t *tally) bound() (b bounds) {
	for _, of := range slices.Sorted(maps.Keys(t.bounds)) {
		b = b.plus(t.bounds[of])
	}
	return b
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

func bumpBounds(all *map[task]bounds, of task, b bounds) {
	if *all == nil {
		*all = make(map[task]bounds)
	}
	if b.n > 0 {
		(*all)[of] = (*all)[of].plus(b)
	}
}

func bumpAll[K comparable, N int | float64](counts *map[K]N, more map[K]N) {
	for k, n := range more {
		bump(counts, k, n)
	}
}

// merge adds the counts of other trials.
func (t *tally) merge(o *tally) {
	if t.planned == 0 {
		t.repeat = o.repeat
	}
	t.repeated = t.repeated || o.repeated || o.repeat != t.repeat
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
	for of, b := range o.bounds {
		bumpBounds(&t.bounds, of, b)
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
	t.bill.merge(&o.bill)
}

func (b *bill) merge(o *bill) {
	b.faults += o.faults
	bumpAll(&b.faultKinds, o.faultKinds)
	b.met.Merge(o.met)
	b.costUSD = assay.RoundUSD(b.costUSD + o.costUSD)
	b.usage = b.usage.Add(o.usage)
	bumpAll(&b.spent, o.spent)
	bumpAll(&b.unpriced, o.unpriced)
	b.uncertain += o.uncertain
	b.uncertainUSD += o.uncertainUSD
	b.userUSD = assay.RoundUSD(b.userUSD + o.userUSD)
	b.userTokens += o.userTokens
	b.userUnpriced += o.userUnpriced
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func (o outcomes) group() stat.Group { return stat.Group{Full: int(o[full]), N: int(o[done])} }

func isFull(l assay.Level) int32 { return flag(l == assay.FullSuccess) }

// as returns outcomes of which only the number and the full successes are known.
func (o outcomes) as(all, successes countKind) (out outcomes) {
	out[done], out[full] = o[all], o[successes]
	return out
}
