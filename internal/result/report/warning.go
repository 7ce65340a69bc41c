package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Warning marks figures that may be misleading. The 2025 original published such figures
// as findings.
type Warning struct {
	// Kind is one of a fixed set of words: zero, perfect, malformed, size, no_difference,
	// difference, identity, drift, program, settings, truncated, deviations, exposed, apart, online,
	// unmetered, unasked, changed, refused, lost, late, usage, price, repriced, faults, stopped,
	// incomplete, plans, retried, unsolvable, unsound, not_discriminating, uncompared, judged_alone or
	// damaged.
	Kind  string   `json:"kind"`
	Title string   `json:"title"`
	Text  string   `json:"text"`
	Where []string `json:"where"`
}

// The title of the warning about damaged stores, and its remedy.
const (
	DamagedTitle = "The store is damaged"
	DamagedHelp  = "`assay store verify` shows what is wrong, " +
		"`assay store recover` copies what is intact."
)

// The thresholds of warnings.
const (
	fewest    = 10  // outcomes of a row, below which 0 % and 100 % are no surprise
	malformed = 0.8 // share of outcomes without a valid call
	faulty    = 0.05
	silent    = 20 // tasks without a single difference
)

func warnings(a *Analysis, cells []*cell, b Beside, sameText []Paired) []Warning {
	zero, perfect := extremes(cells)
	models := byModel(cells)
	out := []Warning{}
	for _, w := range []Warning{
		{"damaged", DamagedTitle, "What cannot be read counts as pending here. " +
			DamagedHelp, unread(b)},
		{
			"plans", "Results of other plans are not counted", "Earlier runs of this experiment " +
				"tried trials that its latest plan does not have: the models or the file changed, " +
				"or stores with different plans were merged. To report all of them, run with a " +
				"plan that has all of them; finished trials are not repeated. `assay export` has " +
				"every attempt.",
			b.Unplanned,
		},
		{"stopped", "Stopped early", "A stop rule gave these up before all of their trials had " +
			"run. The trials that did run may be easier or harder than the rest.", b.Stopped},
		{"incomplete", "Not complete", "Rates cover finished trials only. Pending trials could " +
			"turn out differently. Run the experiment again to finish it.", incomplete(models, b)},
		{"retried", "Trials were worked on again", "`assay run --retry` replaced earlier outcomes. " +
			"If only failures were chosen, luck had a second chance, and rates are too high. " +
			"`assay show TRIAL --attempt 1` shows what was there before.", perModel(models, some(retried))},
		{"unsolvable", "Tasks that no policy can solve", "Their steps need more replies or calls " +
			"than the limits allow, so they lower every rate alike. `assay library validate` " +
			"names some. Leave them out, or raise the limits.", unsolvable(cells)},
		{"unsound", "Tasks that are not sound", "Their own plans do not solve them, or a tool or a " +
			"check breaks, so failures at them may not be the model's. `assay library validate` " +
			"says more. Correct these tasks or leave them out.", b.Unsound},
		{"not_discriminating", "Not discriminating", "Agents that do not read these tasks solve " +
			"them, so success at them shows nothing. `assay library validate` names the agents. " +
			"Judge these tasks more strictly, or leave them out.", b.Careless},
		{"zero", "0 % full success", "Bad luck alone never gives 0 %. Read transcripts before " +
			"blaming the model: it may not follow the protocol, a limit may be too tight, or a " +
			"fault may have been counted as an outcome.", zero},
		{"uncompared", UncomparedTitle, UncomparedText, uncompared(models, b)},
		{"judged_alone", "A model is the only judge", "Nothing else says whether these outcomes are right. Where a " +
			"program can tell, give the tasks' judges calls, state, answer or check, too.", alone(models)},
		{
			"perfect", "100 % full success",
			"Everything passed, so these cells can't rank models.", perfect,
		},
		{"malformed", "More than 80 % without a valid call", "Most episodes never made a valid call. That " +
			"is a problem with the protocol, and shows little about planning. Try the other " +
			"protocol, or read transcripts.", broken(cells)},
		{"size", "A larger model is worse than a smaller one of its family", "The difference on " +
			"the same tasks is significant, and it is unusual. Check that both models were " +
			"served as named and with the same limits.", sizes(a)},
		{"no_difference", "A variant makes no difference at all", "The prompt changed, but no " +
			"result did. Check that the models see the change, and that it can matter in this " +
			"world.", silentVariants(a, b)},
		{"difference", "Variants differ although their prompts do not", "Models got exactly the " +
			"same text from these variants on the tasks that were checked, so only chance or an " +
			"error can explain the difference.", loudVariants(sameText)},
		{"identity", "A model's name contradicts what answered", "The results may belong to another " +
			"model than the one that they are filed under. The providers file allows it with " +
			"`serves` or `alias`. Check which model the deployment is.", misnamed(models)},
		{"drift", "More than one model answered", "Responses named several models. If these are " +
			"different models, the rates belong to a mixture.", perModel(models, drifted)},
		{"program", "An agent's program changed", "The results of several versions are mixed. " +
			"To tell them apart, give each version a revision; to repeat everything with the " +
			"latest one, run with a new --revision.", rewritten(cells, b)},
		{
			"settings", "Settings were not used as asked", "The endpoint reports that it used another " +
				"setting, so the results do not belong to the one that they are filed under.",
			perName(models, settings),
		},
		{"truncated", "Replies were cut off for length", "A limit on tokens ended replies before " +
			"the model did, so outcomes may show the limit rather than the model. Raise " +
			"sampling.max_tokens, or leave it out.", perModel(models, some(truncated))},
		{"deviations", "Requests differ from what was asked", "The endpoint does not accept " +
			"everything that the experiment asks for, so a comparison with models that got it all " +
			"may be unfair.", perName(models, deviations)},
		{"exposed", "Agents could reach more than their task", "With the rights of the user, an agent can " +
			"read answers, results and other attempts, and act in their name. A room keeps it from that: " +
			"install bubblewrap, and leave out `sandbox: none`.", kept(models, assay.Unsandboxed)},
		{"apart", "Agents could read files that everybody may read", "Each had a user of its own, and so no key, " +
			"token or order of others, but the network, and files with answers if their rights allow it. " +
			"`sandbox: user` in the providers file asks for that.", kept(models, assay.AsOwnUser)},
		{"online", "Agents had the network", "They could ask others, and look answers up. `network: open` or " +
			"`listen` in the providers file allows it.", kept(models, assay.InRoomOnline)},
		{"unmetered", "Agents asked no model through Assay", "Their models, tokens and dollars are unknown, so " +
			"these outcomes may be those of another model than the one named here. `assay check` shows how an " +
			"agent asks; have it use the address and the key that Assay gives it.", perModel(models, some(unmetered))},
		{"unasked", "Agents made calls that no reply asked for", "An agent that asks a model past " +
			"the gateway makes such calls, and its tokens, dollars and success are then not those " +
			"of the model named here. An agent may also make calls by its own program. " +
			"`assay show` has the calls.", calls(models, assay.CallsUnasked)},
		{
			"changed", "Frameworks changed calls", "The tool servers got other calls than the models " +
				"asked for, so failures may be the frameworks' doing. `assay show` has both.",
			calls(models, assay.CallsChanged),
		},
		{"refused", "Agents made calls that were refused before the first reply", "No model asked for " +
			"them. `assay show` has the calls.", calls(models, assay.CallsRefused)},
		{
			"lost", "Agents did not carry out calls", "Their models asked for the calls, and the tools " +
				"never got them, so failures may be the agents' doing. `assay show` has the calls.",
			calls(models, assay.CallsLost),
		},
		{"late", "Agents changed the order of calls", "A model asked for several calls in one reply, " +
			"and the tools got them in another order, so failures may be the agents' doing. " +
			"`assay show` has the calls.", calls(models, assay.CallsLate)},
		{
			"usage", "Counts of tokens do not add up", "The endpoint's totals differ from their " +
				"parts in a way that Assay does not know. The dearest reading is counted, so " +
				"tokens and dollars may be too high, but not too low. Compare them with the bill.",
			perModel(models, doubtful),
		},
		{
			"price", "Some costs are unknown", "There is no price, the endpoint does not report how " +
				"many tokens replies use, or requests broke off, timed out or were stopped, or their " +
				"run was killed, after the endpoint may have billed them. Dollars leave these tokens out, so they are the least " +
				"that was billed. Prices in the providers file or a price list apply to later attempts, and " +
				"`assay store price` to stored ones.",
			costless(models, b.Killed),
		},
		{
			"repriced", "Costs were computed again", "`assay store price` has put the prices of a list in place of " +
				"those of the runs. `assay show` has both for each attempt.", perModel(models, repriced),
		},
		{
			"faults", "Faults above 5 %", "Many attempts failed for reasons that are not the " +
				"model's fault. They are not counted, but the remaining outcomes may be the " +
				"easier ones.",
			perModel(models, faultyModels),
		},
	} {
		if len(w.Where) > 0 {
			out = append(out, w)
		}
	}
	return out
}

