package legacy

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// numberOf reads a number. If that fails, bad is the kind of finding.
func numberOf(n *node) (v float64, bad string) {
	switch {
	case n == nil:
		return 0, missingField
	case n.kind == null:
		return 0, nullField
	case n.kind != number:
		return 0, notANumber
	}
	v, err := strconv.ParseFloat(n.text, 64)
	switch {
	case err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return 0, notANumber
	case v < 0:
		return 0, negativeNumber
	}
	return v + 0, "" // turns -0 into 0
}

// maxCount is the largest plausible count.
const maxCount = 1e9

// maxLeaves is far above the number of combinations of the original's factors.
const maxLeaves = 1 << 15

// leaf reads one leaf.
func (r *reader) leaf(p place, n *node) {
	if len(r.leaves) >= maxLeaves {
		r.err = fmt.Errorf("the file has more than %d leaves, far more than "+
			"a master_database.json can have", maxLeaves)
		return
	}
	values, missing := r.values(p, n)
	a := p.Aggregate
	a.Path, a.Missing = p.path, missing
	a.fill(values)
	full, known := fullOf(values, missing)
	values["full_success"] = full
	switch field := lacks(n, missing); {
	case field != "":
		a.Reason = field + " is unknown"
	case !known:
		a.Reason = "full_success is missing and cannot be computed from its rate"
	default:
		r.judge(p, &a, int(full))
	}
	for _, reason := range p.blocked {
		a.block(reason)
	}
	r.checkRates(p, values, missing)
	if !slices.Contains(missing, coverageField) {
		r.checkCoverage(p, &a)
	}
	r.leaves = append(r.leaves, leaf{aggregate: len(r.db.Aggregates), counts: countsOf(values)})
	r.db.Aggregates = append(r.db.Aggregates, a)
}

// needed are the fields that are required to check counts.
var needed = []string{"total", "success", "partial", "failed", errorsField}

// errorsField counts tests with an error. The original created it at the first
// one, so a leaf without it has no errors.
const errorsField = "total_errors"

// lacks returns a needed field that is unknown, or "".
func lacks(n *node, missing []string) string {
	for _, f := range needed {
		if slices.Contains(missing, f) && !(f == errorsField && n.get(f) == nil) {
			return f
		}
	}
	return ""
}

// values reads the fields of a leaf by name and reports problems with them.
// missing lists the fields that are absent or not a valid number.
func (r *reader) values(p place, n *node) (values map[string]float64, missing []string) {
	values = make(map[string]float64, len(leafFields))
	fields, known := r.rename(p, n)
	var absent, nulls []string
	for _, f := range leafFields {
		v, bad := numberOf(fields[f])
		if bad == "" && slices.Contains(countFields, f) && (v != math.Trunc(v) || v > maxCount) {
			bad = notANumber
		}
		switch bad {
		case "":
			values[f] = v
			continue
		case missingField:
			absent = append(absent, f)
		case nullField:
			nulls = append(nulls, f)
		default:
			r.find(p, bad, f+" "+fields[f].describe(), "", "treated as missing",
				"%s has an invalid value", f)
		}
		missing = append(missing, f)
	}
	if len(absent) > 0 {
		r.find(p, missingField, "", strings.Join(absent, " "),
			"counters treated as 0 if the others agree with that",
			"%d of %d fields are missing", len(absent), len(leafFields))
	}
	if len(nulls) > 0 {
		r.find(p, nullField, strings.Join(nulls, " "), "", "treated as missing",
			"%d of %d fields are null", len(nulls), len(leafFields))
	}
	r.unknown(p, n, known)
	both, ok := values["partial_success"]
	if partial := values["partial"]; ok && !slices.Contains(missing, "partial") && both != partial {
		r.find(p, successMismatch, "partial_success "+decimals(both), "partial "+decimals(partial),
			notUsable, "the two counts of partial success differ")
		missing = append(missing, "partial") // neither is reliable
	}
	return values, missing
}

// rename returns the fields of a leaf by their current names, and all names
// that a leaf may have.
func (r *reader) rename(p place, n *node) (fields map[string]*node, known []string) {
	fields = make(map[string]*node, len(n.members))
	known = slices.Clone(leafFields)
	for _, m := range n.members {
		fields[m.key] = m.value
	}
	for _, m := range n.members {
		name, old := renamed[m.key]
		if !old {
			continue
		}
		known = append(known, m.key)
		done := "read as " + name
		if now, both := fields[name]; !both {
			fields[name] = m.value
		} else if done = "ignored for " + name; now.text != m.value.text {
			done += ", which has a different value"
		}
		r.find(p, renamedField, m.key+" "+m.value.describe(), name, done,
			"%s is now called %s", m.key, name)
	}
	return fields, known
}

