package main

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// maxTrials limits the trials of an experiment, so that thousands of experiments take minutes.
const maxTrials = 84

// A draw makes up an experiment: its file, and what happened to its trials.
type draw struct {
	*rand.Rand
	seed uint64
	name string

	models, variants, mixes []string
	phrasings, interfaces   []string
	world                   string
	stops, pricey           bool
	sequences               int     // of required tools; tasks share them
	stubborn                float64 // how much repeats of a trial agree
	missing, faulty         float64 // shares of trials and of attempts
	filtered                string  // the model whose missing trials a content filter stopped
	idle                    string  // a model without an outcome
	versions                []string
	began                   time.Time
}

func newDraw(seed uint64) *draw {
	d := &draw{
		Rand: rand.New(rand.NewPCG(seed, 1)), seed: seed, name: fmt.Sprintf("e%d", seed),
		began: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
	}
	d.world = "assay-1"
	if d.chance(.08) {
		d.world = "pilot"
	}
	d.sequences, d.stubborn = 1+d.IntN(20), d.of(0, .3, .8)
	d.missing, d.faulty = d.of(0, 0, 0, .02, .2, .6), d.of(0, .05, .3)
	if d.chance(.02) {
		d.missing = 1
	}
	d.pricey = d.chance(.7)
	if d.seed%16 == 7 && d.world != "pilot" {
		d.world = "own-1"
	}
	d.versions = []string{map[string]string{"assay-1": "assay-1.4", "pilot": "pilot-5", "own-1": "own-1.4"}[d.world]}
	if d.chance(.1) {
		d.versions = append(d.versions, "pilot-1") // whose outcomes have no ceiling
	}
	return d
}

func (d *draw) chance(p float64) bool { return d.Float64() < p }

func (d *draw) of(values ...float64) float64 { return values[d.IntN(len(values))] }

// some draws up to n of the values, at least one, in their order.
func some[T any](d *draw, n int, values []T) []T {
	picks := d.Perm(len(values))[:1+d.IntN(min(n, len(values)))]
	slices.Sort(picks)
	var out []T
	for _, i := range picks {
		out = append(out, values[i])
	}
	return out
}

var (
	realModels = []string{
		"gpt-4o", "qwen2.5-7b-instruct", "qwen2.5-72b-instruct", "claude-sonnet", "m", "Qwen3-235B-A22B",
	}
	simModels = []string{"sim/optimal", "sim/expert", "sim/obedient", "sim/mute"}
	// ownMixes are those of tools of one's own, whose answers can be wrong for good.
	ownMixes = []string{"{before: 1}", "{down: 1}", "{wrong_value: 1}", "{corrupted: 1}", "{before: 0.5, corrupted: 0.5}"}
	mixes    = []string{
		"{before: 1}", "{after: 1}", "{before: 0.5, stale: 0.5}", "{slow: 0.5, wrong_shape: 0.5}",
		"{throttled: 1}", "{down: 1}", "{stale: 1}", "{wrong_shape: 1}",
	}
)

// words draws phrasings or interfaces. Plain ones are nearly always among them.
func (d *draw) words(all []string) []string {
	words := some(d, 3, all)
	if words[0] != assay.Plain && d.chance(.8) {
		words = append([]string{assay.Plain}, words...)
	}
	return words
}