// perModel returns a line for each model for which say returns a text.
func perModel(models []*cell, say func(*cell) string) (where []string) {
	for _, m := range models {
		if text := say(m); text != "" {
			where = append(where, m.Model+": "+text)
		}
	}
	return where
}

// perName returns a line for each name of each model that outcomes are counted by.
func perName(models []*cell, by tagKind) (where []string) {
	for _, m := range models {
		for _, name := range slices.Sorted(maps.Keys(m.tags[by])) {
			where = append(where, fmt.Sprintf("%s: %s in %s", m.Model, name, part(m.tags[by][name], m)))
		}
	}
	return where
}

// part counts some of the outcomes of a model. It is empty if there are none.
func part(n int, m *cell) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d outcomes", n, m.n(done))
}

// some says how many of a model's outcomes are of a kind.
func some(kind amountKind) func(*cell) string {
	return func(m *cell) string { return part(int(m.amounts[kind]), m) }
}

func unread(b Beside) (where []string) {
	for _, rows := range []struct {
		what  string
		count func() int
	}{{"attempts", b.Unread}, {"other rows, such as those of runs,", b.UnreadRows}} {
		if rows.count != nil && rows.count() > 0 {
			where = append(where, fmt.Sprintf("%d %s cannot be read or proved", rows.count(), rows.what))
		}
	}
	return where
}

