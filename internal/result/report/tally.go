package report

import (
	"cmp"
	"encoding/hex"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A cell is a planned cell with the results of its trials.
type cell struct {
	assay.Cell
	tally
}

// A tally counts the results of trials.
type tally struct {
	planned, done, faults int
	full, partial, failed int
	turns                 int
	costUSD, coverage     float64
	errors                map[mistake]int // reasons of trials without full success
	loops                 map[assay.LoopKind]int
	// missing counts trials without full success by their first required tool that did not succeed.
	missing map[string]int
	best                  best
	// templates and rules count outcomes by the hash of their prompts and by the version of the
	// rules that judged them.
	templates, rules map[string]int
	// repeat is the number of the first trial's repeat. repeated is true if there are others.
	repeat   int
	repeated bool
	detail
}

// A detail holds figures that are not counts of outcomes.
type detail struct {
	// tasks counts the outcomes of each task.
	tasks map[task]outcomes
	// turnCounts and tokenBins hold the distribution of outcomes.
	turnCounts, tokenBins map[int]int
	input, output, calls  int
	requests              int
	wasted, mistakes      int
	working               int            // milliseconds
	served                map[string]int // outcomes by the model that answered
	faultKinds            map[assay.FaultKind]int
	adherence, given      float64
	givenN                int
}

// A task numbers tasks in the order in which they were met.
type task int32

// outcomes counts outcomes of trials.
type outcomes struct {
	done, full, partial int32
	ordered             int32 // all required tools succeeded in order
	assisted            int32 // with at least one correction
	// judged counts the outcomes with the further verdicts of the pilot world. The others count the
	// full successes among them, by definition.
	judged, executor, paper, batch int32
}

func (o *outcomes) merge(p outcomes) {
	o.done += p.done
	o.full += p.full
	o.partial += p.partial
	o.ordered += p.ordered
	o.assisted += p.assisted
	o.judged += p.judged
	o.executor += p.executor
	o.paper += p.paper
	o.batch += p.batch
}

func (o outcomes) failed() int32 { return o.done - o.full - o.partial }

func outcomeOf(o *assay.Outcome) outcomes {
	out := outcomes{
		done: 1, full: isFull(o.Level), ordered: flag(o.OrderCorrect),
		assisted: flag(o.Assisted > 0), partial: flag(o.Level == assay.PartialSuccess),
	}
	if o.Pilot != nil {
		out.judged = 1
		out.executor, out.paper = isFull(o.Pilot.Executor), isFull(o.Pilot.Paper)
		out.batch = isFull(o.Pilot.Batch)
	}
	return out
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

// best adds up the best policy's probabilities over the trials whose rules measure them, and counts
// their full successes.
type best struct {
	sum        float64
	done, full int
}

func (b *best) merge(o best) {
	b.sum += o.sum
	b.done += o.done
	b.full += o.full
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

// count counts trials and attempts by cell, in the order of the plan, and outcomes by luck.
func count(
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
) ([]*cell, map[luck]stat.Group, error) {
	var cells []*cell
	lucks := make(map[luck]stat.Group)
	index := make(map[assay.Cell]int32)
	// The map below may hold a million of these.
	type place struct {
		cell   int32 // ^cell after the trial is settled
		task   task
		repeat int32
	}
	known := make(map[[16]byte]place)
	tasks := make(map[assay.TaskID]task)
	for trial := range trials {
		c, ok := index[trial.Cell]
		if !ok {
			c = int32(len(cells))
			index[trial.Cell] = c
			cells = append(cells, &cell{Cell: trial.Cell})
		}
		cells[c].plan(trial.Repeat)
		of, ok := tasks[trial.Task]
		if !ok {
			of = task(len(tasks))
			tasks[trial.Task] = of
		}
		known[key(trial.ID)] = place{c, of, int32(trial.Repeat)}
	}
	for a, err := range attempts {
		if err != nil {
			return nil, nil, err
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
		cells[p.cell].add(&a, p.task, settled)
		if a.Settles() && !settled {
			at := luck{cells[p.cell].Model, p.task, p.repeat}
			g := lucks[at]
			lucks[at] = stat.Group{Full: g.Full + int(isFull(a.Level)), N: g.N + 1}
			p.cell = ^p.cell
			known[id] = p
		}
	}
	return cells, lucks, nil
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

// add counts an attempt. settled is true if an earlier attempt settled the trial.
func (t *tally) add(a *assay.Attempt, of task, settled bool) {
	t.costUSD += a.CostUSD
	t.requests += a.Requests
	switch {
	case !a.Settles():
		t.faults++
		bump(&t.faultKinds, a.FaultKind, 1)
	case !settled:
		t.settle(&a.Outcome, of)
		t.describe(a, of)
		bump(&t.templates, a.Templates, 1)
		bump(&t.rules, a.ScoreVersion, 1)
	}
}

// describe counts the effort of an outcome.
func (t *tally) describe(a *assay.Attempt, of task) {
	if t.tasks == nil {
		t.tasks = make(map[task]outcomes)
	}
	at := t.tasks[of]
	at.merge(outcomeOf(&a.Outcome))
	t.tasks[of] = at
	bump(&t.turnCounts, a.Outcome.Turns, 1)
	bump(&t.tokenBins, tokenBin(a.InputTokens+a.OutputTokens), 1)
	for _, name := range a.Served() {
		bump(&t.served, name, 1)
	}
	t.input += a.InputTokens
	t.output += a.OutputTokens
	t.calls += a.ToolCalls
	t.wasted += a.Wasted
	t.mistakes += a.Mistakes
	t.working += int(a.WorkingMS)
	t.adherence += a.Adherence
	if a.GivenAdherence != nil {
		t.given += *a.GivenAdherence
		t.givenN++
	}
}

func (d *detail) merge(o *detail) {
	if d.tasks == nil && len(o.tasks) > 0 {
		d.tasks = make(map[task]outcomes, len(o.tasks))
	}
	for of, more := range o.tasks {
		at := d.tasks[of]
		at.merge(more)
		d.tasks[of] = at
	}
	bumpAll(&d.turnCounts, o.turnCounts)
	bumpAll(&d.tokenBins, o.tokenBins)
	bumpAll(&d.served, o.served)
	bumpAll(&d.faultKinds, o.faultKinds)
	d.input += o.input
	d.output += o.output
	d.calls += o.calls
	d.requests += o.requests
	d.wasted += o.wasted
	d.mistakes += o.mistakes
	d.working += o.working
	d.adherence += o.adherence
	d.given += o.given
	d.givenN += o.givenN
}

// groups counts outcomes by task, in the order of tasks.
func (d *detail) groups(count func(task, outcomes) (some, of int32)) []stat.Group {
	groups := make([]stat.Group, 0, len(d.tasks))
	for _, t := range slices.Sorted(maps.Keys(d.tasks)) {
		some, of := count(t, d.tasks[t])
		groups = append(groups, stat.Group{Full: int(some), N: int(of)})
	}
	return groups
}

// share computes a rate over tasks, with an interval that accounts for repeats within tasks. count
// returns the counted outcomes of a task and the number that they are a share of.
func (d *detail) share(count func(task, outcomes) (some, of int32)) Share {
	groups := d.groups(count)
	r := stat.Clustered(groups, .95)
	s := Share{Rate: r.Rate, Interval: r.Interval}
	for _, g := range groups {
		s.Count += g.Full
	}
	return s
}

// total adds up the outcomes of all tasks.
func (d *detail) total() (all outcomes) {
	for _, o := range d.tasks {
		all.merge(o)
	}
	return all
}

// byTask counts full successes among all outcomes.
func (d *detail) byTask() []stat.Group {
	return d.groups(func(_ task, o outcomes) (some, of int32) { return o.full, o.done })
}

// among computes the share of some outcomes among all.
func (d *detail) among(some func(outcomes) int32) Share {
	return d.share(func(_ task, o outcomes) (int32, int32) { return some(o), o.done })
}

// mistaken computes the share of an error category among the trials that did not fully succeed.
func (t *tally) mistaken(category string) Share {
	return t.share(func(of task, o outcomes) (int32, int32) {
		return int32(t.errors[mistake{category, of}]), o.done - o.full
	})
}

// categories returns the error categories that occurred, sorted.
func (t *tally) categories() []string {
	seen := make(map[string]bool)
	for m := range t.errors {
		seen[m.category] = true
	}
	return slices.Sorted(maps.Keys(seen))
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

func (t *tally) settle(o *assay.Outcome, of task) {
	t.done++
	t.turns += o.Turns
	t.coverage += o.Coverage
	switch o.Level {
	case assay.FullSuccess:
		t.full++
	case assay.PartialSuccess:
		t.partial++
	default:
		t.failed++
	}
	if o.Level != assay.FullSuccess {
		bump(&t.errors, mistake{o.ErrorCategory, of}, 1)
		if tool := firstMissing(o.RequiredTools, o.ExecutedTools); tool != "" {
			bump(&t.missing, tool, 1)
		}
	}
	if o.Loop != "" {
		bump(&t.loops, o.Loop, 1)
	}
	if measuresBest(o.ScoreVersion) {
		t.best.merge(best{o.Best, 1, int(isFull(o.Level))})
	}
}

// firstMissing returns the first required tool without a successful call of its own, or "". Each
// call counts for one requirement only.
func firstMissing(required, executed []string) string {
	for i, tool := range required {
		if occurrences(required[:i+1], tool) > occurrences(executed, tool) {
			return tool
		}
	}
	return ""
}

func occurrences(names []string, name string) (n int) {
	for _, s := range names {
		if s == name {
			n++
		}
	}
	return n
}

// measuresBest reports whether a version of the rules measures the best policy. The first version
// of the pilot world does not.
func measuresBest(version string) bool { return version != "" && version != "pilot-1" }

func isFull(l assay.Level) int32 { return flag(l == assay.FullSuccess) }

func bump[K comparable](counts *map[K]int, k K, n int) {
	if *counts == nil {
		*counts = make(map[K]int)
	}
	(*counts)[k] += n
}

func bumpAll[K comparable](counts *map[K]int, more map[K]int) {
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
	t.done += o.done
	t.faults += o.faults
	t.full += o.full
	t.partial += o.partial
	t.failed += o.failed
	t.turns += o.turns
	t.costUSD += o.costUSD
	t.coverage += o.coverage
	t.best.merge(o.best)
	bumpAll(&t.errors, o.errors)
	bumpAll(&t.loops, o.loops)
	bumpAll(&t.missing, o.missing)
	bumpAll(&t.templates, o.templates)
	bumpAll(&t.rules, o.rules)
	t.detail.merge(&o.detail)
}

func (t *tally) meanTurns() float64 { return float64(t.turns) / float64(max(1, t.done)) }
