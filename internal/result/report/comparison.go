package report

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"unique"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Side is one of two sets of attempts that are compared: the attempts of an experiment, a run, a
// model or a variant.
type Side struct {
	Name string `json:"name"`
	// Trials counts the settled trials. Matched counts the trials at tasks that the other side
	// has under the same conditions. Levels lists the levels of each factor.
	Trials  int                 `json:"trials"`
	Matched int                 `json:"matched"`
	Levels  map[string][]string `json:"levels"`
	// Prompts and Judges are the versions of the templates of prompts, and of the rules of
	// verdicts.
	Prompts []string `json:"prompts"`
	Judges  []string `json:"judges"`
	// Juries are the models that judged, each after the version of the words that asked it.
	Juries []string `json:"juries,omitempty"`
	// Uncompared are the models among them that were never compared with people; see [Side.Compare].
	Uncompared []string `json:"uncompared_judges,omitempty"`
	// USD is the total cost of the settled trials.
	USD float64 `json:"usd"`
	// Full counts the trials that fully succeeded, and Faults the attempts without an outcome.
	Full   int `json:"full_successes"`
	Faults int `json:"faults"`
	// Median and P95 are the seconds within which half and 95 % of the trials were done, without
	// queues.
	Median float64 `json:"trial_median_s"`
	P95    float64 `json:"trial_p95_s"`
	// Replayed counts the trials that were worked on again after they had an outcome. Their first
	// outcome counts here, because trials are usually chosen for that by their outcome. Late counts
	// the trials whose first outcome is not on this side.
	Replayed int `json:"replayed"`
	Late     int `json:"first_outcome_missing,omitempty"`
	// Replays counts the outcomes that are left out because they have the luck of another trial that counts:
	// where each trial counts by itself, they would make data look like more than they are.
	Replays int `json:"replays_left_out,omitempty"`
	// Planned and Pending count the trials that were meant to be on this side, and the trials
	// without an outcome. They are 0 if that is unknown.
	Planned int `json:"planned"`
	Pending int `json:"pending"`
	// Unpriced counts the tokens with an unknown cost, which USD leaves out.
	Unpriced int `json:"unpriced_tokens,omitempty"`
	// Unmetered counts the trials of agents that asked no model through the gateway, whose dollars nobody knows.
	Unmetered int `json:"unmetered,omitempty"`
}

// AtLeast reports whether USD leaves something out.
func (s Side) AtLeast() bool { return s.Unpriced > 0 || s.Unmetered > 0 }

// Each returns the average cost of a trial.
func (s Side) Each() float64 { return s.USD / float64(max(1, s.Trials)) }

// A Comparison shows the changes from A to B on the tasks and under the conditions that
// both sides have. Differences, their intervals and effect sizes are B minus A, and odds are
// B to A.
type Comparison struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Differ names the factors in which the sides differ as a whole, such as the model.
	// Trials are matched in all other factors.
	Differ []Difference `json:"differ"`
	// Shared counts outcomes that belong to both sides. They cannot differ. Outcomes of one trial in two
	// runs can: the model behind a name may have changed.
	Shared int `json:"shared"`
	// SameLuck reports whether both sides met the same luck, trial by trial. Otherwise
	// trials flip against those with the same number among the repeats of their task.
	SameLuck bool `json:"same_luck"`
	// Unlike counts tasks with the same name and different texts. They are not compared.
	Unlike int `json:"unlike_tasks"`
	// Whole compares all matched trials.
	Whole stat.Comparison `json:"whole"`
	// Compliance compares the shares of trials without an effect that the task did not ask for or forbids,
	// where worlds judge effects. It is nil if no trial has such an effect.
	Compliance *Paired `json:"compliance,omitempty"`
	// Population describes the tasks that intervals and tests are about.
	Population Population `json:"population"`
	// Cells compares the sides under each condition: significant differences first, then
	// by size. Q is adjusted over all of them.
	Cells []Paired `json:"cells"`
	// Flips lists matched trials whose full success changed, at most [maxFlips] of them.
	// Worse and Better count all of them.
	Flips  []Flip `json:"flips"`
	Worse  int    `json:"flips_to_worse"`
	Better int    `json:"flips_to_better"`
	// Unread counts attempts of the store that could not be read and may belong to either
	// side.
	Unread int `json:"unread"`

	pairs     stat.GateData
	baseline  []settled
	candidate []settled
	byTask    map[namedTask]*Change
	untried   int // cells of tasks that only A has
}