// doubtful describes a model's uncertain tokens. At most, these cost as much as if all dollars of
// their attempts were for output.
func doubtful(m *cell) string {
	if m.amounts[uncertain] == 0 {
		return ""
	}
	text := fmt.Sprintf("%.0f of %d attempts, %.0f tokens", m.amounts[uncertain], m.attempts(),
		m.amounts[uncertainTokens])
	if m.amounts[costs] > 0 {
		text += fmt.Sprintf(", at most $%.4f too much", m.amounts[uncertainUSD])
	}
	return text
}

// repriced says by which price lists costs of a model were computed again, and what all of them are, and
// were at first.
func repriced(m *cell) string {
	lists := slices.Sorted(maps.Keys(m.tags[priceLists]))
	if len(lists) == 0 {
		return ""
	}
	n := 0
	for _, list := range lists {
		n += m.tags[priceLists][list]
	}
	return fmt.Sprintf("%s, $%.4f, at first $%.4f; by %s", assay.Counted(n, "attempt"),
		(m.amounts[costs]+m.amounts[userCosts])/1e9, m.amounts[firstCosts]/1e9, strings.Join(lists, ", "))
}

// costless returns the models and killed runs with unknown costs, unless all costs are unknown.
func costless(models []*cell, killed int) (where []string) {
	if total := sum(models); total.amounts[costs] == 0 {
		return nil
	}
	where = perModel(models, func(m *cell) string {
		if m.amounts[unpriced] == 0 {
			return ""
		}
		return fmt.Sprintf("up to %.0f tokens", m.amounts[unpriced])
	})
	if killed > 0 {
		where = append(where, assay.Counted(killed, "killed run"))
	}
	return where
}