// file returns the text of an experiment file that plans few trials.
func (d *draw) file() string {
	d.models = some(d, 5, realModels)
	switch {
	case d.chance(.15):
		d.models = some(d, 4, simModels)
	case d.chance(.2):
		d.models = append(d.models[:min(len(d.models), 3)], some(d, 2, simModels)...)
	}
	d.Shuffle(len(d.models), func(i, k int) { d.models[i], d.models[k] = d.models[k], d.models[i] })
	d.variants = some(d, 2, assay.PlainVariants)
	if d.chance(.55) {
		flawed := assay.Variants[len(assay.PlainVariants):]
		d.variants = append(d.variants, some(d, 2, flawed)...)
		if d.chance(.8) && !slices.Contains(d.variants, assay.Optimal) {
			d.variants = append(d.variants, assay.Optimal)
		}
	}
	isFlawed := func(v string) bool { return strings.HasPrefix(v, "flawed_") }
	severities := []string{}
	if slices.ContainsFunc(d.variants, isFlawed) {
		severities = some(d, 2, assay.Severities)
	}
	shows := slices.ContainsFunc(d.variants, assay.ShowsPlan)
	difficulties := some(d, 1+d.IntN(2), assay.Difficulties)
	types := some(d, 1+d.IntN(3), assay.TaskTypes)
	reliabilities := some(d, 1+d.IntN(2), []string{"1", "0.9", "0.8", "0.5"})
	known, phrasings := mixes, assay.Phrasings
	if d.world == "own-1" {
		known, phrasings = ownMixes, []string{assay.Plain, assay.Casual}
		difficulties, types = difficulties[:1], ownTypes[:len(types)]
	}
	if d.world == "assay-1" && d.chance(.3) {
		d.mixes = some(d, 2, known)
	} else if d.world == "own-1" && d.chance(.8) {
		d.mixes = some(d, 4, known)
	}
	if len(d.mixes) > 0 && d.chance(.6) { // else few have reliable tools to compare them with
		reliabilities = []string{"1", "0.8"}
	}
	authorities := 1
	repeats, replays := 1+d.IntN(4), 0
	if d.chance(.2) {
		replays = 1 + d.IntN(2)
		if d.chance(.6) { // few conditions, so that there is room for repeats, too
			repeats = max(2, repeats)
			d.models, difficulties, reliabilities = d.models[:min(2, len(d.models))], difficulties[:1], reliabilities[:1]
		}
	}
	if d.world != "pilot" {
		if d.chance(.25) {
			d.phrasings = d.words(phrasings)
		}
		if d.chance(.1) || len(d.phrasings) > 1 && d.chance(.5) {
			d.interfaces = d.words(assay.Interfaces)
		}
	}
	// As in the suite profile, each part may vary one thing.
	profile := len(d.phrasings) > 1 && len(d.interfaces) > 1 && d.chance(.6)
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nseed: %d\nworld: %s\nmodels: [%s]\nvariants: [%s]\n", d.name, 1+d.IntN(5),
		d.world, list(d.models), list(d.variants))
	if len(severities) > 0 {
		fmt.Fprintf(&b, "severities: [%s]\n", list(severities))
	}
	if shows && d.world != "pilot" && d.chance(.08) {
		fmt.Fprintf(&b, "plan_authority: [unstated, follow]\n")
		authorities = 2
	}
	cells := len(d.models) * len(d.variants) * max(1, len(severities)) * authorities * len(difficulties) *
		len(types) * len(reliabilities) * max(1, len(d.mixes)) * (1 + replays)
	if !profile {
		cells *= max(1, len(d.phrasings)) * max(1, len(d.interfaces))
	}
	for repeats > 1 && cells*repeats > maxTrials {
		repeats--
	}
	share := cells * repeats
	if profile {
		share += cells * (len(d.phrasings) + len(d.interfaces) - 2)
	}
	tasks := max(1, min(1+d.IntN(24), maxTrials/share))
	fmt.Fprintf(&b, "task_types: [%s]\nreliabilities: [%s]\ntasks_per_type: %d\n", list(types), list(reliabilities), tasks)
	if d.world == "own-1" {
		fmt.Fprintf(&b, "library: %s.tasks.yaml\n", d.name)
	} else {
		fmt.Fprintf(&b, "difficulties: [%s]\n", list(difficulties))
	}
	if replays > 0 {
		fmt.Fprintf(&b, "replays: %d\n", replays)
	}
	if d.world != "pilot" && d.chance(.3) {
		b.WriteString("confidence: ask\n")
	}
	if profile {
		fmt.Fprintf(&b, "parts:\n  - {name: usual, repeats: %d}\n  - {name: words, phrasings: [%s]}\n"+
			"  - {name: tools, interfaces: [%s]}\n", repeats, list(d.phrasings), list(d.interfaces))
	} else {
		fmt.Fprintf(&b, "repeats: %d\n", repeats)
		if len(d.phrasings) > 0 {
			fmt.Fprintf(&b, "phrasings: [%s]\n", list(d.phrasings))
		}
		if len(d.interfaces) > 0 {
			fmt.Fprintf(&b, "interfaces: [%s]\n", list(d.interfaces))
		}
	}
	if len(d.mixes) > 0 {
		fmt.Fprintf(&b, "failures: {kinds: [%s]}\n", list(d.mixes))
	}
	switch d.IntN(12) {
	case 0:
		b.WriteString("limits: {tokens: 5000}\n")
	case 1:
		b.WriteString("limits: {usd: 0.5}\n")
	case 2:
		b.WriteString("loops: {repeat: {after: 3, then: stop}}\n")
	}
	if d.chance(.15) {
		d.stops = true
		b.WriteString([]string{
			"stop: {hopeless: {after: 5, below: 0.6}}\n",
			"stop: {hopeless: {after: 8, below: 0.5, per: model}}\n",
			"stop: {malformed: {after: 5, above: 0.2}}\n",
		}[d.IntN(3)])
	}
	if len(d.variants) > 1 && !profile && d.chance(.12) {
		fmt.Fprintf(&b, "parts:\n  - {name: one, variants: [%s]}\n  - {name: two, variants: [%s], reliabilities: [1, 0.8]}\n",
			list(d.variants[:1]), list(d.variants[1:]))
	}
	if d.chance(.06) {
		d.idle = d.models[0]
	}
	if d.missing > 0 && d.chance(.3) {
		d.filtered = d.models[d.IntN(len(d.models))]
	}
	return b.String()
}

