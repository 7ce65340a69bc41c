package report

import (
	"cmp"
	"encoding/hex"
	"iter"
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
	planned, done, faults int
	full, partial, failed int
	turns                 int
	costUSD, coverage     float64
	uncertain             int             // attempts with uncertain tokens
	uncertainUSD          float64         // the most that these tokens cost
	errors                map[mistake]int // reasons of trials without full success
	loops                 map[assay.LoopKind]int
	// missing counts trials without full success by their first required tool that did not succeed.
	missing map[string]int
	best    float64 // sum of the ceilings of the measured outcomes
	// templates and rules count outcomes by the hash of their prompts and by the version of the
	// rules that judged them.
	templates, rules map[string]int
	retried          int // outcomes that superseded earlier ones
	// repeat is the number of the first trial's repeat. repeated is true if there are others.
	repeat   int
	repeated bool
	// tasks counts the outcomes of each task, and spent adds up the dollars of all attempts at it.
	tasks map[task]outcomes
	spent map[task]float64
	from  *population[task] // all tasks of the experiment
	// turnCounts and tokenBins hold the distribution of outcomes.
	turnCounts, tokenBins map[int]int
	input, output, calls  int
	usage                 assay.Usage // of all attempts
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

// A task numbers tasks in the order in which they were met.
type task int32

// outcomes counts outcomes of trials by kind.
type outcomes [kinds]int32

type kind int

const (
	done kind = iota
	full
	partial
	failed
	ordered    // all required tools succeeded in order
	hurt       // the plan has a flaw that hurts; see [Design]
	hurtFull   // full success in spite of that
	assisted   // with at least one correction
	hopeless   // although even the best policy cannot succeed
	unwanted   // with at least one unwanted effect
	misled     // a required tool worked with the wrong data
	exposed    // with at least one scheduled fault of a tool that was met
	despite    // full success in spite of that
	measured   // with the ceiling of their setting
	reached    // full successes among the measured ones
	unfinished // not fully succeeded, in a world that records claims
	claimed    // not fully succeeded, and the model claimed to be done
	hit        // with the right plan, at least one fault of a tool that the best policy survives
	survived   // full success in spite of that
	judged     // with the further verdicts of the pilot world
	// The other kinds are the full successes among the judged ones, by definition.
	executor
	paper
	batch
	kinds
)

func (o *outcomes) merge(p outcomes) {
	for k, n := range p {
		o[k] += n
	}
}

func outcomeOf(a *assay.Attempt) outcomes {
	o := &a.Outcome
	out := outcomes{
		done: 1, full: isFull(o.Level), partial: flag(o.Level == assay.PartialSuccess),
		ordered: flag(o.OrderCorrect), assisted: flag(o.Assisted > 0),
		unwanted: flag(o.UnwantedEffects > 0), misled: flag(o.Broken != ""),
	}
	out[exposed] = flag(o.FaultsMet > 0)
	out[despite] = out[exposed] * out[full]
	if o.Pilot == nil {
		out[unfinished] = 1 - out[full]
		out[claimed] = flag(o.Ended == assay.Finished) * out[unfinished]
	}
	out[hopeless] = flag(measuresBest(a.ScoreVersion) && o.Best == 0)
	out[failed] = 1 - out[full] - out[partial]
	if measuresBest(a.ScoreVersion) && !limited(&a.Setting) {
		out[measured], out[reached] = 1, out[full]
	}
	if p := o.Pilot; p != nil {
		out[judged], out[executor] = 1, isFull(p.Executor)
		out[paper], out[batch] = isFull(p.Paper), isFull(p.Batch)
	}
	return out
}

// surviving counts one of the outcomes as one that met a fault of a tool.
func (o outcomes) surviving(isFull int32) outcomes {
	o[hit]++
	o[survived] += isFull
	return o
}

// hurting counts one of the outcomes as one with a plan that hurts.
func (o outcomes) hurting(isFull int32) outcomes {
	o[hurt]++
	o[hurtFull] += isFull
	return o
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

// A mistake is a category of error at a task.
type mistake struct {
	category string
	task     task
}

// A luck is one repeat of a task by a model. Its trials share much of their luck in all cells.
type luck struct {
	model  string
	task   task
	repeat int32
}

func (l luck) compare(o luck) int {
	return cmp.Or(
		cmp.Compare(l.model, o.model), cmp.Compare(l.task, o.task), cmp.Compare(l.repeat, o.repeat),
	)
}

// A counted experiment has its cells in the order of tables, and its outcomes by luck.
type counted struct {
	cells []*cell
	lucks map[luck]stat.Group
	// tasks names the tasks by number, and failures has a trial of each kind.
	tasks    []assay.TaskID
	failures map[failure]failedTrial
}

// A failure is a kind of outcome that is not full success: the outcomes of a cell with a category,
// or of a model at a task.
type failure struct {
	cell     *cell // nil for a model's failures at a task
	category string
	model    string
	task     task
}

// A failedTrial is a trial that did not fully succeed.
type failedTrial struct {
	id       assay.TrialID
	cell     *cell
	category string
}

// example returns nil if there is no trial.
func (t failedTrial) example() *Example {
	if t.cell == nil {
		return nil
	}
	return &Example{t.id, t.cell.Cell, t.category}
}

// fail remembers the failed trial whose ID comes first, because the order of attempts is up to
// chance.
func (x *counted) fail(t failedTrial, of task) {
	for _, f := range []failure{
		{cell: t.cell, category: t.category}, {model: t.cell.Model, task: of},
	} {
		if first, ok := x.failures[f]; !ok || t.id < first.id {
			x.failures[f] = t
		}
	}
}

// count counts trials and attempts by cell, and outcomes by luck.
func count(
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
	from *population[task],
	d Design,
) (*counted, error) {
	x := &counted{
		lucks: make(map[luck]stat.Group), failures: make(map[failure]failedTrial),
	}
	var cells []*cell
	index := make(map[assay.Cell]int32)
	// The map below may hold a million of these.
	type place struct {
		cell   int32 // ^cell after the trial is settled
		task   task
		repeat int32
		hurts  bool
		lives  bool // the right plan survives the faults of tools
		open   bool
	}
	known := make(map[[16]byte]place)
	tasks := make(map[assay.TaskID]task)
	for trial := range trials {
		c, ok := index[trial.Cell]
		if !ok {
			c = int32(len(cells))
			index[trial.Cell] = c
			cells = append(cells, &cell{
				Cell: trial.Cell, sampling: trial.Sampling, runs: make(map[assay.RunID]int),
				tally: tally{from: from},
			})
		}
		cells[c].plan(trial.Repeat)
		of, ok := tasks[trial.Task]
		if !ok {
			of = task(len(tasks))
			tasks[trial.Task] = of
			x.tasks = append(x.tasks, trial.Task)
		}
		known[key(trial.ID)] = place{
			c, of, int32(trial.Repeat),
			IsFlawed(trial.Variant) && (d.Hurts == nil || d.Hurts(&trial)),
			!IsFlawed(trial.Variant) && (d.Survivable == nil || d.Survivable(&trial)),
			d.Open != nil && d.Open(&trial),
		}
	}
	for a, err := range attempts {
		if err != nil {
			return nil, err
		}
		id := key(a.ID)
		p, ok := known[id]
		if !ok {
			continue
		}
		settled := p.cell < 0
		if settled {
			p.cell = ^p.cell
		}
		a.Sampling = cells[p.cell].sampling
		cells[p.cell].add(&a, p.task, settled, p.open)
		if a.Settles() && !settled {
			cells[p.cell].runs[a.Run]++
			if p.hurts {
				cells[p.cell].tasks[p.task] = cells[p.cell].tasks[p.task].hurting(isFull(a.Level))
			}
			if p.lives && a.Failures+a.FaultsMet > 0 {
				cells[p.cell].tasks[p.task] = cells[p.cell].tasks[p.task].surviving(isFull(a.Level))
			}
			if isFull(a.Level) == 0 {
				x.fail(failedTrial{a.ID, cells[p.cell], a.ErrorCategory}, p.task)
			}
			at := luck{cells[p.cell].Model, p.task, p.repeat}
			g := x.lucks[at]
			x.lucks[at] = stat.Group{Full: g.Full + int(isFull(a.Level)), N: g.N + 1}
			p.cell = ^p.cell
			known[id] = p
		}
	}
	for _, c := range cells {
		if !slices.Contains(d.Models, c.Model) {
			d.Models = append(d.Models, c.Model)
		}
	}
	slices.SortStableFunc(cells, func(a, b *cell) int { return d.Compare(a.Cell, b.Cell) })
	x.cells = cells
	return x, nil
}

// key shortens a trial's ID to 16 bytes. IDs that are not hexadecimal keep their first 16 bytes.
func key(id assay.TrialID) (k [16]byte) {
	if n, err := hex.Decode(k[:], []byte(id[:min(len(id), 32)])); err != nil || n < len(k) {
		copy(k[:], id)
	}
	return k
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
	t.usage = t.usage.Add(a.Usage())
	if a.UncertainTokens > 0 {
		t.uncertain++
		share := float64(a.UncertainTokens) / float64(max(1, a.OutputTokens))
		t.uncertainUSD += a.CostUSD * min(1, share)
	}
	switch {
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
	if t.tasks == nil {
		t.tasks = make(map[task]outcomes)
	}
	at := t.tasks[of]
	at.merge(one)
	t.tasks[of] = at
	t.done++
	if a.Round > 0 {
		t.retried++
	}
	t.full += int(one[full])
	t.partial += int(one[partial])
	t.failed += int(one[failed])
	if one[full] == 0 {
		bump(&t.errors, mistake{a.ErrorCategory, of}, 1)
		if tool := firstMissing(a.RequiredTools, a.ExecutedTools); tool != "" {
			bump(&t.missing, tool, 1)
		}
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

func (o outcomes) group() stat.Group { return stat.Group{Full: int(o[full]), N: int(o[done])} }

// total adds up the outcomes of all tasks.
func (t *tally) total() (all outcomes) {
	for _, o := range t.tasks {
		all.merge(o)
	}
	return all
}

// byTask counts full successes among all outcomes.
func (t *tally) byTask() []stat.Group {
	return t.groups(func(_ task, o outcomes) (some, of int32) { return o[full], o[done] })
}

// among computes the share of outcomes of some kinds among the outcomes of another kind.
func (t *tally) among(all kind, some ...kind) Share {
	return t.share(func(_ task, o outcomes) (n, of int32) {
		for _, k := range some {
			n += o[k]
		}
		return n, o[all]
	})
}

// mistaken computes the share of an error category among the trials that did not fully succeed.
func (t *tally) mistaken(category string) Share {
	return t.share(func(of task, o outcomes) (int32, int32) {
		return int32(t.errors[mistake{category, of}]), o[done] - o[full]
	})
}

// categories returns the error categories that occurred, sorted.
func (t *tally) categories() []string {
	var all []string
	for m := range t.errors {
		all = append(all, m.category)
	}
	slices.Sort(all)
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

// measuresBest reports whether a version of the rules measures the best policy. The first version
// of the pilot world does not.
func measuresBest(version string) bool { return version != "" && version != "pilot-1" }

// limited reports whether a setting has limits that the best policy does not know: on tokens, on
// dollars, or on loops.
func limited(s *assay.Setting) bool {
	return s.Tokens > 0 || s.USD > 0 || strings.Contains(s.Loops, "!")
}

func isFull(l assay.Level) int32 { return flag(l == assay.FullSuccess) }

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
		at := t.tasks[of]
		at.merge(more)
		t.tasks[of] = at
	}
	t.costUSD = assay.RoundUSD(t.costUSD + o.costUSD)
	t.usage = t.usage.Add(o.usage)
	addAll(t.ints(), o.ints())
	addAll(t.reals(), o.reals())
	for i, counts := range t.names() {
		bumpAll(counts, *o.names()[i])
	}
	bumpAll(&t.errors, o.errors)
	bumpAll(&t.loops, o.loops)
	bumpAll(&t.faultKinds, o.faultKinds)
	bumpAll(&t.spent, o.spent)
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
		&t.planned, &t.done, &t.faults, &t.full, &t.partial, &t.failed, &t.turns, &t.uncertain,
		&t.retried, &t.input, &t.output, &t.calls, &t.wasted, &t.mistakes, &t.scheduled, &t.met,
		&t.working, &t.truncated, &t.givenN,
	}
}

func (t *tally) reals() []*float64 {
	return []*float64{
		&t.uncertainUSD, &t.coverage, &t.best, &t.precision, &t.adherence, &t.given,
	}
}

func (t *tally) names() []*map[string]int {
	return []*map[string]int{
		&t.missing, &t.templates, &t.rules, &t.unlike, &t.served, &t.deployments, &t.deviations,
		&t.deviating, &t.deviate, &t.brokenAt,
	}
}

func (t *tally) meanTurns() float64 { return float64(t.turns) / float64(max(1, t.done)) }