// A Difference is a factor with its level on either side.
type Difference struct {
	Factor string `json:"factor"`
	A      string `json:"a"`
	B      string `json:"b"`
}

// ErrNothingInCommon means that two sides have no task under the same conditions.
var ErrNothingInCommon = errors.New("the two sides have no task under the same conditions")

// A settled trial holds the parts of an attempt that a comparison needs.
type settled struct {
	id  assay.TrialID
	run assay.RunID
	namedTask
	attempt   int // its number if a later outcome superseded it, otherwise 0
	repeat    int
	seed      uint64
	required  string        // tools
	levels    *factorLevels // shared by all trials with the same levels
	level     assay.Level
	effects   effects
	cause     assay.Cause
	prompts   string
	judge     string
	jury      string
	usd       float64
	unpriced  int
	unmetered bool
	seconds   float64
	round     int
	replayed  bool
}

// A namedTask is identified by its name and its content.
type namedTask struct {
	task   assay.TaskID
	digest string
}

func (a namedTask) compare(b namedTask) int {
	return cmp.Or(cmp.Compare(a.task, b.task), cmp.Compare(a.digest, b.digest))
}

type matchedFactor struct {
	name string
	of   func(*assay.Attempt) string
}

// matched lists the factors that two trials must share unless the sides differ in them as a whole.
// Texts name them in this order.
var matched = [...]matchedFactor{
	{model, func(a *assay.Attempt) string { return a.Model }},
	{"world", func(a *assay.Attempt) string { return a.World }},
	{"protocol", func(a *assay.Attempt) string { return a.Protocol }},
	{"tools", func(a *assay.Attempt) string { return a.Setting.Tools }},
	{"turn_limit", func(a *assay.Attempt) string { return fmt.Sprint(a.Setting.Turns) }},
	{"call_limit", func(a *assay.Attempt) string {
		return limitText(float64(a.Setting.Calls), "calls")
	}},
	{"token_limit", func(a *assay.Attempt) string {
		return limitText(float64(a.Setting.Tokens), "tokens")
	}},
	{"cost_limit", func(a *assay.Attempt) string { return limitText(a.Setting.USD, "dollars") }},
	{"several_calls", func(a *assay.Attempt) string { return a.SeveralCalls }},
	{"failures", func(a *assay.Attempt) string { return failuresText(&a.Setting) }},
	{"faults of tools", func(a *assay.Attempt) string { return MixName(a.Faults) }},
	{"faults of the agent's model", func(a *assay.Attempt) string { return a.ModelFaults }},
	{interfaces, func(a *assay.Attempt) string { return assay.InterfaceName(a.Interface) }},
	{phrasing, func(a *assay.Attempt) string { return PhrasingName(a.Phrasing) }},
	{"loops", func(a *assay.Attempt) string { return a.Loops }},
	{"sampling", func(a *assay.Attempt) string { return samplingText(a.Sampling) }},
	{Graded, func(a *assay.Attempt) string { return PromptKey(a.Variant, a.Severity) }},
	{difficulty, func(a *assay.Attempt) string { return a.Difficulty }},
	{taskType, func(a *assay.Attempt) string { return a.TaskType }},
	{reliability, func(a *assay.Attempt) string { return assay.FormatReliability(a.Reliability) }},
}

// factorLevels holds the levels of a trial, in the order of matched.
type factorLevels [len(matched)]string

func limitText(limit float64, unit string) string {
	if limit == 0 {
		return ""
	}
	return fmt.Sprintf("at most %g %s", limit, unit)
}

func failuresText(s *assay.Setting) string {
	if s.Persistence == 0 && s.Burst == 0 {
		return ""
	}
	return fmt.Sprintf("persistence %g, burst %g", s.Persistence, s.Burst)
}

func samplingText(s assay.Sampling) string {
	s.Revision = "" // part of the model's name
	if s == (assay.Sampling{}) {
		return "the provider's"
	}
	var parts []string
	for name, value := range s.Fields() {
		parts = append(parts, name+" "+value)
	}
	return strings.Join(parts, ", ")
}

