package dashboard

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// A filter chooses attempts. Empty fields choose all. The address of the page of trials has the
// same fields.
type filter struct {
	Model, Variant, Severity, Difficulty, Type, Reliability, Mix string
	// Phrasing is a name, as [report.PhrasingName] has it.
	Phrasing string
	// State is a level, "failed", "fault" or "parked".
	State                   string
	Fault, Cause, Lane, Run string
	// Text is part of a name in the row, or the beginning of a trial ID.
	Text string
	// Before is the place of the attempt after the first one to show; 0 for the latest.
	Before int
}

// States of an attempt besides the levels.
const (
	stateFailed = "failed" // any level but full success
	stateFault  = "fault"
	stateParked = "parked"
)

// states lists the states of attempts.
func states() (all []string) {
	for _, l := range assay.Levels {
		all = append(all, string(l))
	}
	return append(all, stateFailed, stateFault, stateParked)
}

// fields returns the names of the address's fields with their places in the filter.
func (f *filter) fields() map[string]*string {
	return map[string]*string{
		"model": &f.Model, "variant": &f.Variant, "severity": &f.Severity,
		"difficulty": &f.Difficulty, "type": &f.Type, "reliability": &f.Reliability,
		"mix": &f.Mix, "state": &f.State, "fault": &f.Fault, "cause": &f.Cause,
		"lane": &f.Lane, "run": &f.Run, "q": &f.Text,
		"phrasing": &f.Phrasing,
	}
}

func parseFilter(v url.Values) (f filter, err error) {
	for name, to := range f.fields() {
		*to = strings.TrimSpace(v.Get(name))
	}
	f.Before, _ = strconv.Atoi(v.Get("before")) // a wrong place is the latest
	f.Before = max(0, f.Before)
	if f.State != "" && !slices.Contains(states(), f.State) {
		err = fmt.Errorf("no trial is in the state %q; %s", f.State, assay.NameHint(f.State, states()))
	}
	return f, err
}

// URL returns the address of the page with the chosen trials.
func (f filter) URL() string {
	v := make(url.Values)
	for name, from := range f.fields() {
		if *from != "" {
			v.Set(name, *from)
		}
	}
	if f.Before > 0 {
		v.Set("before", strconv.Itoa(f.Before))
	}
	if len(v) == 0 {
		return "/trials"
	}
	return "/trials?" + v.Encode()
}

// older returns the filter for the attempts before a place.
func (f filter) older(place int) filter { f.Before = place; return f }

// A found has the chosen attempts.
type found struct {
	// Total counts all chosen attempts, Done those with an outcome, Full those with full success.
	Total, Done, Full int
	// Rows are the latest, latest first. Older is the place before which the next ones are, or 0.
	Rows  []attemptRow
	Older int
}

// Spent returns the cost.
func (r *attemptRow) Spent() string { return dollars(r.cost, r.atLeast) }

// Reliability returns the reliability as people write it.
func (r *attemptRow) Reliability() string { return assay.FormatReliability(r.Cell.Reliability) }

// Result returns the level, or the kind of fault.
func (r *attemptRow) Result() string { return cmp.Or(string(r.Level), string(r.Fault)) }

// Class returns the colour of the result. Failures of models, faults of providers and errors of
// Assay have different ones.
func (r *attemptRow) Class() string {
	switch {
	case r.Fault == assay.Harness:
		return "ours"
	case r.Level == "":
		return "fault"
	}
	return levelClass(r.Level)
}

// pageRows is the number of trials on a page.
const pageRows = 100

// find returns the attempts that a filter chooses.
func (x *index) find(f filter) (out found) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	text := strings.ToLower(f.Text)
	chosen := make(map[*group]bool) // whether the names of the chosen ones have the text
	for _, g := range x.groups {
		if f.chooses(g) {
			chosen[g] = g.has(text)
		}
	}
	older := 0
	for i := len(x.rows) - 1; i >= 0; i-- {
		r := &x.rows[i]
		named, ok := chosen[r.group]
		if !ok || !named && !contains(string(r.Task()), text) && !r.begins(text) {
			continue
		}
		out.Total++
		if r.Level != "" {
			out.Done++
		}
		if r.Level == assay.FullSuccess {
			out.Full++
		}
		switch {
		case f.Before > 0 && i >= f.Before:
		case len(out.Rows) < pageRows:
			out.Rows = append(out.Rows, *r)
			out.Older = i
		default:
			older++
		}
	}
	if older == 0 {
		out.Older = 0
	}
	return out
}

