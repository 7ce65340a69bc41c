package report

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Side is one of two sets of attempts that are compared: those of an experiment, a
// run, a model or a variant.
type Side struct {
	Name string `json:"name"`
	// Trials counts the settled trials, Matched those of them at tasks that the other
	// side has under the same conditions, and Levels has the levels of each factor.
	Trials  int                 `json:"trials"`
	Matched int                 `json:"matched"`
	Levels  map[string][]string `json:"levels"`
}

// A Versus says what changed from A to B on the tasks, and under the conditions, that
// both have. Differences, their intervals and effect sizes are of B less A, and odds of
// B to A.
type Versus struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Differ names the factors in which the sides differ as a whole, such as the
	// model; in all others trials are matched.
	Differ []Difference `json:"differ"`
	// Shared counts trials that are the same on both sides; they cannot differ.
	Shared int `json:"shared"`
	// SameLuck says that both sides met the same luck, trial by trial. Else trials
	// flip against those of the same number among the repeats of their task.
	SameLuck bool `json:"same_luck"`
	// Unlike counts tasks that have one name on both sides, and not the same text.
	// They are not compared.
	Unlike int `json:"unlike_tasks"`
	// Whole compares all matched trials.
	Whole stat.Comparison `json:"whole"`
	// Bootstrap is the interval of the whole difference by resampling tasks, for those
	// who expect it; see [stat.Bootstrap] for why it is not the one to go by.
	Bootstrap stat.Interval `json:"bootstrap_95"`
	// Cells compare them condition by condition, with q over all of these.
	Cells []VersusCell `json:"cells"`
	// Flips are the matched trials whose full success changed; at most [mostFlips] of
	// them, and how many there are.
	Flips  []Flip `json:"flips"`
	Worse  int    `json:"flips_to_worse"`
	Better int    `json:"flips_to_better"`
	// Unread counts attempts of the store that could not be read and may belong to
	// either side.
	Unread int `json:"unread"`
}

// A Difference is a factor with its level on either side.
type Difference struct {
	Factor string `json:"factor"`
	A      string `json:"a"`
	B      string `json:"b"`
}

// A VersusCell compares the sides under one condition.
type VersusCell struct {
	Condition string `json:"condition"`
	stat.Comparison
	Q float64 `json:"q"`
}

// Significant says that the difference is taken for real.
func (c VersusCell) Significant() bool { return c.Tasks > 0 && c.Q < level05 }

// A Flip is a pair of trials, the same but for what is compared, one of which fully
// succeeded.
type Flip struct {
	Condition string        `json:"condition"`
	Task      assay.TaskID  `json:"task"`
	A         assay.TrialID `json:"a"`
	B         assay.TrialID `json:"b"`
	LevelA    assay.Level   `json:"level_a"`
	LevelB    assay.Level   `json:"level_b"`
	CategoryA string        `json:"category_a"`
	CategoryB string        `json:"category_b"`
}

// mostFlips are listed.
const mostFlips = 1000

// ErrNothingInCommon says that two sides have no task under the same conditions.
var ErrNothingInCommon = errors.New("the two sides have no task under the same conditions")

// A settled trial is what a comparison keeps of an attempt.
type settled struct {
	id assay.TrialID
	asked
	repeat   int
	seed     uint64
	levels   *factorLevels // of all trials that have the same ones
	level    assay.Level
	category string
}

// asked is a task by its name and its content.
type asked struct {
	task   assay.TaskID
	digest string
}

// matched are the factors that two trials have to share, or in which the sides as a
// whole may differ, in the order of texts.
var matched = [...]struct {
	name string
	of   func(*assay.Attempt) string
}{
	{model, func(a *assay.Attempt) string { return a.Model }},
	{"world", func(a *assay.Attempt) string { return a.World }},
	{"protocol", func(a *assay.Attempt) string { return a.Protocol }},
	{"tools", func(a *assay.Attempt) string { return a.Setting.Tools }},
	{"turn_limit", func(a *assay.Attempt) string { return fmt.Sprint(a.Setting.Turns) }},
	{"token_limit", func(a *assay.Attempt) string { return limitText(float64(a.Setting.Tokens), "tokens") }},
	{"cost_limit", func(a *assay.Attempt) string { return limitText(a.Setting.USD, "dollars") }},
	{"several_calls", func(a *assay.Attempt) string { return a.SeveralCalls }},
	{"failures", func(a *assay.Attempt) string { return failuresText(&a.Setting) }},
	{"loops", func(a *assay.Attempt) string { return a.Loops }},
	{"sampling", func(a *assay.Attempt) string { return samplingText(a.Sampling) }},
	{Graded, func(a *assay.Attempt) string { return gradedName(a.Variant, a.Severity) }},
	{difficulty, func(a *assay.Attempt) string { return a.Difficulty }},
	{taskType, func(a *assay.Attempt) string { return a.TaskType }},
	{reliability, func(a *assay.Attempt) string { return assay.FormatReliability(a.Reliability) }},
}