func incomplete(models []*cell, b Beside) []string {
	where := perModel(models, func(m *cell) string {
		pending := m.planned - m.n(done) - b.Skipped[m.Model]
		if pending <= 0 {
			return ""
		}
		return fmt.Sprintf("%d of %d trials done, %d %s", m.n(done), m.planned, pending,
			Left(int(m.amounts[faults])))
	})
	if len(where) > 0 {
		for _, budget := range b.Exhausted {
			where = append(where, "in the latest run, "+budget)
		}
	}
	return where
}

// extremes lists the cells in which every outcome is a full success, or no outcome is. If the cells
// of all task types agree, they are listed as one.
func extremes(cells []*cell) (zero, perfect []string) {
	by, listed := variantFactor(cells), make(map[assay.Cell]bool)
	all := pool(cells, withoutType)
	for _, p := range all {
		p.TaskType = ""
	}
	for _, p := range slices.Concat(all, cells) {
		switch {
		case p.n(done) < fewest || listed[withoutType(p.Cell)]:
			continue
		case p.n(full) == 0:
			zero = append(zero, extremeText(p, by))
		case p.n(full) == p.n(done):
			perfect = append(perfect, extremeText(p, by))
		default:
			continue
		}
		listed[p.Cell] = true
	}
	return zero, perfect
}

// unsolvable counts the tasks that no policy can solve on tools that sometimes work.
func unsolvable(cells []*cell) []string {
	able := sum(where(cells, func(c assay.Cell) bool { return c.Reliability > 0 }))
	n := 0
	for _, o := range able.tasks {
		n += int(flag(o[hopeless] > 0))
	}
	if n == 0 {
		return nil
	}
	return []string{fmt.Sprintf("%d of %d tasks", n, len(able.tasks))}
}

// extremeText describes a cell with a rate of 0 % or 100 %.
func extremeText(p *cell, by string) string {
	c := p.Cell
	parts := []string{c.Model, Readable(level(c, by)), Readable(c.Difficulty)}
	if c.TaskType != "" {
		parts = append(parts, Readable(c.TaskType))
	}
	parts = append(parts, "reliability "+assay.FormatReliability(c.Reliability))
	if c.Faults != "" {
		parts = append(parts, c.Faults)
	}
	if c.Interface != "" {
		parts = append(parts, "interface "+c.Interface)
	}
	if c.Phrasing != "" {
		parts = append(parts, c.Phrasing)
	}
	text := fmt.Sprintf("%s (n = %d)", strings.Join(parts, ", "), p.n(done))
	if best := ceiling(&p.tally); best.Known {
		text += fmt.Sprintf("; the best policy reaches %s", Percent(best.Number))
	}
	if p.n(full) == 0 && Simulated(c.Model) {
		text += "; a simulated model, which may be made to fail here"
	}
	return text
}

func broken(cells []*cell) (where []string) {
	by := variantFactor(cells)
	for _, p := range pool(cells, byModelAnd(by)) {
		n := int(p.amounts[callless])
		if p.n(done) >= fewest && float64(n) > malformed*float64(p.n(done)) {
			where = append(where, fmt.Sprintf("%s, %s: %d of %d",
				p.Model, Readable(level(p.Cell, by)), n, p.n(done)))
		}
	}
	return where
}

// sizes finds the larger models of a family that are significantly worse than smaller ones.
func sizes(a *Analysis) (where []string) {
	for _, p := range a.Models {
		family, size, ok := Family(p.A)
		other, otherSize, also := Family(p.B)
		if !ok || !also || family != other || size == otherSize || !p.Significant() {
			continue
		}
		small, large, d := p.A, p.B, p.Difference
		if otherSize < size {
			small, large, d = p.B, p.A, -d
		}
		if d < 0 {
			where = append(where, fmt.Sprintf("%s is %.1f points below %s on %d tasks (q %s)",
				large, -100*d, small, p.Tasks, Probability(p.Q)))
		}
	}
	return where
}

