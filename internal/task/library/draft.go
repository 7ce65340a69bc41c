package library

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A draft is a built-in task under construction: a scenario in one month to which steps are
// applied one by one.
type draft struct {
	scenario
	catalog *assay.Catalog
	// period is the month as 2024-01; month is the same in words.
	period, month string

	verbs  []string // of the steps
	inputs map[string]any
	// names has what the marks of wordings and steps stand for, and marks replaces those of texts.
	names map[string]any
	marks *strings.Replacer
	// records are the records left by the steps so far.
	records []map[string]any
	// facts and result are the report and the result of the last step. Some steps have no result.
	facts, result map[string]any
	// cond selects the records that a filter keeps.
	cond recordFilter
	// dated and located are true if the current description has mentioned the month of the data
	// and its location.
	dated, located bool
}

// newDraft returns the task of a chain of verbs without a description. Month 0 is January 2024.
func newDraft(catalog *assay.Catalog, s scenario, month int, verbs []string) *draft {
	t := time.Date(2024, time.January+time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	d := &draft{
		catalog:  catalog,
		verbs:    verbs,
		scenario: s,
		period:   t.Format("2006-01"),
		month:    t.Format("January 2006"),
		inputs:   make(map[string]any),
	}

	d.records = s.records(d.period, 4+roll(3, s.Slug, month, "records"))
	d.set("data", map[string]any{"records": d.records})
	d.cond = equals(s.Label, s.Values[0])
	if slices.Contains(verbs, "aggregate") { // one label would leave only one group
		d.cond = atLeastMedian(s.Measure, d.records)
	}

	d.names = d.newNames(month)
	d.marks = d.newMarks()

	others := d.surroundings()
	for _, v := range verbs {
		d.take(v)
	}
	for name, value := range others {
		if _, ok := d.inputs[name]; !ok {
			d.inputs[name] = value
		}
	}
	return d
}

// surroundings returns the inputs of all steps that a task can have. Every task gets them, because
// otherwise the names of its inputs would give away its tools. If steps have different values for
// the same input, dice decide.
func (d *draft) surroundings() map[string]any {
	verbs := slices.SortedFunc(maps.Keys(steps()), func(a, b string) int {
		return cmp.Or(cmp.Compare(d.draw(1<<30, "input", a), d.draw(1<<30, "input", b)),
			cmp.Compare(a, b))
	})
	inputs := make(map[string]any)
	for _, v := range verbs {
		other := *d
		other.inputs = make(map[string]any)
		other.take(v)
		for name, value := range other.inputs {
			if _, ok := inputs[name]; !ok {
				inputs[name] = value
			}
		}
	}
	return inputs
}

// set sets an input. It panics if another step has set it to a different value.
func (d *draft) set(name string, value any) {
	if old, ok := d.inputs[name]; ok && fmt.Sprint(old) != fmt.Sprint(value) {
		panic(fmt.Sprintf("library: task on %s %s: input %s is both %v and %v",
			d.Slug, d.period, name, old, value))
	}
	d.inputs[name] = value
}

// tools returns the required tools in order.
func (d *draft) tools() []string {
	tools := make([]string, len(d.verbs))
	for i, v := range d.verbs {
		tools[i] = steps()[v].Tool
	}
	return tools
}

// closure returns the tools of verbs and their dependencies. Each tool comes after the tools that
// it depends on.
func (d *draft) closure(verbs []string) []string {
	var tools []string
	var add func(name string)
	add = func(name string) {
		if slices.Contains(tools, name) {
			return
		}
		for _, dep := range d.tool(name).Dependencies {
			add(dep)
		}
		tools = append(tools, name)
	}
	for _, v := range verbs {
		add(steps()[v].Tool)
	}
	return tools
}

func (d *draft) tool(name string) assay.Tool {
	t, ok := d.catalog.Tool(name)
	if !ok {
		panic("library: unknown built-in tool: " + name)
	}
	return t
}

// expected returns the result of the last tool if every call succeeded.
func (d *draft) expected() map[string]any {
	last := steps()[d.verbs[len(d.verbs)-1]]
	n := len(d.records)
	if last.Counted {
		d.facts["records"] = n
	}
	want := make(map[string]any)
	for _, r := range d.tool(last.Tool).Returns {
		switch r.Name {
		case "success", "valid":
			want[r.Name] = true
		case "errors":
			want[r.Name] = []string{}
		case "data":
			want[r.Name] = d.passes(d.tool(last.Tool), n)
		case "result":
			want[r.Name] = d.result
		case "metadata":
			want[r.Name] = d.facts
		default:
			panic("library: cannot predict the result " + r.Name)
		}
	}
	return want
}

// passes returns the known fields of the data that a tool passes on.
func (d *draft) passes(tool assay.Tool, records int) map[string]any {
	has := func(name string) bool {
		return slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool {
			return p.Name == name
		})
	}
	switch {
	case has("output_format"):
		return map[string]any{"format": d.inputs["output_format"]}
	case has("data"):
		return map[string]any{"records": records}
	}
	return map[string]any{"source": d.inputs["source"]}
}

