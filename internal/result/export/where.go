package export

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Where selects attempts by their fields. The zero value selects all.
type Where struct {
	terms []term
}

type term struct {
	text, value string // the whole condition and its value, as given by the user
	column      fieldColumn[assay.Attempt]
	not         bool
	values      []string       // matching values as written in CSV
	pattern     *regexp.Regexp // nil unless the value has an asterisk
}

// ParseWhere parses conditions of the form FIELD=VALUE or FIELD!=VALUE. An
// attempt must match all of them. Fields are the names of [Columns]. Values are
// written as in CSV, but numbers, truth values, times and JSON can have other
// spellings too. A nullable field can be compared with null or an empty value.
// If a value contains commas, the whole value matches, and so does each part.
// An asterisk stands for any characters.
//
// Three conditions have shorter forms: "faults" and "failures" select by how an
// attempt ended, and the beginning of a trial's ID selects the trial.
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

// The short forms of conditions. An outcome that is not full success is a failure here.
var shortForms = map[string]string{"faults": "fault!=", "failures": "level!=full_success,"}

// trialStart matches the beginning of a trial's ID.
var trialStart = regexp.MustCompile(`^[0-9a-f]{4,32}$`)

func parseTerm(text string) (t term, err error) {
	long := cmp.Or(shortForms[text], text)
	if trialStart.MatchString(text) {
		long = "trial=" + text + "*"
	}
	name, value, ok := strings.Cut(long, "=")
	if !ok {
		hint := "write FIELD=VALUE, such as model=gpt-4o or task=refund-*, FIELD!=VALUE, faults, " +
			"failures, or the beginning of a trial's ID"
		if near := assay.NearestName(text, slices.Collect(maps.Keys(shortForms))); near != "" {
			hint = "did you mean " + near + "?"
		}
		return t, hinted(fmt.Errorf("%q is not a condition", text), hint)
	}
	name, not := strings.CutSuffix(name, "!")
	c := attempts().column(name)
	if c == nil {
		return t, hinted(fmt.Errorf("unknown field %q", name), assay.NameHint(name, Columns()))
	}
	t = term{text: text, value: value, column: *c, not: not}
	if strings.Contains(value, "*") && t.column.kind == "string" {
		rest := strings.ReplaceAll(regexp.QuoteMeta(value), `\*`, ".*")
		t.pattern = regexp.MustCompile("(?s)^(" + rest + ")$")
	}
	if t.values, err = alternatives(&t.column, value); err != nil {
		return t, hinted(fmt.Errorf("%s cannot be %q", name, value), t.column.valueHint())
	}
	return t, nil
}

func hinted(err error, hint string) error {
	if hint == "" {
		return err
	}
	return fmt.Errorf("%w\nhint: %s", err, hint)
}

// valueHints explain how values of a type are written.
var valueHints = map[string]string{
	"int64":        "write a whole number",
	"double":       "write a number, such as 0.7",
	"bool":         "write true or false",
	"timestamp":    "write a time, such as 2026-03-04T05:06:07Z",
	"json":         "write JSON, such as {}",
	"list<string>": `write JSON, such as [] or ["tool_a","tool_b"]`,
}

func (c *fieldColumn[R]) valueHint() string {
	hint := valueHints[c.kind]
	if c.node.Optional() {
		hint += ", or null if there is no value"
	}
	return hint
}

// alternatives returns the column values that match a text: the whole text, and
// each part between commas.
func alternatives(c *fieldColumn[assay.Attempt], text string) ([]string, error) {
	var all []string
	whole, err := inCSV(c, text)
	if err == nil {
		all = append(all, whole)
	}
	parts := strings.Split(text, ",")
	for i, part := range parts {
		var e error
		if parts[i], e = inCSV(c, part); e != nil {
			return all, err
		}
	}
	return append(all, parts...), nil
}

// usual has the names of levels that attempts leave empty, because cells had them before the factor.
var usual = map[string]string{
	"phrasing": assay.Plain, "interface": assay.PlainInterface, "fault_mix": string(assay.FaultBefore) + "=1",
}

// inCSV returns a value as CSV writes it.
func inCSV(c *fieldColumn[assay.Attempt], text string) (string, error) {
	if name, ok := usual[c.name]; ok && text == name {
		return "", nil
	}
	if c.node.Optional() && (text == "null" || text == "") {
		if c.has != nil {
			return "", nil
		}
		return c.get(new(assay.Attempt)) // the zero time is null, too
	}
	a := assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure}} // has an outcome's fields
	if err := c.set(&a, text); err != nil {
		return "", err
	}
	a = canonical(a)
	return c.get(&a)
}

// Conditions returns the conditions as they were given.
func (w Where) Conditions() []string {
	var all []string
	for _, t := range w.terms {
		all = append(all, t.text)
	}
	return all
}

// HasTrial reports whether a trial satisfies the conditions on fields of trials. It ignores
// conditions on fields that only attempts have.
func (w Where) HasTrial(trial *assay.Trial) bool {
	ofAttempt := func(t term) bool { return !isTrialColumn(t.column.name) }
	ofTrial := Where{terms: slices.DeleteFunc(slices.Clone(w.terms), ofAttempt)}
	return ofTrial.Has(&assay.Attempt{Trial: *trial})
}

// OfTrials reports whether all conditions are on fields of trials, or on the experiment, so that they do not
// choose by what came of a trial.
func (w Where) OfTrials() bool {
	return !slices.ContainsFunc(w.terms, func(t term) bool {
		return t.column.name != "experiment" && !isTrialColumn(t.column.name)
	})
}

// HasExperiment reports whether attempts made for an experiment satisfy the conditions on its name.
func (w Where) HasExperiment(name string) bool {
	others := func(t term) bool { return t.column.name != "experiment" }
	return Where{terms: slices.DeleteFunc(slices.Clone(w.terms), others)}.Has(&assay.Attempt{Experiment: name})
}

// isTrialColumn reports whether a column describes the trial of an attempt. These columns come
// first.
func isTrialColumn(name string) bool {
	names := Columns()
	return slices.Index(names, name) < slices.Index(names, "attempt")
}

// Has reports whether an attempt is selected.
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

func (t *term) fits(text string) bool {
	found := slices.Contains(t.values, text) ||
		t.pattern != nil && t.pattern.MatchString(text)
	return found != t.not
}

// maxFieldValues is the number of values of a field that Explain remembers.
const maxFieldValues = 1000

// Explain explains why no attempt was selected: it names a condition that matches no attempt and
// suggests a value that the field has. It returns "" if there are no attempts.
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
			if len(values[i]) < maxFieldValues {
				values[i][text] = true
			}
		}
	}
	at := slices.Index(fit, false)
	switch {
	case n == 0:
		return "", nil
	case at < 0:
		return "no attempt matches all conditions at once", nil
	}
	t, hint := w.terms[at], ""
	_, blank := values[at][`""`]
	switch {
	case t.not:
	case blank && len(values[at]) == 1:
		hint = "the field is empty in all of them"
	default:
		hint = assay.NameHint(t.value, slices.Collect(maps.Keys(values[at])))
	}
	return hinted(fmt.Errorf("no attempt matches %s", t.text), hint).Error(), nil
}