// Compare compares two sets of attempts. It ignores faults, and all but the first outcome of a trial.
// Superseded outcomes count, because trials are usually worked on again since they failed.
//
// The cluster is the unit that intervals and tests count as independent, one of [stat.Clusters]. If
// each side has a single level of a factor and the levels differ, the sides differ in that factor.
// Trials are matched in all other factors, by task and by repeat. Compare returns the errors of the
// attempts, and [ErrNothingInCommon].
func Compare(
	nameA, nameB, cluster string, a, b iter.Seq2[assay.Attempt, error],
) (*Comparison, error) {
	var sides [2][]settled
	c := newComparison()
	for i, s := range []struct {
		name     string
		attempts iter.Seq2[assay.Attempt, error]
		side     *Side
	}{{nameA, a, &c.A}, {nameB, b, &c.B}} {
		var err error
		if *s.side, sides[i], err = gather(s.name, s.attempts); err != nil {
			return nil, err
		}
	}
	unify(sides[0], sides[1])
	c.baseline, c.candidate = sides[0], sides[1]
	drop := c.differences()
	for i, f := range matched { // constant factors need not be in the names of conditions
		x, y := c.A.Levels[f.name], c.B.Levels[f.name]
		drop[i] = drop[i] || len(x) == 1 && slices.Equal(x, y)
	}
	if c.pair(sides[0], sides[1], drop, cluster); c.Whole.Tasks == 0 {
		return c, ErrNothingInCommon
	}
	return c, nil
}

// unify makes the phrasings of a task one task, as far as both sides have the same texts. A trial's digest is
// of the text that it shows.
func unify(sides ...[]settled) {
	at := slices.IndexFunc(matched[:], func(f matchedFactor) bool { return f.name == phrasing })
	texts := make(map[assay.TaskID]map[string]string) // of phrasings; "" if there are several
	for _, side := range sides {
		for i := range side {
			t := &side[i]
			if texts[t.task] == nil {
				texts[t.task] = make(map[string]string)
			}
			text, known := texts[t.task][t.levels[at]]
			if !known {
				text = t.digest
			} else if text != t.digest {
				text = ""
			}
			texts[t.task][t.levels[at]] = text
		}
	}
	for _, side := range sides {
		for i := range side {
			t := &side[i]
			of := texts[t.task]
			if of[t.levels[at]] == "" {
				continue
			}
			for _, name := range slices.Sorted(maps.Keys(of)) {
				if of[name] != "" {
					t.digest = of[name]
					break
				}
			}
		}
	}
}

func newComparison() *Comparison {
	return &Comparison{
		Cells: []Paired{}, Flips: []Flip{}, Differ: []Difference{},
		byTask: make(map[namedTask]*Change),
	}
}

// populationOf returns the population of the tasks of side a that the other side has too.
func populationOf(a, b []settled, cluster string) *population[namedTask] {
	p := &population[namedTask]{cluster: cluster}
	other := make(map[namedTask]bool)
	for _, t := range b {
		other[t.namedTask] = true
	}
	for _, t := range a {
		if other[t.namedTask] {
			p.add(t.namedTask, t.required)
		}
	}
	return p
}

// gather returns a side and its trials.
func gather(
	name string, attempts iter.Seq2[assay.Attempt, error],
) (s Side, all []settled, err error) {
	faults, replays := 0, make(map[assay.TrialID]bool)
	seen := make(map[assay.TrialID]int) // where they are in all
	shared := make(map[factorLevels]*factorLevels)
	word := func(text string) string { return unique.Make(text).Value() }
	for a, err := range attempts {
		if err != nil {
			return s, nil, err
		}
		if !a.Settles() {
			faults += int(flag(a.FaultKind != assay.Interrupted))
			continue
		}
		if a.Replay > 0 {
			replays[a.ID] = true
			continue
		}
		at, known := seen[a.ID]
		if known && a.Round == all[at].round {
			continue
		}
		if known {
			all[at].replayed = true
			if a.Round > all[at].round {
				continue
			}
		}
		var levels factorLevels
		for i, f := range matched {
			levels[i] = f.of(&a)
		}
		if shared[levels] == nil {
			shared[levels] = &levels
		}
		t := settled{
			id: a.ID, run: a.Run, namedTask: namedTask{assay.TaskID(word(string(a.Task))), word(a.TaskDigest)},
			repeat: a.Repeat, seed: a.Seed, levels: shared[levels], level: a.Level, effects: effectsOf(&a),
			required: word(strings.Join(a.RequiredTools, " ")), cause: assay.Cause(word(string(a.Cause))),
			prompts: word(a.Templates), judge: word(a.ScoreVersion), jury: word(judgeOf(&a).String()), usd: a.CostUSD,
			unpriced: a.UnpricedTokens, unmetered: a.Unmetered, seconds: float64(a.WorkingMS) / 1000, round: a.Round,
			replayed: known || a.Round > 0,
		}
		if a.Superseded {
			t.attempt = a.Number
		}
		if known {
			all[at] = t
			continue
		}
		seen[a.ID] = len(all)
		all = append(all, t)
	}
	s = sideOf(name, all)
	s.Faults, s.Replays = faults, len(replays)
	return s, all, nil
}

