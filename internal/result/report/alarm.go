package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// An Alarm says that a figure may not be what it seems. The 2025 original published
// such figures as findings.
type Alarm struct {
	// Kind is a word that stays the same: zero, perfect, malformed, size,
	// no_difference, difference, drift, faults, stopped, incomplete, plans or damaged.
	Kind  string   `json:"kind"`
	Title string   `json:"title"`
	Text  string   `json:"text"`
	Where []string `json:"where"`
}

const (
	damagedTitle = "The store is damaged"
	damagedHelp  = "\"assay verify\" says what is wrong, \"assay recover\" copies what is whole."
)

// What it takes to raise an alarm.
const (
	fewest    = 10  // outcomes of a row, below which 0 and 100 % are no surprise
	malformed = 0.8 // share of outcomes
	faulty    = 0.05
	silent    = 20 // pairs without a single difference
	formatErr = "tool_call_format"
)

func alarms(a *Analysis, cells []*cell, b Beside) []Alarm {
	out := []Alarm{}
	add := func(kind, title, text string, where []string) {
		if len(where) > 0 {
			out = append(out, Alarm{kind, title, text, where})
		}
	}
	if b.Unread != nil {
		if n := b.Unread(); n > 0 {
			add("damaged", damagedTitle, "What cannot be read counts as pending here. "+damagedHelp, []string{fmt.Sprintf("%d attempts cannot be read", n)})
		}
	}
	add("plans", "Results of other plans are not counted", "Runs of this name tried what its latest plan does not have: other models were named, the file was edited, or stores of different plans were merged. A run of all of it reports all of it, and has nothing to do twice; \"assay export\" has every attempt.", b.Unplanned)
	add("stopped", "Stopped early", "These were given up before all of their trials had run, so that what is left may be the easier or the harder part of them.", b.Stopped)
	add("incomplete", "Not complete", "What is pending counts nowhere. Rates are of what is done, which need not be like the rest.", incomplete(a, b))
	zero, perfect := extremes(cells)
	add("zero", "0 % of full success", "Nobody fails always by bad luck. Look at transcripts before this is read as a lack of skill: a protocol that the model does not meet, a limit, or a fault that was taken for an outcome looks just like it.", zero)
	add("perfect", "100 % of full success", "These cells cannot tell models apart; their true rate is only bounded from below.", perfect)
	add("malformed", "More than 80 % malformed", "Most episodes never made a valid call. That says how the model meets the protocol, and little of how it plans: try the other protocol, or look at transcripts.", broken(cells))
	add("size", "A larger model is worse than a smaller one of its family", "By the test on the same tasks this is no chance. It is rare enough to ask first whether both were served what they should be, with the same limits.", sizes(a))
	add("no_difference", "A variant makes no difference at all", "Its prompt differs, and not one task's full success does. Look whether models see the difference, or whether what differs cannot matter in this world.", silentVariants(a, b))
	add("difference", "Variants differ although their prompts do not", "On the tasks that were looked at these variants say the same to models, word for word, so that only chance or an error can tell them apart.", loudVariants(cells, b))
	add("drift", "More than one model answered", "Responses named several models. If these are not the same, the rates are of a mixture.", drifted(cells))
	add("faults", "Faults above 5 %", "So many attempts failed for other reasons than the model's doing. They count nowhere, but the outcomes that are left may be those of easier times.", faultyModels(cells))
	return out
}

func incomplete(a *Analysis, b Beside) []string {
	planned, done := make(map[string]int), make(map[string]int)
	var models []string
	for _, r := range a.Rows {
		if planned[r.Model] == 0 {
			models = append(models, r.Model)
		}
		planned[r.Model] += r.Planned
		done[r.Model] += r.Done
	}
	var where []string
	for _, m := range models {
		if pending := planned[m] - done[m] - b.Skipped[m]; pending > 0 {
			where = append(where, fmt.Sprintf("%s: %d of %d trials done, %d pending", m, done[m], planned[m], pending))
		}
	}
	return where
}

// extremes are the cells in which every outcome, or none, is full success: those of all
// task types together where they agree, and else each.
func extremes(cells []*cell) (zero, perfect []string) {
	all := func(c assay.Cell) assay.Cell {
		c.TaskType = ""
		return c
	}
	by, told := variantFactor(cells), make(map[assay.Cell]bool)
	look := func(pools []*pooled[assay.Cell]) {
		for _, p := range pools {
			if p.done < fewest || told[all(p.key)] || p.full > 0 && p.full < p.done {
				continue
			}
			told[p.key] = true
			parts := []string{p.key.Model, readable(level(p.key, by)), readable(p.key.Difficulty)}
			if p.key.TaskType != "" {
				parts = append(parts, readable(p.key.TaskType))
			}
			text := fmt.Sprintf("%s, reliability %s (n = %d)", strings.Join(parts, ", "), assay.FormatReliability(p.key.Reliability), p.done)
			if r := p.row(); r.Best != nil {
				text += fmt.Sprintf("; the best policy reaches %s", percent(*r.Best))
			}
			if p.full == 0 {
				zero = append(zero, text)
			} else {
				perfect = append(perfect, text)
			}
		}
	}
	pools, _ := pool(cells, all)
	look(pools)
	pools, _ = pool(cells, func(c assay.Cell) assay.Cell { return c })
	look(pools)
	return zero, perfect
}