// fullOf returns the number of full successes. The original created this
// counter at the first full success, but always stored the share of the total.
func fullOf(values map[string]float64, missing []string) (float64, bool) {
	if !slices.Contains(missing, "full_success") {
		return values["full_success"], true
	}
	if slices.Contains(missing, "full_success_rate") || slices.Contains(missing, "total") {
		return 0, false
	}
	exact := values["full_success_rate"] * values["total"]
	whole := math.Round(exact)
	return whole, math.Abs(exact-whole) < 1e-6 && whole <= maxCount
}

func countsOf(values map[string]float64) map[string]float64 {
	counts := make(map[string]float64, len(countFields))
	for _, f := range countFields {
		counts[f] = values[f]
	}
	return counts
}

// fill sets the stored values.
func (a *Aggregate) fill(v map[string]float64) {
	count := func(name string) int { return int(v[name]) }
	a.Stored = Counts{
		Total: count("total"), Success: count("success"), Full: count("full_success"),
		Partial: count("partial"),
		Failed:  count("failed"), Errors: count("total_errors"),
	}
	a.Errors = make(map[string]int, len(categories))
	for _, c := range categories {
		a.Errors[c] = count(c + errorSuffix)
	}
	a.Rates = make(map[string]float64, len(ratios))
	for _, r := range ratios {
		if stored, ok := v[r.name]; ok {
			a.Rates[r.name] = stored
		}
	}
	a.Averages = Averages{
		Seconds: v["avg_execution_time"], Turns: v["avg_turns"], ToolCalls: v["avg_tool_calls"],
		Coverage: v["tool_coverage_rate"],
		Workflow: v["avg_workflow_score"], Phase2: v["avg_phase2_score"],
		Quality: v["avg_quality_score"], Final: v["avg_final_score"],
	}
	a.Assistance = Assistance{
		Tests: count("tests_with_assistance"), Turns: count("total_assisted_turns"),
		Success: count("assisted_success"), Failure: count("assisted_failure"),
	}
}

// A Rule is the way in which the counts to use are derived from the stored ones.
type Rule string

// The rules. A leaf with f full successes, p partial successes and e errors has
// n = f + e tests: every test without full success was given one error
// category, and only one part of the original wrote these counters. Two parts
// added to total, success and failed.
const (
	// AsStored: total = n, success = f + p, failed = e - p.
	AsStored Rule = "as_stored"
	// FullFromRate: like AsStored, but the counter f is missing and computed as
	// its rate times the total.
	FullFromRate Rule = "full_from_rate"
	// Unclassified: e = 0, success = f + p > 0 and total = success + failed.
	// The failures have no category, but success was counted once.
	Unclassified Rule = "unclassified"
	// Doubled: total = 2n, success = 2(f + p) and failed = 2(e - p). All tests
	// were counted twice.
	Doubled Rule = "doubled"
	// PartlyDoubled: total = success + failed is between n and 2n, success
	// between f + p and twice that, and failed between e - p and twice that.
	// Some tests were counted twice, but n is correct whichever they were.
	PartlyDoubled Rule = "partly_doubled"
	// PerhapsDoubled: success = f = p = 0, and total = failed is above e and at
	// most 2e. Tests were counted twice, or some failures have no category. The leaf's fields are
	// inconclusive, but elsewhere in such files they were counted twice, so n = e is used, which
	// may be too small. The rates are 0 anyway.
	PerhapsDoubled Rule = "perhaps_doubled"
)

// judge decides which counts of a leaf are usable.
func (r *reader) judge(p place, a *Aggregate, full int) {
	c := a.Stored
	c.Full = full
	classified := 0
	for _, n := range a.Errors {
		classified += n
	}
	once := Counts{
		Total: full + c.Errors, Success: full + c.Partial, Full: full,
		Partial: c.Partial, Failed: c.Errors - c.Partial, Errors: c.Errors,
	}
	rule := ruleOf(c, once, classified)
	a.Corrected = &once
	switch {
	case rule == AsStored && full != a.Stored.Full:
		rule = FullFromRate
	case rule == AsStored, rule == "", rule == Unclassified && full == a.Stored.Full:
		a.Corrected = nil
	case rule == Unclassified:
		a.Corrected = &c
	}
	if d, ok := doublings[rule]; ok {
		r.find(p, d.kind, totals(a.Stored), totals(once), d.done, d.message, once.Total, c.Failed)
	}
	a.Rule, a.Usable, a.Reason = rule, rule != "", reasons[rule]
	r.contradictions(p, c, classified, rule)
}

// reasons explains the rules, and why a leaf without a rule is not usable.
var reasons = map[Rule]string{
	"":           "the counts contradict each other",
	AsStored:     "the counts agree",
	FullFromRate: "full_success is missing; it is computed as full_success_rate times total",
	Unclassified: "the counts agree, but the failures have no category",
	Doubled: "total, success and failed count every test twice: " +
		"n = full_success + total_errors",
	PartlyDoubled: "total, success and failed count some tests twice: " +
		"n = full_success + total_errors",
	PerhapsDoubled: "no test succeeded, so the leaf's fields cannot tell whether tests are counted " +
		"twice or failures have no category; n = total_errors may be too small",
}