// silentVariants finds variants with different prompts and exactly the same results, if chance
// alone would make some task differ in 999 of 1,000 such comparisons. At 0 and 100 % equal results
// are expected, and another warning covers it.
func silentVariants(a *Analysis, b Beside) (where []string) {
	for _, p := range a.Variants {
		// One trial per side of a task agrees with this probability; more trials agree less often.
		agree := p.RateA*p.RateA + (1-p.RateA)*(1-p.RateA)
		same := p.Tasks >= silent && p.OnlyA+p.OnlyB == 0 &&
			math.Pow(agree, float64(p.Clusters)) < .001
		if same && b.Prompts[p.A] != b.Prompts[p.B] {
			where = append(where, fmt.Sprintf("%s: %s and %s, %d tasks",
				p.Model, Readable(p.B), Readable(p.A), p.Tasks))
		}
	}
	return where
}

// sameText compares the variants that have the same prompt.
func sameText(cells []*cell, b Beside) (all []Paired) {
	by := variantFactor(cells)
	names := levels(cells, by)
	for _, m := range modelsOf(cells) {
		mine := ofModel(cells, m)
		for i, x := range names {
			for _, y := range names[i+1:] {
				if b.Prompts[x] == "" || b.Prompts[x] != b.Prompts[y] {
					continue
				}
				p := Paired{Model: m, A: x, B: y, Comparison: pairs(mine, x, y, by).compare()}
				if p.Tasks > 0 {
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// loudVariants finds significant differences between variants with the same prompt.
func loudVariants(sameText []Paired) (found []string) {
	for _, p := range sameText {
		if p.Significant() {
			text := "%s: %s and %s differ by %+.1f points on %d tasks (q %s)"
			found = append(found, fmt.Sprintf(text,
				p.Model, p.A, p.B, 100*p.Difference, p.Tasks, Probability(p.Q)))
		}
	}
	return found
}

// misnamed finds models that were served by a deployment, or answered under a name, that
// contradicts their own.
func misnamed(models []*cell) (where []string) {
	for _, p := range models {
		for _, names := range []struct {
			what string
			n    map[string]int
		}{{"the deployment", p.tags[deployments]}, {"the served name", p.tags[served]}} {
			for _, name := range slices.Sorted(maps.Keys(names.n)) {
				if why := assay.Contradiction(p.Model, name); why != "" {
					where = append(where, fmt.Sprintf("%s: of %d outcomes %d have %s %s (%s)",
						p.Model, p.n(done), names.n[name], names.what, name, why))
				}
			}
		}
	}
	return where
}

func drifted(m *cell) string {
	names := m.tags[served]
	if len(names) < 2 {
		return ""
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(names)) {
		parts = append(parts, fmt.Sprintf("%s in %d", cmp.Or(name, "an unnamed one"), names[name]))
	}
	return fmt.Sprintf("of %d outcomes %s", m.n(done), strings.Join(parts, ", "))
}

// kept lists the agents that were kept from the rest of the machine in that way.
func kept(models []*cell, how assay.Sandboxed) []string {
	return perModel(models, func(m *cell) string { return part(m.tags[sandboxes][string(how)], m) })
}

// calls lists the agents with calls of a kind that deviate.
func calls(models []*cell, kind string) []string {
	return perModel(models, func(m *cell) string {
		if m.tags[deviating][kind] == 0 {
			return ""
		}
		return fmt.Sprintf("%d calls in %s", m.tags[deviating][kind], part(m.tags[deviate][kind], m))
	})
}

func faultyModels(m *cell) string {
	attempts, n := m.attempts(), m.amounts[faults]
	if attempts < fewest || n <= faulty*float64(attempts) {
		return ""
	}
	var kinds []string
	for _, k := range slices.Sorted(maps.Keys(m.tags[faultKinds])) {
		kinds = append(kinds, fmt.Sprintf("%d %s", m.tags[faultKinds][k], Readable(k)))
	}
	return fmt.Sprintf("%.0f of %d attempts: %s", n, attempts, strings.Join(kinds, ", "))
}

// attempts counts the outcomes and faults.
func (t *tally) attempts() int { return t.n(done) + int(t.amounts[faults]) }
