package export

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Where chooses attempts by their fields. The zero value chooses all.
type Where struct {
	terms []term
}

type term struct {
	text, value string // the condition, and what it asks for, as they were given
	column      column[assay.Attempt]
	not         bool
	values      []string // as CSV writes them
}

// ParseWhere reads conditions of the form FIELD=VALUE or FIELD!=VALUE, of which all
// have to hold. Fields are those of [Columns], and values as in CSV, where numbers,
// truth values, times and JSON may be spelt in other ways too. Of a field that may be
// null, so may that: as null, or empty. A value fits as a whole; where it has commas, so
// does each part between them.
func ParseWhere(conditions []string) (w Where, err error) {
	for _, text := range conditions {
		t, err := parseTerm(text)
		if err != nil {
			return Where{}, err
		}
		w.terms = append(w.terms, t)
	}
	return w, nil
}

func parseTerm(text string) (t term, err error) {
	name, value, ok := strings.Cut(text, "=")
	if !ok {
		return t, fmt.Errorf("%q is no condition\nhint: write FIELD=VALUE, such as model=gpt-4o or level=failure,partial_success, or FIELD!=VALUE", text)
	}
	name, not := strings.CutSuffix(name, "!")
	at := slices.IndexFunc(attemptColumns, func(c column[assay.Attempt]) bool { return c.name == name })
	if at < 0 {
		return t, hinted(fmt.Errorf("no field is named %q", name), assay.NameHint(name, Columns()))
	}
	t = term{text: text, value: value, column: attemptColumns[at], not: not}
	if t.values, err = alternatives(&t.column, value); err != nil {
		return t, hinted(fmt.Errorf("%s cannot be %q", name, value), t.column.spelling())
	}
	return t, nil
}

func hinted(err error, hint string) error {
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w\nhint: %s", err, hint)
}

// spelling says how values of a type are written.
var spelling = map[string]string{
	"string":       `a backslash is written \\, the end of a line \n`,
	"int64":        "it is a whole number",
	"double":       "it is a number, such as 0.7",
	"bool":         "it is true or false",
	"timestamp":    "it is a time, such as 2026-03-04T05:06:07Z",
	"json":         "it is JSON, such as {}",
	"list<string>": `it is JSON, such as [] or ["tool_a","tool_b"]`,
}

func (c *column[R]) spelling() string {
	hint := spelling[c.kind]
	if c.node.Optional() {
		hint += ", or null for none"
	}
	return hint
}

// alternatives returns what a column may hold to fit a text: all of it, and what
// stands between its commas.
func alternatives(c *column[assay.Attempt], text string) ([]string, error) {
	var all []string
	whole, err := spelt(c, text)
	if err == nil {
		all = append(all, whole)
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		var e error
		if parts[i], e = spelt(c, part); e != nil {
			return all, err
		}
	}
	return append(all, parts...), nil
}

// spelt returns a value as CSV writes it.
func spelt(c *column[assay.Attempt], text string) (string, error) {
	var a assay.Attempt // which has null wherever that may be
	if c.node.Optional() && text == "null" {
		return c.get(&a)
	}
	if err := c.set(&a, text); err != nil {
		return "", err
	}
	a = canonical(a)
	return c.get(&a)
}

// Has tells whether an attempt is chosen.
func (w Where) Has(a *assay.Attempt) bool {
	if len(w.terms) == 0 {
		return true
	}
	written := canonical(*a)
	return !slices.ContainsFunc(w.terms, func(t term) bool {
		text, err := t.column.get(&written)
		return err != nil || !t.fits(text)
	})
}

func (t *term) fits(text string) bool { return slices.Contains(t.values, text) != t.not }

// mostValues of a field are remembered.
const mostValues = 1000

// Explain says why no attempt is chosen: which condition fits none of them, and what
// its field has that was perhaps meant. It says nothing where there are no attempts.
func (w Where) Explain(attempts iter.Seq2[assay.Attempt, error]) (string, error) {
	fit := make([]bool, len(w.terms))
	values := make([]map[string]bool, len(w.terms))
	n := 0
	for a, err := range attempts {
		if err != nil {
			return "", err
		}
		n++
		a = canonical(a)
		for i := range w.terms {
			t := &w.terms[i]
			text, err := t.column.get(&a)
			fit[i] = fit[i] || err == nil && t.fits(text)
			if values[i] == nil {
				values[i] = make(map[string]bool)
			}
			if text == "" {
				text = `""`
			}
			if len(values[i]) < mostValues {
				values[i][text] = true
			}
		}
	}
	at := slices.Index(fit, false)
	switch {
	case n == 0:
		return "", nil
	case at < 0:
		return "no attempt fits all conditions at once", nil
	}
	t, hint := w.terms[at], ""
	if !t.not {
		hint = assay.NameHint(t.value, slices.Collect(maps.Keys(values[at])))
	}
	return hinted(fmt.Errorf("no attempt fits %s", t.text), hint).Error(), nil
}