func list(words []string) string { return strings.Join(words, ", ") }

// chanceOf returns a number in [0,1) that depends on the seed and the words only.
func (d *draw) chanceOf(words ...any) float64 {
	h := fnv.New64a()
	fmt.Fprint(h, d.seed)
	for _, w := range words {
		fmt.Fprint(h, "\x00", w)
	}
	return rand.New(rand.NewPCG(h.Sum64(), 2)).Float64()
}

// attempts returns what happened to the trials, in order. Later attempts at a trial come later.
func (d *draw) attempts(trials []assay.Trial, rules plan.StopRules) (all []*assay.Attempt) {
	stopper := job.NewStopper(plan.Budgets{}, rules)
	var again []*assay.Attempt
	for i := range trials {
		t := &trials[i]
		if d.stops {
			if reason, byRule := stopper.Skip(t.Cell); reason != "" && byRule {
				continue
			}
		}
		for d.chance(d.faulty) {
			all = append(all, d.fault(t))
		}
		if t.Model == d.idle || d.chance(d.missing) {
			if t.Model == d.filtered {
				a := d.fault(t)
				a.FaultKind, a.Parked = assay.ContentFilter, true
				all = append(all, a)
			}
			continue
		}
		a := d.outcome(t)
		all = append(all, a)
		if d.stops {
			stopper.Outcome(t.Cell, a.Level, a.Callless())
			continue // another outcome would change what the rule knew
		}
		for round := 1; d.chance(.06); round++ {
			if d.chance(.3) {
				b := d.fault(t)
				b.Round = round
				again = append(again, b)
				break
			}
			b := d.outcome(t)
			b.Round = round
			again = append(again, b)
		}
	}
	return append(all, again...)
}

var kinds = []assay.FaultKind{
	assay.RateLimited, assay.Server, assay.Network, assay.Timeout, assay.Interrupted, assay.Interrupted,
	assay.BadRequest, assay.Malformed,
}

func (d *draw) fault(t *assay.Trial) *assay.Attempt {
	a := d.attempt(t)
	a.FaultKind, a.FaultDetail = kinds[d.IntN(len(kinds))], "made up"
	a.Parked = a.FaultKind != assay.Interrupted && d.chance(.3)
	if a.FaultKind == assay.BadRequest && d.chance(.7) {
		a.FaultKind = assay.Network
	}
	return a
}