// factorLevels are those of a trial, in the order of matched.
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
	if s == (assay.Sampling{}) {
		return "the provider's"
	}
	var parts []string
	if s.Temperature != nil {
		parts = append(parts, fmt.Sprintf("temperature %g", *s.Temperature))
	}
	if s.TopP != nil {
		parts = append(parts, fmt.Sprintf("top_p %g", *s.TopP))
	}
	if s.MaxTokens != nil {
		parts = append(parts, fmt.Sprintf("max_tokens %d", *s.MaxTokens))
	}
	return strings.Join(parts, ", ")
}

// Compare compares two sets of attempts. Outcomes count, the first of each trial, and
// faults do not. A factor in which each side has one level, and not the same, is what
// the sides differ in; in all others trials are matched, as they are by task and
// repeat. Its error beside those of the attempts is [ErrNothingInCommon].
func Compare(nameA, nameB string, a, b iter.Seq2[assay.Attempt, error]) (*Versus, error) {
	var sides [2][]settled
	v := &Versus{Cells: []VersusCell{}, Flips: []Flip{}, Differ: []Difference{}}
	for i, s := range []struct {
		name     string
		attempts iter.Seq2[assay.Attempt, error]
		side     *Side
	}{{nameA, a, &v.A}, {nameB, b, &v.B}} {
		var err error
		if sides[i], err = gather(s.attempts); err != nil {
			return nil, err
		}
		*s.side = sideOf(s.name, sides[i])
	}
	drop := v.differences()
	for i, f := range matched { // what never varies tells no condition from another
		x, y := v.A.Levels[f.name], v.B.Levels[f.name]
		drop[i] = drop[i] || len(x) == 1 && slices.Equal(x, y)
	}
	if v.pair(sides[0], sides[1], drop); v.Whole.Tasks == 0 {
		return v, ErrNothingInCommon
	}
	return v, nil
}

func gather(attempts iter.Seq2[assay.Attempt, error]) (all []settled, err error) {
	seen := make(map[assay.TrialID]bool)
	words, shared := make(map[string]string), make(map[factorLevels]*factorLevels)
	word := func(text string) string {
		if w, ok := words[text]; ok {
			return w
		}
		words[text] = text
		return text
	}
	for a, err := range attempts {
		if err != nil {
			return nil, err
		}
		if !a.Settles() || seen[a.ID] {
			continue
		}
		seen[a.ID] = true
		var levels factorLevels
		for i, f := range matched {
			levels[i] = f.of(&a)
		}
		if shared[levels] == nil {
			shared[levels] = &levels
		}
		all = append(all, settled{
			id: a.ID, asked: asked{assay.TaskID(word(string(a.Task))), word(a.TaskDigest)}, repeat: a.Repeat, seed: a.Seed,
			levels: shared[levels], level: a.Level, category: word(a.ErrorCategory),
		})
	}
	return all, nil
}

func sideOf(name string, all []settled) Side {
	s := Side{Name: name, Trials: len(all), Levels: make(map[string][]string)}
	for i, f := range matched {
		seen := make(map[string]bool)
		for _, t := range all {
			seen[t.levels[i]] = true
		}
		s.Levels[f.name] = slices.Sorted(maps.Keys(seen))
	}
	return s
}

// differences finds the factors in which the sides differ as a whole.
func (v *Versus) differences() (drop [len(matched)]bool) {
	for i, f := range matched {
		x, y := v.A.Levels[f.name], v.B.Levels[f.name]
		if len(x) == 1 && len(y) == 1 && x[0] != y[0] {
			drop[i] = true
			v.Differ = append(v.Differ, Difference{f.name, x[0], y[0]})
		}
	}
	return drop
}

// byCondition holds a side's trials by condition and task.
type byCondition map[string]map[asked][]*settled

