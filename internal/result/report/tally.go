package report

import (
	"cmp"
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

// A tally counts the results of trials.
type tally struct {
	planned, faults, turns int
	costUSD, coverage      float64
	uncertain              int               // attempts with uncertain tokens
	uncertainUSD           float64           // the most that these tokens cost
	errors                 map[taskCause]int // causes of trials without full success
	callless               int               // failures without a valid call
	loops                  map[assay.LoopKind]int
	best                   float64 // sum of the ceilings of the measured outcomes
	// templates and rules count outcomes by the hash of their prompts and by the version of the
	// rules that judged them.
	templates, rules map[string]int
	retried          int // outcomes that superseded earlier ones
	// repeat is the number of the first trial's repeat. repeated is true if there are others.
	repeat   int
	repeated bool
	// all counts the outcomes, tasks the outcomes of each task, spent adds up the dollars of all
	// attempts at it, and unpriced their tokens of unknown cost.
	all      outcomes
	tasks    map[task]outcomes
	spent    map[task]float64
	unpriced map[task]int
	from     *population[task] // all tasks of the experiment
	// turnCounts and tokenBins hold the distribution of outcomes.
	turnCounts, tokenBins map[int]int
	input, output, calls  int
	usage                 assay.Usage // of all attempts
	// The model behind a simulated user is apart from costUSD and usage.
	userUSD                  float64
	userTokens, userUnpriced int
	// unlike counts outcomes by how the settings that were used differ from those asked.
	unlike           map[string]int
	wasted, mistakes int
	scheduled, met   int            // faults of tools
	working          int            // milliseconds
	served           map[string]int // outcomes by the model that answered
	deployments      map[string]int // outcomes by the deployment of their lane
	deviations       map[string]int // outcomes by the deviation of their requests
	deviating        map[string]int // calls of agents that deviate, by kind
	deviate          map[string]int // outcomes with such a call
	truncated        int            // outcomes with a reply that was cut off for length
	faultKinds       map[assay.FaultKind]int
	precision        float64
	brokenAt         map[string]int // outcomes by the tool that worked with the wrong data
	adherence, given float64
	givenN           int
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

// add counts an attempt. settled is true if an earlier attempt settled the trial, and open if the
// plan for its task is unknown.
func (t *tally) add(a *assay.Attempt, of task, settled, open bool) {
	t.costUSD = assay.RoundUSD(t.costUSD + a.CostUSD)
	if a.CostUSD > 0 {
		bump(&t.spent, of, a.CostUSD)
	}
	if a.UnpricedTokens > 0 {
		bump(&t.unpriced, of, a.UnpricedTokens)
	}
	t.usage = t.usage.Add(a.Usage())
	t.userUSD = assay.RoundUSD(t.userUSD + a.UserCostUSD)
	t.userTokens += a.UserInputTokens + a.UserOutputTokens
	t.userUnpriced += a.UserUnpricedTokens
	if a.UncertainTokens > 0 {
		t.uncertain++
		share := float64(a.UncertainTokens) / float64(max(1, a.OutputTokens))
		t.uncertainUSD += a.CostUSD * min(1, share)
	}
	switch {
	case a.OnlyCosts():
	case !a.Settles():
		t.faults++
		bump(&t.faultKinds, a.FaultKind, 1)
	case !settled:
		t.settle(a, of, open)
	}
}

// settle counts an outcome.
func (t *tally) settle(a *assay.Attempt, of task, open bool) {
	one := outcomeOf(a)
	if open {
		one[measured], one[reached], one[hopeless] = 0, 0, 0
	}
	t.from.add(of, strings.Join(a.RequiredTools, " "))
	t.count(of, one)
	if a.Round > 0 {
		t.retried++
	}
	if one[full] == 0 {
		bump(&t.errors, taskCause{a.Cause, of}, 1)
	}
	if a.Callless() {
		t.callless++
	}
	if a.Loop != "" {
		bump(&t.loops, a.Loop, 1)
	}
	if one[measured] > 0 {
		t.best += a.Best
	}
	bump(&t.templates, a.Templates, 1)
	bump(&t.rules, a.ScoreVersion, 1)
	t.describe(a)
}

// describe counts the effort of an outcome.
func (t *tally) describe(a *assay.Attempt) {
	bump(&t.turnCounts, a.Outcome.Turns, 1)
	bump(&t.tokenBins, tokenBin(a.InputTokens+a.OutputTokens), 1)
	for _, name := range a.Served() {
		bump(&t.served, name, 1)
	}
	for _, what := range a.Unlike() {
		bump(&t.unlike, what, 1)
	}
	calls, deviations := a.Deviating()
	for _, name := range deviations {
		bump(&t.deviations, name, 1)
	}
	for kind, n := range calls {
		bump(&t.deviating, kind, n)
		bump(&t.deviate, kind, 1)
	}
	t.truncated += int(flag(a.Truncated > 0))
	if lane := strings.SplitN(a.Lane, "/", 3); len(lane) == 3 { // provider/key/deployment
		bump(&t.deployments, lane[2], 1)
	}
	t.turns += a.Outcome.Turns
	t.coverage += a.Coverage
	t.input += a.InputTokens
	t.output += a.OutputTokens
	t.calls += a.ToolCalls
	t.wasted += a.Wasted
	t.mistakes += a.Mistakes
	t.scheduled += a.FaultsScheduled
	t.met += a.FaultsMet
	t.working += int(a.WorkingMS)
	t.precision += a.Precision
	if a.Broken != "" {
		bump(&t.brokenAt, a.Broken, 1)
	}
	t.adherence += a.Adherence
	if a.GivenAdherence != nil {
		t.given += *a.GivenAdherence
		t.givenN++
	}
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

// tokenStep is the ratio of the limits of a bin of tokens. Quantiles are exact to half a bin.
const tokenStep = 1.05

func tokenBin(tokens int) int {
	if tokens < 1 {
		return -1
	}
	return int(math.Floor(math.Log(float64(tokens)) / math.Log(tokenStep)))
}

// tokensOf returns the middle of a bin.
func tokensOf(bin int) float64 {
	if bin < 0 {
		return 0
	}
	return math.Pow(tokenStep, float64(bin)+.5)
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
		t.repeat = o.repeat
	}
	t.repeated = t.repeated || o.repeated || o.repeat != t.repeat
	if t.from == nil {
		t.from = o.from
	}
	if t.tasks == nil && len(o.tasks) > 0 {
		t.tasks = make(map[task]outcomes, len(o.tasks))
	}
	for of, more := range o.tasks {
		t.count(of, more)
	}
	t.costUSD = assay.RoundUSD(t.costUSD + o.costUSD)
	t.usage = t.usage.Add(o.usage)
	t.userUSD = assay.RoundUSD(t.userUSD + o.userUSD)
	addAll(t.ints(), o.ints())
	addAll(t.reals(), o.reals())
	for i, counts := range t.names() {
		bumpAll(counts, *o.names()[i])
	}
	bumpAll(&t.errors, o.errors)
	bumpAll(&t.loops, o.loops)
	bumpAll(&t.faultKinds, o.faultKinds)
	bumpAll(&t.spent, o.spent)
	bumpAll(&t.unpriced, o.unpriced)
	bumpAll(&t.turnCounts, o.turnCounts)
	bumpAll(&t.tokenBins, o.tokenBins)
}

func addAll[N int | float64](sums, more []*N) {
	for i, n := range more {
		*sums[i] += *n
	}
}

// ints, reals and names list the figures that add up.
func (t *tally) ints() []*int {
	return []*int{
		&t.planned, &t.faults, &t.turns, &t.uncertain,
		&t.retried, &t.input, &t.output, &t.calls, &t.wasted, &t.mistakes, &t.scheduled, &t.met,
		&t.working, &t.truncated, &t.givenN, &t.callless, &t.userTokens, &t.userUnpriced,
	}
}

func (t *tally) reals() []*float64 {
	return []*float64{
		&t.uncertainUSD, &t.coverage, &t.best, &t.precision, &t.adherence, &t.given,
	}
}

func (t *tally) names() []*map[string]int {
	return []*map[string]int{
		&t.templates, &t.rules, &t.unlike, &t.served, &t.deployments, &t.deviations,
		&t.deviating, &t.deviate, &t.brokenAt,
	}
}

func (t *tally) meanTurns() float64 { return float64(t.turns) / float64(max(1, t.n(done))) }
