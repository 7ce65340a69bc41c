package export

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// vocabulary has the values that fields of outcomes and faults can have, whether or not a store has them.
var vocabulary = map[string][]string{
	"level":          texts(assay.Levels...),
	"fault":          texts(assay.FaultKinds...),
	"cause":          texts(assay.Causes...),
	"error_category": assay.ErrorCategories,
	"judge_verdict":  texts(assay.Pass, assay.Fail),
	"loop":           texts(assay.LoopKinds...),
	"security":       texts(assay.Held, assay.Broken),
	"ended":          texts(assay.Ends...),
	"stop":           texts(assay.Stops...),
}

func texts[S ~string](all ...S) (list []string) {
	for _, s := range all {
		list = append(list, string(s))
	}
	return list
}

// A search looks for the values that a condition names among those of its field.
type search struct {
	*term
	whole   string            // the condition's value as CSV writes it
	missing map[string]string // the values that were not found, as CSV and as the user writes them
	known   map[string]bool   // some values of the field
}

// Check returns an error if a condition names a value that its field has nowhere: in no planned
// trial and in no attempt. The error suggests the nearest one. Counts, amounts, times and lists of
// attempts can have any value. Nothing is wrong with a condition on an empty store.
//
// Check reads no more records than it needs. A trial that cannot be planned is no error.
func (w Where) Check(
	trials iter.Seq2[assay.Trial, error], attempts iter.Seq2[assay.Attempt, error],
) error {
	var all []*search
	for i := range w.terms {
		if s := newSearch(&w.terms[i]); s != nil {
			all = append(all, s)
		}
	}
	ofTrial := func(s *search) bool { return isTrialColumn(s.column.name) }
	empty := true
	for t, err := range trials {
		if err != nil || !slices.ContainsFunc(all, func(s *search) bool { return ofTrial(s) && len(s.missing) > 0 }) {
			break
		}
		empty = false
		a := canonical(assay.Attempt{Trial: t})
		for _, s := range all {
			if ofTrial(s) {
				s.see(&a)
			}
		}
	}
	for a, err := range attempts {
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(s *search) bool { return len(s.missing) > 0 }) {
			return nil
		}
		empty = false
		a = canonical(a)
		for _, s := range all {
			s.see(&a)
		}
	}
	for _, s := range all {
		if !empty && len(s.missing) > 0 {
			return s.unknown()
		}
	}
	return nil
}

// newSearch returns nil if the field can have any value.
func newSearch(t *term) *search {
	if t.column.kind != "string" && !isTrialColumn(t.column.name) {
		return nil
	}
	s := &search{term: t, missing: make(map[string]string), known: make(map[string]bool)}
	for _, word := range vocabulary[t.column.name] {
		s.known[word] = true
	}
	if t.pattern != nil {
		s.missing[t.value] = t.value
		return s
	}
	s.whole, _ = inCSV(&t.column, t.value)
	parts := strings.Split(t.value, ",")
	if len(t.values) == 1 { // the parts are no values of the field
		parts = []string{t.value}
	}
	for _, part := range parts {
		if text, err := inCSV(&t.column, part); err == nil && text != "" && !s.known[text] {
			s.missing[text] = part
		}
	}
	return s
}

// see looks at the field of a record.
func (s *search) see(a *assay.Attempt) {
	text, err := s.column.get(a)
	if err != nil {
		return
	}
	if text == s.whole || s.pattern != nil && s.pattern.MatchString(text) {
		clear(s.missing)
	}
	delete(s.missing, text)
	if text != "" && len(s.known) < maxFieldValues {
		s.known[text] = true
	}
}

func (s *search) unknown() error {
	part := s.missing[slices.Min(slices.Collect(maps.Keys(s.missing)))]
	condition := s.text
	if part != s.value {
		condition = s.column.name + "=" + part
	}
	return hinted(fmt.Errorf("nothing has %s, neither an attempt nor a planned trial", condition),
		assay.NameHint(part, slices.Collect(maps.Keys(s.known))))
}