func arrange(all []settled, drop [len(matched)]bool) byCondition {
	out := make(byCondition)
	for i := range all {
		t := &all[i]
		var parts []string
		for k := range matched {
			if !drop[k] && t.levels[k] != "" {
				parts = append(parts, conditionText(matched[k].name, readable(t.levels[k])))
			}
		}
		condition := cmp.Or(strings.Join(parts, ", "), "all")
		if out[condition] == nil {
			out[condition] = make(map[asked][]*settled)
		}
		out[condition][t.asked] = append(out[condition][t.asked], t)
	}
	for _, tasks := range out {
		for _, trials := range tasks {
			slices.SortFunc(trials, func(x, y *settled) int { return cmp.Or(cmp.Compare(x.repeat, y.repeat), cmp.Compare(x.seed, y.seed)) })
		}
	}
	return out
}

// conditionText says what a bare number is of.
func conditionText(factor, level string) string {
	switch factor {
	case reliability:
		return "reliability " + level
	case "turn_limit":
		return level + " turns"
	}
	return level
}

// sameLuck tells whether any trial of a met the luck of one of b.
func sameLuck(a, b []settled) bool {
	type luck struct {
		asked
		seed uint64
	}
	met := make(map[luck]bool)
	for i := range a {
		met[luck{a[i].asked, a[i].seed}] = true
	}
	return slices.ContainsFunc(b, func(t settled) bool { return met[luck{t.asked, t.seed}] })
}