func inWords(field string) string { return strings.ReplaceAll(field, "_", " ") }

// newNames returns what the marks stand for that depend only on the scenario and the month.
func (d *draft) newNames(month int) map[string]any {
	formats := []string{"csv", "json", "xml", "yaml"}
	input := roll(len(formats), d.Slug, month, "format")
	output := input + 1 + roll(len(formats)-1, d.Slug, month, "output")
	in, out := formats[input], formats[output%len(formats)]
	pick := func(n int, purpose string) int { return roll(n, d.Slug, d.period, purpose) }
	host, minutes := d.Slug+".example.com", 5*(1+pick(6, "minutes"))
	comparison := "equals"
	if d.cond.atLeast {
		comparison = "at_least"
	}
	return map[string]any{
		"slug": d.Slug, "subject": d.Things, "period": d.period, "month": d.month, "team": d.Team,
		"id_field": d.Key, "label": d.Label, "measure_field": d.Measure,
		"measure": inWords(d.Measure), "value": d.Values[0], "prefix": d.Prefix, "system": d.System,
		"input_format": in, "output_format": out,
		"in": strings.ToUpper(in), "out": strings.ToUpper(out),
		"condition": d.cond.String(), "schema": d.schema(),
		"filter":      map[string]any{"field": d.cond.field, comparison: d.cond.value},
		"path":        "inbox/" + d.Slug + "/" + d.period + "." + in,
		"host":        host,
		"url":         "https://" + host + "/v1/" + d.period + "." + in,
		"endpoint":    "https://" + d.System + ".example.com/v2/" + d.Slug,
		"contract":    d.Slug + "-v2",
		"channel":     "#" + d.Slug + "-alerts",
		"key":         d.Slug + ":" + d.period,
		"archive":     "archive/" + d.Slug + "-" + d.period + ".gz",
		"destination": "reports/" + d.Slug + "-" + d.period + "." + out,
		"queue":       d.Slug + "-intake",
		"credentials": d.Slug + "-reader",
		"target":      []string{"billing", "planning", "archive"}[pick(3, "target")],
		"gateway":     "gw-" + []string{"east", "west", "central"}[pick(3, "gateway")],
		"time":        fmt.Sprintf("%02d:%02d", pick(6, "hour"), 15*pick(4, "minute")),
		"minutes":     minutes,
		"seconds":     60 * minutes,
		"horizon":     7 * (1 + pick(4, "horizon")),
		"hours":       10 * (2 + pick(9, "hours")),
		"runs":        100 * (1 + pick(10, "runs")),
	}
}

// A recordFilter selects the records that a filter keeps: those whose field equals value or, if
// atLeast is set, is not below it.
type recordFilter struct {
	field   string
	value   any
	atLeast bool
}

func equals(field, value string) recordFilter { return recordFilter{field: field, value: value} }

// atLeastMedian keeps the upper half of the records.
func atLeastMedian(field string, records []map[string]any) recordFilter {
	values := make([]int, len(records))
	for i, r := range records {
		values[i] = r[field].(int)
	}
	slices.Sort(values)
	return recordFilter{field: field, value: values[len(values)/2], atLeast: true}
}

func (c recordFilter) String() string {
	if c.atLeast {
		return fmt.Sprintf("%s is at least %v", inWords(c.field), c.value)
	}
	return fmt.Sprintf("%s is %v", inWords(c.field), c.value)
}

// apply returns the records that meet the condition.
func (c recordFilter) apply(records []map[string]any) []map[string]any {
	return slices.DeleteFunc(slices.Clone(records), func(r map[string]any) bool {
		if c.atLeast {
			return r[c.field].(int) < c.value.(int)
		}
		return r[c.field] != c.value
	})
}