func broken(cells []*cell) (where []string) {
	type key struct{ model, variant string }
	by := variantFactor(cells)
	pools, _ := pool(cells, func(c assay.Cell) key { return key{c.Model, level(c, by)} })
	for _, p := range pools {
		if n := p.mistaken(formatErr).Count; p.done >= fewest && float64(n) > malformed*float64(p.done) {
			where = append(where, fmt.Sprintf("%s, %s: %d of %d", p.key.model, readable(p.key.variant), n, p.done))
		}
	}
	return where
}

// sizes looks at the comparisons of models of one family.
func sizes(a *Analysis) (where []string) {
	for _, p := range a.Models {
		family, size, ok := familyOf(p.A)
		other, otherSize, also := familyOf(p.B)
		if !ok || !also || family != other || size == otherSize || !p.Significant() {
			continue
		}
		large, small, d := p.A, p.B, p.Difference
		if size < otherSize {
			large, small, d = p.B, p.A, -d
		}
		if d < 0 {
			where = append(where, fmt.Sprintf("%s is %.1f points below %s on %d tasks (q %s)", large, -100*d, small, p.Tasks, chance(p.Q)))
		}
	}
	return where
}

func silentVariants(a *Analysis, b Beside) (where []string) {
	for _, p := range a.Variants {
		// At 0 and 100 % that is no wonder, and another alarm.
		if p.Pairs >= silent && p.OnlyA+p.OnlyB == 0 && p.RateA > 0 && p.RateA < 1 && b.Prompts[p.A] != b.Prompts[p.B] {
			where = append(where, fmt.Sprintf("%s: %s and %s, %d tasks", p.Model, readable(p.A), readable(p.B), p.Tasks))
		}
	}
	return where
}

// loudVariants compares variants of the same prompts.
func loudVariants(cells []*cell, b Beside) (found []string) {
	by := variantFactor(cells)
	names := levels(cells, by)
	var all []Paired
	for _, m := range modelsOf(cells) {
		mine := where(cells, func(c assay.Cell) bool { return c.Model == m })
		for i, x := range names {
			for _, y := range names[i+1:] {
				if b.Prompts[x] == "" || b.Prompts[x] != b.Prompts[y] {
					continue
				}
				if p := (Paired{Model: m, A: x, B: y, Comparison: pairUp(mine, x, y, by)}); p.Tasks > 0 {
					all = append(all, p)
				}
			}
		}
	}
	for _, p := range adjust(all) {
		if p.Significant() {
			found = append(found, fmt.Sprintf("%s: %s and %s differ by %+.1f points on %d tasks (q %s)", p.Model, p.A, p.B, 100*p.Difference, p.Tasks, chance(p.Q)))
		}
	}
	return found
}

func drifted(cells []*cell) (where []string) {
	pools, _ := pool(cells, func(c assay.Cell) string { return c.Model })
	for _, p := range pools {
		if len(p.served) < 2 {
			continue
		}
		var names []string
		for _, name := range slices.Sorted(maps.Keys(p.served)) {
			names = append(names, fmt.Sprintf("%s in %d", readableOr(name), p.served[name]))
		}
		where = append(where, fmt.Sprintf("%s: of %d outcomes %s", p.key, p.done, strings.Join(names, ", ")))
	}
	return where
}

func readableOr(name string) string {
	if name == "" {
		return "one without a name"
	}
	return name
}

func faultyModels(cells []*cell) (where []string) {
	pools, _ := pool(cells, func(c assay.Cell) string { return c.Model })
	for _, p := range pools {
		attempts := p.done + p.faults
		if attempts < fewest || float64(p.faults) <= faulty*float64(attempts) {
			continue
		}
		var kinds []string
		for _, k := range slices.Sorted(maps.Keys(p.faultKinds)) {
			kinds = append(kinds, fmt.Sprintf("%d %s", p.faultKinds[k], readable(string(k))))
		}
		where = append(where, fmt.Sprintf("%s: %d of %d attempts: %s", p.key, p.faults, attempts, strings.Join(kinds, ", ")))
	}
	return where
}

// pText writes a p value with its name.
func pText(p float64) string {
	if p < .001 {
		return "p < .001"
	}
	return "p = " + chance(p)
}

// chance writes a p or q value.
func chance(p float64) string {
	if p < .001 {
		return "< .001"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.3f", p), "0")
}