func sideOf(name string, all []settled) Side {
	s := Side{Name: name, Trials: len(all), Levels: make(map[string][]string)}
	for i, f := range matched {
		s.Levels[f.name] = distinct(all, func(t *settled) string { return t.levels[i] })
	}
	var seconds []float64
	for _, t := range all {
		seconds = append(seconds, t.seconds)
		s.Full += int(isFull(t.level))
		s.USD = assay.RoundUSD(s.USD + t.usd)
		s.Unpriced += t.unpriced
		s.Unmetered += int(flag(t.unmetered))
		s.Replayed += int(flag(t.replayed))
		s.Late += int(flag(t.round > 0))
	}
	if slices.Sort(seconds); len(seconds) > 0 {
		s.Median, s.P95 = seconds[len(seconds)/2], seconds[len(seconds)*95/100]
	}
	s.Prompts = distinct(all, func(t *settled) string { return t.prompts })
	s.Judges = distinct(all, func(t *settled) string { return t.judge })
	juries := distinct(all, func(t *settled) string { return t.jury })
	s.Juries = slices.DeleteFunc(juries, func(jury string) bool { return jury == "" })
	return s
}

func distinct(all []settled, of func(*settled) string) []string {
	seen := make(map[string]bool)
	for i := range all {
		seen[of(&all[i])] = true
	}
	return slices.Sorted(maps.Keys(seen))
}

// differences finds the factors in which the sides differ as a whole.
func (c *Comparison) differences() (drop [len(matched)]bool) {
	for i, f := range matched {
		x, y := c.A.Levels[f.name], c.B.Levels[f.name]
		if len(x) == 1 && len(y) == 1 && x[0] != y[0] {
			drop[i] = true
			c.Differ = append(c.Differ, Difference{f.name, x[0], y[0]})
		}
	}
	return drop
}

// byCondition holds a side's trials by condition and task.
type byCondition map[string]map[namedTask][]*settled

func arrange(all []settled, drop [len(matched)]bool) byCondition {
	out := make(byCondition)
	for i := range all {
		t := &all[i]
		var parts []string
		for k := range matched {
			if !drop[k] && t.levels[k] != "" {
				parts = append(parts, conditionText(matched[k].name, Readable(t.levels[k])))
			}
		}
		condition := cmp.Or(strings.Join(parts, ", "), "all")
		if out[condition] == nil {
			out[condition] = make(map[namedTask][]*settled)
		}
		out[condition][t.namedTask] = append(out[condition][t.namedTask], t)
	}
	byRepeat := func(x, y *settled) int {
		return cmp.Or(cmp.Compare(x.repeat, y.repeat), cmp.Compare(x.seed, y.seed))
	}
	for _, tasks := range out {
		for _, trials := range tasks {
			slices.SortFunc(trials, byRepeat)
		}
	}
	return out
}

// conditionText adds the factor to levels that are bare numbers.
func conditionText(factor, level string) string {
	switch factor {
	case reliability:
		return "reliability " + level
	case "turn_limit":
		return level + " turns"
	}
	return level
}

// sameLuck reports whether a trial of a met the luck of a trial of b.
func sameLuck(a, b []settled) bool {
	type luck struct {
		namedTask
		seed uint64
	}
	met := make(map[luck]bool)
	for _, t := range a {
		met[luck{t.namedTask, t.seed}] = true
	}
	return slices.ContainsFunc(b, func(t settled) bool { return met[luck{t.namedTask, t.seed}] })
}

