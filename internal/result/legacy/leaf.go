package legacy

import (
	"encoding/json"
	"math"
)

// maxCount is the largest plausible count.
const maxCount = 1e9

// fields are the members of a leaf.
type fields map[string]any

// count returns a field that is a number of tests, and false if it is missing or anything else.
func (f fields) count(name string) (n int, ok bool) {
	v, ok := f[name].(float64)
	if !ok || v < 0 || v > maxCount || v != math.Trunc(v) {
		return 0, false
	}
	return int(v), true
}

// full returns the number of full successes. The original created this counter at the first full
// success, but always stored the share of the total.
func (f fields) full(total int) (n int, ok bool) {
	if n, ok := f.count("full_success"); ok {
		return n, true
	}
	share, ok := f["full_success_rate"].(float64)
	exact := share * float64(total)
	whole := math.Round(exact)
	return int(whole), ok && math.Abs(exact-whole) < 1e-6 && whole >= 0 && whole <= maxCount
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
func (a *Aggregate) judge() {
	a.Reliability = reliabilityOf(a.Rate)
	a.Rule, a.Reason = a.correct()
	a.Usable = a.Rule != ""
	for _, reason := range a.foreign() {
		a.block(reason)
	}
}

// correct reads the stored counts, and corrects them if there is a rule. It returns the rule and the
// reason.
func (a *Aggregate) correct() (Rule, string) {
	f := make(fields)
	if err := json.Unmarshal(a.Leaf, &f); err != nil || f == nil {
		return "", "it is not an object"
	}
	for old, now := range renamed {
		if _, both := f[now]; !both {
			f[now] = f[old]
		}
	}
	if _, created := f["total_errors"]; !created {
		f["total_errors"] = 0.0 // the original created it at the first error
	}
	c := &a.Stored
	for name, to := range map[string]*int{
		"total": &c.Total, "success": &c.Success, "full_success": &c.Full, "partial": &c.Partial,
		"failed": &c.Failed, "total_errors": &c.Errors,
	} {
		*to, _ = f.count(name)
	}
	for _, name := range []string{"total", "success", "partial", "failed", "total_errors"} {
		if _, ok := f.count(name); !ok {
			return "", name + " is unknown"
		}
	}
	if both, ok := f.count("partial_success"); ok && both != c.Partial {
		return "", "the two counts of partial success differ"
	}
	full, ok := f.full(c.Total)
	if !ok {
		return "", "full_success is missing and cannot be computed from its rate"
	}
	classified := 0
	for _, category := range categories {
		n, _ := f.count(category + errorSuffix)
		classified += n
	}
	return a.correctBy(full, classified)
}

// correctBy corrects the stored counts, given the numbers of full successes and of tests with a
// category.
func (a *Aggregate) correctBy(full, classified int) (Rule, string) {
	c := a.Stored
	c.Full = full
	once := Counts{
		Total: full + c.Errors, Success: full + c.Partial, Full: full,
		Partial: c.Partial, Failed: c.Errors - c.Partial, Errors: c.Errors,
	}
	rule := ruleOf(c, once, classified)
	switch {
	case rule == AsStored && full != a.Stored.Full:
		rule, a.Corrected = FullFromRate, &once
	case rule == Unclassified && full != a.Stored.Full:
		a.Corrected = &c
	case rule != AsStored && rule != Unclassified && rule != "":
		a.Corrected = &once
	}
	return rule, reasons[rule]
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
