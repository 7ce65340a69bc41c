package legacy

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// A MixedError is returned for attempts that must not be pooled. The formats
// would pool them, because they have no field for the differences.
type MixedError struct {
	Varies []Variation
}

// A Variation is a field of the attempts, by its JSON name, with up to maxShown
// values in order of appearance.
type Variation struct {
	Field  string
	Values []string
	// More is true if there are further values.
	More bool
}

func (e *MixedError) Error() string {
	var parts []string
	for _, v := range e.Varies {
		shown := slices.Clone(v.Values)
		if i := slices.Index(shown, ""); i >= 0 {
			shown[i] = `""`
		}
		if v.More {
			shown = append(shown, "…")
		}
		parts = append(parts, fmt.Sprintf("%s (%s)", v.Field, strings.Join(shown, ", ")))
	}
	return fmt.Sprintf("the attempts differ in %s, and the 2025 format has no field for that",
		strings.Join(parts, "; "))
}

// SameRules reports whether the attempts are of one world, so that judging them again would give all
// of them the same score_version. It is false if they have the same already.
func (e *MixedError) SameRules() bool {
	varies := func(field string) bool {
		return slices.ContainsFunc(e.Varies, func(v Variation) bool { return v.Field == field })
	}
	return varies("score_version") && !varies("world")
}

// Where returns conditions of the form FIELD=VALUE or FIELD!=VALUE that select
// the first attempt and those that can be pooled with it. Alternatives are
// separated by commas.
func (e *MixedError) Where() []string {
	var all []string
	for _, v := range e.Varies {
		switch v.Field {
		case "severity": // attempts without a severity fit any other
			all = append(all, v.Field+"="+v.Values[0]+",")
		case "reliability": // attempts in other buckets are not affected
			all = append(all, v.Field+"!="+strings.Join(v.Values[1:], ","))
		default:
			all = append(all, v.Field+"="+v.Values[0])
		}
	}
	return all
}

// maxShown is the maximum number of values that are kept for a field.
const maxShown = 5

// A fieldMixture finds fields with different values that have to be equal in a file:
// everything that decides an outcome besides the cell. Repeats may differ,
// because they are separate tests.
type fieldMixture struct {
	fields []Variation
	rates  map[string]*Variation // reliabilities by their bucket
}

// settings are the fields that have to be equal, besides the severity of plans with a flaw.
var settings = []string{
	"world", "protocol", "tools", "turn_limit", "call_limit", "sampling", "token_limit", "cost_limit",
	"several_calls", "persistence", "burst", "fault_mix", "loops", "score_version", "phrasing",
}

func (m *fieldMixture) add(a *assay.Attempt) {
	if a.Severity != "" {
		m.note("severity", a.Severity)
	}
	for _, name := range settings {
		m.note(name, export.Field(a, name))
	}
	if m.rates == nil {
		m.rates = make(map[string]*Variation)
	}
	bucket := rateKey(a.Reliability)
	if m.rates[bucket] == nil {
		m.rates[bucket] = &Variation{Field: "reliability"}
	}
	m.rates[bucket].note(assay.FormatReliability(a.Reliability))
}

func (m *fieldMixture) note(field, value string) {
	i := slices.IndexFunc(m.fields, func(v Variation) bool { return v.Field == field })
	if i < 0 {
		i = len(m.fields)
		m.fields = append(m.fields, Variation{Field: field})
	}
	m.fields[i].note(value)
}

func (v *Variation) note(value string) {
	switch {
	case slices.Contains(v.Values, value):
	case len(v.Values) < maxShown:
		v.Values = append(v.Values, value)
	default:
		v.More = true
	}
}

func (m *fieldMixture) err() error {
	varies := slices.Clone(m.fields)
	for _, bucket := range slices.Sorted(maps.Keys(m.rates)) {
		varies = append(varies, *m.rates[bucket])
	}
	varies = slices.DeleteFunc(varies, func(v Variation) bool { return len(v.Values) < 2 })
	if len(varies) == 0 {
		return nil
	}
	return &MixedError{varies}
}