// chooses reports whether a filter chooses the attempts of a group, whatever text it has.
func (f *filter) chooses(g *group) bool {
	for _, field := range []struct{ want, got string }{
		{f.Model, g.Cell.Model},
		{f.Variant, g.Cell.Variant},
		{f.Severity, g.Cell.Severity},
		{f.Difficulty, g.Cell.Difficulty},
		{f.Type, g.Cell.TaskType},
		{f.Reliability, assay.FormatReliability(g.Cell.Reliability)},
		{f.Mix, g.Cell.Faults},
		{f.Phrasing, report.PhrasingName(g.Cell.Phrasing)},
		{f.Fault, string(g.Fault)},
		{f.Cause, string(g.Cause)},
		{f.Lane, g.Lane},
		{f.Run, string(g.Run)},
	} {
		if field.want != "" && field.want != field.got {
			return false
		}
	}
	switch f.State {
	case "":
		return true
	case stateParked:
		return g.Parked
	case stateFailed:
		return g.Level != "" && g.Level != assay.FullSuccess
	case stateFault:
		return g.Level == ""
	}
	return f.State == string(g.Level)
}

// has reports whether a name of a group contains a text in lower case.
func (g *group) has(text string) bool {
	c := &g.Cell
	return slices.ContainsFunc([]string{
		c.Model, c.Variant, c.Severity, c.Difficulty, c.TaskType, g.Lane, string(g.Ended), string(g.Cause),
		string(g.Level), string(g.Fault),
	}, func(name string) bool { return contains(name, text) })
}

func contains(name, text string) bool { return strings.Contains(strings.ToLower(name), text) }

// begins reports whether the trial's ID begins with a text of at least four digits.
func (r *attemptRow) begins(prefix string) bool {
	return len(prefix) >= 4 && strings.HasPrefix(string(r.ID()), prefix)
}

// beside returns the outcomes of other trials with the same task, repeat and conditions, except for
// the model and the variant. They met the same luck.
func (x *index) beside(id assay.TrialID) (out []attemptRow) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	key := keyOf(id)
	i := slices.IndexFunc(x.rows, func(r attemptRow) bool { return r.trial == key })
	if i < 0 {
		return nil
	}
	me := &x.rows[i]
	mine := me.Cell
	for _, r := range x.rows {
		if r.trial != key && r.task == me.task && r.repeat == me.repeat &&
			r.Cell.Reliability == mine.Reliability && r.Cell.Faults == mine.Faults &&
			r.Cell.Phrasing == mine.Phrasing && r.Level != "" {
			out = append(out, r)
		}
	}
	slices.SortStableFunc(out, func(a, b attemptRow) int {
		otherVariant := func(r attemptRow) int {
			if r.Cell.Variant == mine.Variant && r.Cell.Severity == mine.Severity {
				return 0
			}
			return 1
		}
		return otherVariant(a) - otherVariant(b)
	})
	return out
}

// levels returns the levels of each factor of the attempts, in order, for the page's filters.
func (x *index) levels() map[string][]string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make(map[string][]string)
	add := func(factor, level string) {
		if level != "" && !slices.Contains(out[factor], level) {
			out[factor] = append(out[factor], level)
		}
	}
	for _, g := range x.groups {
		add("model", g.Cell.Model)
		add("variant", g.Cell.Variant)
		add("severity", g.Cell.Severity)
		add("difficulty", g.Cell.Difficulty)
		add("type", g.Cell.TaskType)
		add("reliability", assay.FormatReliability(g.Cell.Reliability))
		add("mix", g.Cell.Faults)
		add("phrasing", g.Cell.Phrasing)
	}
	for k := range x.faults {
		add("fault", string(k.kind))
		add("lane", k.lane)
	}
	if len(out["phrasing"]) > 0 {
		add("phrasing", assay.Plain)
	}
	for _, values := range out {
		slices.Sort(values)
	}
	return out
}