// attempt returns an attempt without a result, with its money.
func (d *draw) attempt(t *assay.Trial) *assay.Attempt {
	a := &assay.Attempt{
		Trial: *t, Program: "assay v1", Templates: strings.Repeat("ab", 16), Lane: "p/K/d", ServedModel: t.Model,
		Spend:    assay.NewSpend(assay.Usage{InputTokens: d.IntN(40_000), OutputTokens: d.IntN(3000)}, 0),
		Requests: 1 + d.IntN(9),
		QueuedMS: int64(d.IntN(1000)), WorkingMS: int64(d.IntN(90_000)),
		StartedAt: d.began, FinishedAt: d.began.Add(time.Minute),
	}
	d.began = d.began.Add(time.Second)
	if d.chance(.3) {
		a.CachedTokens = d.IntN(1 + a.InputTokens)
	}
	if d.chance(.3) {
		a.ReasoningTokens = d.IntN(1 + a.OutputTokens)
	}
	if d.pricey && !d.chance(.1) {
		a.CostUSD = assay.RoundUSD(float64(a.InputTokens)*3e-6 + float64(a.OutputTokens)*1.5e-5)
	}
	if d.seed%7 == 0 && d.chance(.1) {
		a.UnpricedTokens = 1 + d.IntN(500)
	}
	if d.seed%11 == 0 {
		a.UserRequests, a.UserInputTokens, a.UserOutputTokens = 1, d.IntN(900), d.IntN(90)
		a.UserCostUSD = assay.RoundUSD(float64(a.UserInputTokens) * 1e-6)
	}
	if d.seed%13 == 0 {
		a.JudgeRequests, a.JudgeInputTokens, a.JudgeOutputTokens = 1, d.IntN(3000), d.IntN(60)
		a.JudgeCostUSD = assay.RoundUSD(float64(a.JudgeInputTokens) * 2e-6)
		a.JudgedBy = "jury"
	}
	if d.chance(.1) {
		a.Retried = map[assay.FaultKind]int{assay.RateLimited: 1 + d.IntN(3)}
	}
	return a
}

// ask makes up what a model answers that is asked how likely it has succeeded.
func (d *draw) ask(a *assay.Attempt, skill float64) {
	a.ConfidenceInputTokens, a.ConfidenceOutputTokens = d.IntN(1+a.InputTokens/3), d.IntN(1+a.OutputTokens/3)
	a.ConfidenceCostUSD = assay.RoundUSD(a.CostUSD / 4)
	if d.chance(.1) {
		return // no number
	}
	percent := d.IntN(101)
	switch d.seed % 4 {
	case 0: // it knows something
		percent = int(100 * min(1, max(0, skill+.3*d.Float64()-.15)))
	case 1: // as people do, with few numbers
		percent = 10 * (5 + d.IntN(6))
	case 2: // it knows the outcome, or is always sure
		percent = 100
		if a.Level != assay.FullSuccess && d.seed%8 == 2 {
			percent = 20
		}
	}
	sure := float64(percent) / 100
	a.Confidence = &sure
}