// doublings are the findings about tests that were counted twice. Messages have the number of tests
// and the number of stored failures.
var doublings = map[Rule]struct{ kind, done, message string }{
	Doubled: {
		doubledCounts, corrected,
		"every test is counted twice: full_success + total_errors is %[1]d",
	},
	PartlyDoubled: {
		partlyDoubled, corrected,
		"some tests are counted twice: full_success + total_errors is %[1]d",
	},
	PerhapsDoubled: {
		perhapsDoubled, assumed,
		"%[2]d failures have %[1]d errors: tests are counted twice, or failures have no category",
	},
}

// ruleOf returns the rule that fits, or "" if no rule does. once are the
// counts if every test counts once.
func ruleOf(c, once Counts, classified int) Rule {
	within := func(v, low int) bool { return v >= low && v <= 2*low }
	evident := classified == c.Errors && once.Failed >= 0 && c.Total == c.Success+c.Failed
	switch {
	case c == once:
		return AsStored
	case c.Errors == 0 && classified == 0 && once.Success > 0 && c.Success == once.Success &&
		c.Total == c.Success+c.Failed:
		return Unclassified
	case !evident:
		return ""
	case once.Success == 0 && c.Success == 0 && within(c.Failed, once.Failed):
		return PerhapsDoubled
	case c.Success == 2*once.Success && c.Failed == 2*once.Failed:
		return Doubled
	case within(c.Success, once.Success) && within(c.Failed, once.Failed):
		return PartlyDoubled
	}
	return ""
}

// contradictions reports sums that are wrong and that double counting does not
// explain.
func (r *reader) contradictions(p place, c Counts, classified int, rule Rule) {
	done := asStored
	if rule == "" {
		done = notUsable
	}
	_, twice := doublings[rule]
	if want := c.Success + c.Failed; c.Total != want {
		r.find(p, totalMismatch, fmt.Sprint("total ", c.Total), fmt.Sprint("total ", want), done,
			"success %d and failed %d add up to %d", c.Success, c.Failed, want)
	}
	if want := c.Full + c.Partial; c.Success != want && !twice {
		r.find(p, successMismatch, fmt.Sprint("success ", c.Success),
			fmt.Sprint("success ", want), done,
			"full %d and partial %d add up to %d", c.Full, c.Partial, want)
	}
	if want := c.Total - c.Full; c.Errors != want && !twice {
		r.find(p, errorsMismatch, fmt.Sprint("total_errors ", c.Errors),
			fmt.Sprint("total_errors ", want), done,
			"%d of %d tests are not full successes", want, c.Total)
	}
	if classified != c.Errors {
		r.find(p, errorsMismatch, fmt.Sprint("total_errors ", c.Errors),
			fmt.Sprint("total_errors ", classified), done,
			"the categories add up to %d", classified)
	}
}

// coverageField is a leaf's mean coverage.
const coverageField = "tool_coverage_rate"

// checkCoverage reports a mean coverage below the share of full successes. By
// the original's paper these have a coverage of 1 each, but its batch runner
// also called episodes full successes that lack required tools.
func (r *reader) checkCoverage(p place, a *Aggregate) {
	c := a.Stored
	if a.Corrected != nil {
		c = *a.Corrected
	}
	if a.Rule == "" || c.Total == 0 {
		return
	}
	share := float64(c.Full) / float64(c.Total)
	if got := a.Averages.Coverage; got < share && !near(got, share) {
		r.find(p, coverageBelow, coverageField+" "+decimals(got), "at least "+decimals(share),
			"kept as stored; not used",
			"%d of %d tests are full successes, but the mean coverage is only %.3f, "+
				"so some of them lack required tools", c.Full, c.Total, got)
	}
}

// checkRates reports stored rates that do not follow from the stored counts.
// Missing counters are treated as 0.
func (r *reader) checkRates(p place, values map[string]float64, missing []string) {
	var stored, want []string
	for _, ratio := range ratios {
		got, ok := values[ratio.name]
		if !ok || slices.Contains(missing, ratio.by) {
			continue
		}
		if w := ratio.of(values); !near(got, w) {
			stored = append(stored, ratio.name+" "+decimals(got))
			want = append(want, ratio.name+" "+decimals(w))
		}
	}
	if len(stored) > 0 {
		r.find(p, rateMismatch, strings.Join(stored, ", "), strings.Join(want, ", "),
			"kept as stored; rates are computed from counts",
			"%d rates do not follow from the counts", len(stored))
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(1, math.Abs(b)) }