// unlike counts the tasks of a that b has by name alone.
func unlike(a, b map[asked][]*settled) (n int) {
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

// pair matches the sides. Repeats of a task that only one side has count by their
// task, and cannot flip.
func (v *Versus) pair(a, b []settled, drop [len(matched)]bool) {
	left, right := arrange(a, drop), arrange(b, drop)
	v.SameLuck = sameLuck(a, b)
	sums := make(map[asked]stat.Pair)
	inOrder := func(x, y asked) int { return cmp.Or(cmp.Compare(x.task, y.task), cmp.Compare(x.digest, y.digest)) }
	for _, condition := range slices.Sorted(maps.Keys(left)) {
		var pairs []stat.Pair
		v.Unlike += unlike(left[condition], right[condition])
		for _, task := range slices.SortedFunc(maps.Keys(left[condition]), inOrder) {
			x, y := left[condition][task], right[condition][task]
			if len(y) == 0 {
				continue
			}
			v.A.Matched += len(x)
			v.B.Matched += len(y)
			p := stat.Pair{A: fulls(y), NA: len(y), B: fulls(x), NB: len(x)}
			pairs = append(pairs, p)
			s := sums[task]
			sums[task] = stat.Pair{A: s.A + p.A, NA: s.NA + p.NA, B: s.B + p.B, NB: s.NB + p.NB}
			v.flips(condition, x, y)
		}
		if len(pairs) > 0 {
			v.Cells = append(v.Cells, VersusCell{Condition: condition, Comparison: change(pairs)})
		}
	}
	p := make([]float64, len(v.Cells))
	for i := range v.Cells {
		p[i] = v.Cells[i].P
	}
	for i, q := range stat.BenjaminiHochberg(p) {
		v.Cells[i].Q = q
	}
	var all []stat.Pair
	for _, task := range slices.SortedFunc(maps.Keys(sums), inOrder) {
		all = append(all, sums[task])
	}
	v.Whole, v.Bootstrap = change(all), stat.Bootstrap(all)
}

// change compares pairs whose first side is B, so that differences are B less A, and
// gives each side its own name back.
func change(pairs []stat.Pair) stat.Comparison {
	c := stat.Compare(pairs)
	c.RateA, c.RateB = c.RateB, c.RateA
	c.OnlyA, c.OnlyB = c.OnlyB, c.OnlyA
	return c
}

func fulls(trials []*settled) (n int) {
	for _, t := range trials {
		n += int(isFull(t.level))
	}
	return n
}

func (v *Versus) flips(condition string, x, y []*settled) {
	at := make(map[uint64]*settled, len(y))
	slot := func(i int, t *settled) uint64 {
		if v.SameLuck {
			return t.seed
		}
		return uint64(i)
	}
	for i, t := range y {
		at[slot(i, t)] = t
	}
	for i, a := range x {
		b := at[slot(i, a)]
		if b == nil {
			continue
		}
		if a.id == b.id {
			v.Shared++
			continue
		}
		switch cmp.Compare(isFull(b.level), isFull(a.level)) {
		case 0:
			continue
		case 1:
			v.Better++
		default:
			v.Worse++
		}
		if len(v.Flips) < mostFlips {
			v.Flips = append(v.Flips, Flip{condition, a.task, a.id, b.id, a.level, b.level, a.category, b.category})
		}
	}
}

// Document lays the comparison out for people to read, with links to the episodes of
// flips where there are any of these IDs.
func (v *Versus) Document(episodes map[assay.TrialID]string) *document.Document {
	d := &document.Document{Title: v.A.Name + " against " + v.B.Name, Lead: v.lead()}
	if v.Unread > 0 {
		d.Alarms = append(d.Alarms, document.Alarm{
			Title: damagedTitle, Text: "What cannot be read is on neither side. " + damagedHelp,
			Where: []string{fmt.Sprintf("%d attempts cannot be read", v.Unread)},
		})
	}
	w := VersusCell{Condition: "all", Comparison: v.Whole, Q: v.Whole.P}
	d.Sections = append(d.Sections, document.Section{
		ID: "whole", Title: "On the whole", Table: versusTable([]VersusCell{w}), Notes: v.notes(),
	})
	if len(v.Cells) > 1 {
		d.Sections = append(d.Sections, document.Section{
			ID: "conditions", Title: "By condition", Chart: v.chart(), Table: versusTable(v.Cells),
			Notes: []string{fmt.Sprintf("%d of %d conditions differ significantly: q below .05 after Benjamini and Hochberg.", v.significant(), len(v.Cells))},
		})
	}
	if len(v.Flips) > 0 {
		s := document.Section{
			ID: "flips", Title: "Trials that flipped",
			Lead:  fmt.Sprintf("Trials that fully succeed in %s only: %d; in %s only: %d. `assay show` prints a trial.", v.A.Name, v.Worse, v.B.Name, v.Better),
			Table: &document.Table{Columns: append(names("condition", "task"), figures("trial of A", "A", "trial of B", "B")...)},
		}
		for _, f := range v.Flips {
			link := func(id assay.TrialID) document.Cell {
				return document.Cell{Text: string(id[:min(12, len(id))]), Episode: episodes[id]}
			}
			s.Table.Rows = append(s.Table.Rows, []document.Cell{
				text(f.Condition), text(string(f.Task)), link(f.A), text(outcomeText(f.LevelA, f.CategoryA)), link(f.B), text(outcomeText(f.LevelB, f.CategoryB)),
			})
		}
		if n := v.Worse + v.Better; n > len(v.Flips) {
			s.Notes = []string{fmt.Sprintf("The first %d of %d.", len(v.Flips), n)}
		}
		d.Sections = append(d.Sections, s)
	}
	return d
}

func outcomeText(l assay.Level, category string) string {
	if category == "" {
		return readable(string(l))
	}
	return readable(string(l)) + ": " + readable(category)
}

func (v *Versus) lead() string {
	w := v.Whole
	verdict := "no significant difference"
	switch {
	case w.P < level05 && w.Difference > 0:
		verdict = "significantly better"
	case w.P < level05:
		verdict = "significantly worse"
	}
	text := fmt.Sprintf("%s is %+.1f points from %s: %s (%s) on %d tasks.", v.B.Name, 100*w.Difference, v.A.Name, verdict, pText(w.P), w.Tasks)
	if w.P >= level05 {
		text += fmt.Sprintf(" A difference of %.1f points would have shown in 80 of 100 repetitions.", 100*w.Detectable)
	}
	for _, d := range v.Differ {
		text += fmt.Sprintf(" They differ in %s: %s and %s.", readable(d.Factor), cmp.Or(d.A, "none"), cmp.Or(d.B, "none"))
	}
	if len(v.Differ) > 1 {
		text += " What the difference comes from cannot be told apart."
	}
	return text
}

func (v *Versus) notes() []string {
	notes := []string{
		fmt.Sprintf("Matched by task and condition: %d of the %d settled trials of %s, and %d of the %d of %s.", v.A.Matched, v.A.Trials, v.A.Name, v.B.Matched, v.B.Trials, v.B.Name),
		methodNote(v.Whole.Method) + " Each task weighs the same. It decides what is significant, and the interval says how large the difference may be: near the limit they can disagree.",
		fmt.Sprintf("By resampling tasks (bootstrap) the interval is %+.1f to %+.1f; with few tasks that is too narrow.", 100*v.Bootstrap.Low, 100*v.Bootstrap.High),
	}
	if !v.SameLuck {
		notes = append(notes, "The sides met different luck, trial by trial: their seeds or worlds differ.")
	}
	if v.Unlike > 0 {
		notes = append(notes, fmt.Sprintf("%d tasks have one name on both sides and not the same text; they are not compared.", v.Unlike))
	}
	if v.Shared > 0 {
		notes = append(notes, fmt.Sprintf("%d trials are the same on both sides, and so cannot differ.", v.Shared))
	}
	return notes
}

func (v *Versus) significant() (n int) {
	for _, c := range v.Cells {
		if c.Significant() {
			n++
		}
	}
	return n
}

func versusTable(cells []VersusCell) *document.Table {
	t := &document.Table{Columns: append(names("condition"), []document.Column{
		{Head: "tasks"},
		{Head: "A"},
		{Head: "B"},
		{Head: "B − A", Hint: "in percentage points"},
		{Head: "95 % interval"},
		{Head: "B only", Hint: "tasks on which B did better"},
		{Head: "A only", Hint: "tasks on which A did better"},
		{Head: "h", Hint: "Cohen's effect size"},
		{Head: "p"},
		{Head: "q", Hint: "p adjusted for all conditions"},
		{Head: "detectable", Hint: "the least difference that would show in 80 of 100 repetitions, in points"},
	}...)}
	for _, c := range cells {
		d := figure(100*c.Difference, "%+.1f")
		switch {
		case c.Significant() && c.Difference > 0:
			d.Tone = document.Good
		case c.Significant():
			d.Tone = document.Bad
		}
		t.Rows = append(t.Rows, []document.Cell{
			text(c.Condition), whole(c.Tasks), points(c.RateA), points(c.RateB), d,
			{Text: fmt.Sprintf("%+.1f to %+.1f", 100*c.Interval.Low, 100*c.Interval.High), Value: &c.Interval.Low},
			whole(c.OnlyB), whole(c.OnlyA), figure(c.CohenH, "%+.2f"),
			{Text: chance(c.P), Value: &c.P},
			{Text: chance(c.Q), Value: &c.Q},
			{Text: fmt.Sprintf("%.1f", 100*c.Detectable), Value: &c.Detectable},
		})
	}
	return t
}

// mostBars are shown in the chart of conditions.
const mostBars = 60

func (v *Versus) chart() *document.Chart {
	cells := slices.Clone(v.Cells)
	slices.SortStableFunc(cells, func(a, b VersusCell) int { return cmp.Compare(a.Difference, b.Difference) })
	if len(cells) > mostBars {
		return nil
	}
	var rows []object
	for _, c := range cells {
		rows = append(rows, object{
			"condition": c.Condition, "points": 100 * c.Difference, "low": 100 * c.Interval.Low, "high": 100 * c.Interval.High,
			"significant": map[bool]string{true: "significant", false: "not significant"}[c.Significant()], "q": c.Q, "tasks": c.Tasks,
		})
	}
	y := object{"field": "condition", "type": "nominal", "title": nil, "sort": nil, "axis": object{"labelLimit": 420}}
	return chart(fmt.Sprintf("Differences of %s to %s in %d conditions, in percentage points, with 95 %% intervals.", v.B.Name, v.A.Name, len(cells)), object{
		"data": values(rows), "height": object{"step": 20},
		"encoding": object{
			"y": y, "opacity": object{"field": "significant", "type": "ordinal", "title": nil, "sort": list{"significant", "not significant"}, "scale": object{"range": list{1, .45}}},
			"tooltip": list{tip("condition", "condition", ""), tip("points", "points", "+.1f"), tip("low", "from", "+.1f"), tip("high", "to", "+.1f"), tip("q", "q", ".3f"), tip("tasks", "tasks", "d")},
		},
		"layer": list{
			object{"mark": object{"type": "rule", "strokeWidth": 2}, "encoding": object{"x": object{"field": "low", "type": "quantitative", "title": "points"}, "x2": object{"field": "high"}}},
			object{"mark": object{"type": "point", "filled": true, "size": 60}, "encoding": object{"x": object{"field": "points", "type": "quantitative"}}},
		},
	})
}