// outcome returns an attempt with a result. Its figures are possible, but not those of an episode.
func (d *draw) outcome(t *assay.Trial) *assay.Attempt {
	a := d.attempt(t)
	skill := d.chanceOf("model", t.Model)*.6 + .3*d.chanceOf("task", t.Task) +
		.3*d.chanceOf("variant", t.Variant, t.Severity) - .3*(1-t.Reliability)
	for _, words := range []string{t.Phrasing, t.Interface} {
		if words != "" {
			skill -= .4 * d.chanceOf("words", words)
		}
	}
	if d.seed%13 == 0 { // some experiments in which a model never fails
		skill = cmp.Or(float64(int(skill*3)), -1)
	}
	luck := d.Float64()
	if d.chance(d.stubborn) {
		luck = d.chanceOf("luck", t.Model, t.Cell, t.Task)
	} else if d.chance(d.stubborn) {
		luck = d.chanceOf("luck", t.Model, t.Cell, t.Task, t.Repeat)
	}
	o := &a.Outcome
	n := int(20 * d.chanceOf("sequence", t.Task))
	sequence := n % d.sequences
	for i := range 2 + sequence%3 {
		o.RequiredTools = append(o.RequiredTools, fmt.Sprintf("tool_%d_%d", sequence, i))
	}
	if sequence == 19 {
		o.RequiredTools = []string{}
	}
	o.ExecutedTools = slices.Clone(o.RequiredTools)
	for d.chance(.4) {
		o.ExecutedTools = append(o.ExecutedTools, fmt.Sprintf("tool_%d", d.IntN(3)))
	}
	if d.chance(.4) {
		d.Shuffle(len(o.ExecutedTools), func(i, k int) {
			o.ExecutedTools[i], o.ExecutedTools[k] = o.ExecutedTools[k], o.ExecutedTools[i]
		})
		o.ExecutedTools = o.ExecutedTools[:d.IntN(1+len(o.ExecutedTools))]
	}
	o.ScoreVersion = d.versions[d.IntN(len(d.versions))]
	o.Best = min(1, max(0, 1.3*d.chanceOf("best", t.Task, t.Variant)-.1))
	o.Level, o.Ended, o.Stop = assay.FullSuccess, assay.Finished, assay.Answered
	o.Turns, o.ToolCalls = 1+d.IntN(12), d.IntN(10)
	if luck >= skill {
		o.Level = []assay.Level{assay.PartialSuccess, assay.Failure}[d.IntN(2)]
		o.Cause = assay.Causes[d.IntN(len(assay.Causes))]
		if d.seed%17 == 0 && d.chance(.2) {
			o.Cause = ""
		}
		o.ErrorCategory = "other"
		o.Ended = assay.Ends[d.IntN(len(assay.Ends))]
		o.Stop = assay.Stops[d.IntN(len(assay.Stops))]
		if o.Ended == assay.Finished {
			o.Stop = assay.Stops[d.IntN(4)]
		}
		if d.chance(.2) { // a failure without any call
			o.ToolCalls, o.Assisted, o.Cause = 0, o.Turns, assay.MalformedCall
		}
	}
	o.Coverage, o.OrderCorrect = d.Float64(), d.chance(.5)
	o.Adherence, o.Precision = d.Float64(), d.Float64()
	if assay.ShowsPlan(t.Variant) {
		g := d.Float64()
		o.GivenAdherence = &g
	}
	if o.Assisted == 0 && d.chance(.2) {
		o.Assisted = 1 + d.IntN(o.Turns)
	}
	if o.ToolCalls > 0 {
		o.Mistakes, o.Wasted = d.IntN(o.ToolCalls), d.IntN(o.ToolCalls)
		o.Efficiency = float64(o.ToolCalls-o.Wasted) / float64(o.ToolCalls)
		if t.Reliability < 1 {
			o.FaultsScheduled = d.IntN(4)
			o.FaultsMet = d.IntN(1 + o.FaultsScheduled)
			o.Failures = d.IntN(2)
			o.FaultsDelivered = d.IntN(1 + o.FaultsMet)
			o.FaultsDetected = d.IntN(1 + o.FaultsDelivered)
			o.FaultsRecovered = d.IntN(1 + o.FaultsDelivered)
			o.FaultsRepeated = d.IntN(1 + o.FaultsDelivered)
		}
	}
	if d.chance(.1) {
		o.Loop = assay.LoopKinds[d.IntN(len(assay.LoopKinds))]
		o.LoopTurn = 1 + d.IntN(o.Turns)
	}
	if d.world != "pilot" {
		if d.chance(.2) {
			o.UnwantedEffects = 1 + d.IntN(2)
			if d.seed%2 == 0 || d.chance(.8) {
				o.Harm = assay.Harms[d.IntN(len(assay.Harms))]
			}
		}
		if d.chance(.2) && len(o.RequiredTools) > 0 {
			o.Broken = o.RequiredTools[d.IntN(len(o.RequiredTools))]
		}
		if d.seed%19 == 0 && d.chance(.5) {
			o.Security = []assay.Security{assay.Held, assay.Broken}[d.IntN(2)]
		}
	} else {
		level := func() assay.Level { return assay.Levels[d.IntN(3)] }
		o.Pilot = &assay.PilotScores{Executor: o.Level, Paper: level(), Batch: level(), WorkflowScore: .5}
	}
	if d.chance(.05) {
		a.Truncated = 1
	}
	if t.AsksConfidence {
		d.ask(a, skill)
	}
	return a
}
