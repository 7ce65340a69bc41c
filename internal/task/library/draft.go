package library

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A draft is a built-in task in the making: a scenario in one month, walked
// through step by step.
type draft struct {
	scenario
	catalog *assay.Catalog
	// period is the month as 2024-01, month the same in words.
	period, month string
	// in and out are the formats of the data before and after.
	in, out string

	// verbs name the steps.
	verbs  []string
	steps  []step
	inputs map[string]any
	// records are those that are left after the steps so far; count stands
	// for them where the task does not spell them out.
	records []map[string]any
	count   int
	// facts are what the last step told, result is its result if it has one.
	facts, result map[string]any
	// cond is what a filter keeps; zero where no records are spelled out.
	cond condition
	// marks fills what wordings leave open; see [draft.say].
	marks *strings.Replacer
	// dated and located say that the description in the making has told the
	// month of the data, and where they are.
	dated, located bool
}

// newDraft returns the task of a chain of verbs, not yet worded. Month counts
// from the start of the scenarios' calendar.
func newDraft(catalog *assay.Catalog, s scenario, month int, verbs []string) *draft {
	t := time.Date(2024, time.January+time.Month(month), 1, 0, 0, 0, 0, time.UTC)
	formats := []string{"csv", "json", "xml", "yaml"}
	in := roll(len(formats), s.Slug, month, "format")
	out := in + 1 + roll(len(formats)-1, s.Slug, month, "output")
	d := &draft{
		catalog:  catalog,
		verbs:    verbs,
		scenario: s,
		period:   t.Format("2006-01"),
		month:    t.Format("January 2006"),
		in:       formats[in],
		out:      formats[out%len(formats)],
		inputs:   make(map[string]any),
	}
	var inline, counts bool
	for _, v := range verbs {
		st := steps[v]
		d.steps = append(d.steps, st)
		inline = inline || st.inline
		counts = counts || st.counts
	}
	switch {
	case inline:
		d.records = s.records(d.period, 4+roll(3, s.Slug, month, "records"))
		d.set("data", map[string]any{"records": d.records})
		d.cond = equals(s.Label, s.Values[0])
		if slices.Contains(verbs, "aggregate") { // which would find one group
			d.cond = atLeastMedian(s.Measure, d.records)
		}
	case counts:
		d.count = 40 + roll(900, s.Slug, month, "count")
		d.set("record_count", d.count)
	}
	for _, st := range d.steps {
		d.result = nil
		d.facts = st.apply(d)
	}
	return d
}

// set gives an input its value. Steps share inputs, so they have to agree.
func (d *draft) set(name string, value any) {
	if old, ok := d.inputs[name]; ok && fmt.Sprint(old) != fmt.Sprint(value) {
		panic(fmt.Sprintf("library: task on %s %s: input %s is both %v and %v", d.Slug, d.period, name, old, value))
	}
	d.inputs[name] = value
}

// tools are those that the task requires, in order.
func (d *draft) tools() []string {
	tools := make([]string, len(d.steps))
	for i, st := range d.steps {
		tools[i] = st.tool
	}
	return tools
}

// closure returns the tools of verbs, each after those that it depends on.
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
		add(steps[v].tool)
	}
	return tools
}

func (d *draft) tool(name string) assay.Tool {
	t, ok := d.catalog.Tool(name)
	if !ok {
		panic("library: no such built-in tool: " + name)
	}
	return t
}

// expected is what the last tool returns when all has gone well.
func (d *draft) expected() map[string]any {
	last := d.steps[len(d.steps)-1]
	n := d.count
	if d.records != nil {
		n = len(d.records)
	}
	if last.counts {
		d.facts["records"] = n
	}
	want := make(map[string]any)
	for _, r := range d.tool(last.tool).Returns {
		switch r.Name {
		case "success", "valid":
			want[r.Name] = true
		case "errors":
			want[r.Name] = []string{}
		case "data":
			want[r.Name] = map[string]any{"source": d.inputs["source"]}
		case "transformed_data":
			want[r.Name] = map[string]any{"format": d.out}
		case "result":
			want[r.Name] = d.result
		case "metadata":
			want[r.Name] = d.facts
		default:
			panic("library: no expectation for the result " + r.Name)
		}
	}
	return want
}

func inWords(field string) string { return strings.ReplaceAll(field, "_", " ") }

func (d *draft) path() string     { return "inbox/" + d.Slug + "/" + d.period + "." + d.in }
func (d *draft) host() string     { return d.Slug + ".example.com" }
func (d *draft) url() string      { return "https://" + d.host() + "/v1/" + d.period + "." + d.in }
func (d *draft) endpoint() string { return "https://" + d.System + ".example.com/v2/" + d.Slug }
func (d *draft) contract() string { return d.Slug + "-v2" }
func (d *draft) channel() string  { return "#" + d.Slug + "-alerts" }
func (d *draft) cacheKey() string { return d.Slug + ":" + d.period }
func (d *draft) archive() string  { return "archive/" + d.Slug + "-" + d.period + ".gz" }

func (d *draft) destination() string {
	return "reports/" + d.Slug + "-" + d.period + "." + d.out
}

func (d *draft) target() string {
	return []string{"billing", "planning", "archive"}[roll(3, d.Slug, d.period, "target")]
}

func (d *draft) gateway() string {
	return "gw-" + []string{"east", "west", "central"}[roll(3, d.Slug, d.period, "gateway")]
}

func (d *draft) time() string {
	return fmt.Sprintf("%02d:%02d", roll(6, d.Slug, d.period, "hour"), 15*roll(4, d.Slug, d.period, "minute"))
}

func (d *draft) minutes() int { return 5 * (1 + roll(6, d.Slug, d.period, "minutes")) }
func (d *draft) horizon() int { return 7 * (1 + roll(4, d.Slug, d.period, "horizon")) }
func (d *draft) hours() int   { return 10 * (2 + roll(9, d.Slug, d.period, "hours")) }
func (d *draft) runs() int    { return 100 * (1 + roll(10, d.Slug, d.period, "runs")) }

// A condition says which records a filter keeps.
type condition struct {
	field   string
	value   any
	atLeast bool
}

func equals(field, value string) condition { return condition{field: field, value: value} }

// atLeastMedian keeps the upper half of the records.
func atLeastMedian(field string, records []map[string]any) condition {
	values := make([]int, len(records))
	for i, r := range records {
		values[i] = r[field].(int)
	}
	slices.Sort(values)
	return condition{field: field, value: values[len(values)/2], atLeast: true}
}

func (c condition) String() string {
	if c.atLeast {
		return fmt.Sprintf("%s is at least %v", inWords(c.field), c.value)
	}
	return fmt.Sprintf("%s is %v", inWords(c.field), c.value)
}

// apply returns the records that meet the condition.
func (c condition) apply(records []map[string]any) []map[string]any {
	return slices.DeleteFunc(slices.Clone(records), func(r map[string]any) bool {
		if c.atLeast {
			return r[c.field].(int) < c.value.(int)
		}
		return r[c.field] != c.value
	})
}