// unlike counts the tasks of a whose name, but not content, occurs in b.
func unlike(a, b map[namedTask][]*settled) (n int) {
	names := make(map[assay.TaskID]bool)
	for t := range b {
		names[t.task] = true
	}
	for t := range a {
		if _, same := b[t]; !same && names[t.task] {
			n++
		}
	}
	return n
}

// pair matches the sides. Repeats that only one side has still count in the rate of their task, but
// cannot flip.
func (c *Comparison) pair(a, b []settled, drop [len(matched)]bool, cluster string) {
	left, right := arrange(a, drop), arrange(b, drop)
	c.SameLuck = sameLuck(a, b)
	from := populationOf(a, b, cluster)
	c.Population = from.describe()
	all, partners := newPairing(from, namedTask.compare), newPairing(from, namedTask.compare)
	harmless := newPairing(from, namedTask.compare)
	violations := 0
	lone := !c.SameLuck // some task has no trials with the same luck under a condition
	for number, condition := range slices.Sorted(maps.Keys(left)) {
		c.Unlike += unlike(left[condition], right[condition])
		here := newPairing(from, namedTask.compare)
		for _, task := range slices.SortedFunc(maps.Keys(left[condition]), namedTask.compare) {
			x, y := left[condition][task], right[condition][task]
			if len(y) == 0 {
				c.untried++
				continue
			}
			if c.byTask[task] == nil {
				c.byTask[task] = &Change{Task: task.task}
			}
			c.byTask[task].add(x, y)
			c.A.Matched += len(x)
			c.B.Matched += len(y)
			cell := stat.NewCell(number, successes(x), successes(y))
			here.add(task, cell)
			all.add(task, cell)
			if before, after := complied(x), complied(y); before != nil && after != nil {
				harmless.add(task, stat.NewCell(number, before, after))
				violations += len(x) + len(y) - trues(before) - trues(after)
			}
			x, y = c.partners(x, y)
			lone = lone || len(x) == 0
			partners.add(task, stat.NewCell(number, successes(x), successes(y)))
			c.flips(condition, x, y)
		}
		if len(here.cells) > 0 {
			c.Cells = append(c.Cells, Paired{Condition: condition, Comparison: here.compare()})
		}
	}
	adjust(references(c.Cells))
	slices.SortStableFunc(c.Cells, bySize)
	c.Whole = all.compare()
	if violations > 0 {
		c.Compliance = &Paired{Condition: "all", Comparison: harmless.compare()}
		c.Compliance.Q = c.Compliance.P
	}
	c.pairs = stat.GateData{SameLuck: !lone, BySequence: from.bySequence(), Tasks: partners.tasks()}
	if lone {
		c.pairs.Tasks = all.tasks()
	}
}

// partners pairs trials with the same luck if the sides share it, otherwise in their order.
func (c *Comparison) partners(a, b []*settled) (x, y []*settled) {
	if !c.SameLuck {
		n := min(len(a), len(b))
		return a[:n], b[:n]
	}
	at := make(map[uint64]*settled, len(b))
	for _, t := range b {
		at[t.seed] = t
	}
	for _, t := range a {
		if partner := at[t.seed]; partner != nil {
			x, y = append(x, t), append(y, partner)
			delete(at, t.seed)
		}
	}
	return x, y
}

func successes(trials []*settled) []bool {
	out := make([]bool, len(trials))
	for i, t := range trials {
		out[i] = isFull(t.level) > 0
	}
	return out
}

// complied reports for each trial whether it has no unwanted effect. It is nil if a world did not judge that.
func complied(trials []*settled) []bool {
	out := make([]bool, len(trials))
	for i, t := range trials {
		if t.effects == unjudged {
			return nil
		}
		out[i] = t.effects == compliant
	}
	return out
}

func trues(all []bool) (n int) {
	for _, is := range all {
		n += int(flag(is))
	}
	return n
}

// bySize orders significant differences before others, and large ones before small ones.
func bySize(x, y Paired) int {
	return cmp.Or(cmp.Compare(flag(y.Significant()), flag(x.Significant())),
		cmp.Compare(math.Abs(y.Difference), math.Abs(x.Difference)))
}

func fulls(trials []*settled) (n int) {
	for _, t := range trials {
		n += int(isFull(t.level))
	}
	return n
}
