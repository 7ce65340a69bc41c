package library

import (
	"strconv"
	"strings"
)

// A toolStep is one tool as a built-in task uses it; steps.yaml explains the fields.
type toolStep struct {
	Tool                  string
	Counted               bool
	Inputs, Facts, Result map[string]any
}

// take performs the step of a verb: it sets the step's arguments, and keeps what the tool reports
// and returns.
func (d *draft) take(verb string) {
	st := steps()[verb]
	d.observe(verb)
	for name, value := range st.Inputs {
		d.set(name, d.value(value))
	}
	d.facts, _ = d.value(st.Facts).(map[string]any)
	d.result, _ = d.value(st.Result).(map[string]any)
}

// observe computes the marks of a verb that depend on the steps before, and carries out the filter.
func (d *draft) observe(verb string) {
	n := len(d.records)
	switch verb {
	case "parse":
		d.names["source"] = d.names["path"]
		if source, ok := d.inputs["source"]; ok {
			d.names["source"] = source
		}
	case "scan":
		d.names["matches"] = len(equals(d.Label, d.Values[0]).apply(d.records))
	case "filter":
		d.records = d.cond.apply(d.records)
		d.names["dropped"] = n - len(d.records)
	case "aggregate":
		groups := make(map[any]bool)
		for _, r := range d.records {
			groups[r[d.Label]] = true
		}
		d.names["groups"] = len(groups)
	case "analyze", "calculate":
		low, high, sum := d.High, d.Low, 0
		for _, r := range d.records {
			v := r[d.Measure].(int)
			low, high, sum = min(low, v), max(high, v), sum+v
		}
		// Rounding to whole hundredths in integers gives the same number on every machine.
		mean := float64((200*sum/n+1)/2) / 100
		d.names["statistics"] = map[string]any{"min": low, "max": high, "mean": mean}
		d.names["terms"], d.names["sum"] = n, sum
	}
}

// value replaces the marks in a value of steps.yaml.
func (d *draft) value(v any) any {
	switch v := v.(type) {
	case string:
		if name, ok := strings.CutPrefix(v, "{"); ok {
			if value, ok := d.names[strings.TrimSuffix(name, "}")]; ok {
				return value
			}
		}
		return d.marks.Replace(v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = d.value(v[i])
		}
		return list
	case map[string]any:
		if v == nil {
			return nil
		}
		all := make(map[string]any, len(v))
		for name, value := range v {
			all[d.marks.Replace(name)] = d.value(value)
		}
		return all
	}
	return v
}

// newMarks returns a replacer for the marks that stay the same throughout a task.
func (d *draft) newMarks() *strings.Replacer {
	var pairs []string
	for name, value := range d.names {
		switch v := value.(type) {
		case string:
			pairs = append(pairs, "{"+name+"}", v)
		case int:
			pairs = append(pairs, "{"+name+"}", strconv.Itoa(v))
		}
	}
	return strings.NewReplacer(pairs...)
}
