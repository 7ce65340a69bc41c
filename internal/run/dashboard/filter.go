package dashboard

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// A filter chooses attempts. Empty fields choose all. Its fields are those of the address of the
// page of trials.
type filter struct {
	Model, Variant, Severity, Difficulty, Type, Reliability, Mix string
	// State is a level, "failed", "fault" or "parked".
	State                      string
	Fault, Category, Lane, Run string
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

// fields returns the names of the address's fields with their places in the filter.
func (f *filter) fields() map[string]*string {
	return map[string]*string{
		"model": &f.Model, "variant": &f.Variant, "severity": &f.Severity,
		"difficulty": &f.Difficulty, "type": &f.Type, "reliability": &f.Reliability,
		"mix": &f.Mix, "state": &f.State, "fault": &f.Fault, "category": &f.Category,
		"lane": &f.Lane, "run": &f.Run, "q": &f.Text,
	}
}

func parseFilter(v url.Values) (f filter) {
	for name, to := range f.fields() {
		*to = strings.TrimSpace(v.Get(name))
	}
	f.Before, _ = strconv.Atoi(v.Get("before")) // a wrong place is the latest
	f.Before = max(0, f.Before)
	return f
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
	Rows  []listedRow
	Older int
}

// A listedRow is an attempt in words.
type listedRow struct {
	row
	ID                              assay.TrialID
	Cell                            assay.Cell
	Task, Lane, Run, Ended, Because string
	Level, Fault                    string
}

// Number returns the number of the attempt.
func (r listedRow) Number() int { return int(r.number) }

// Turns counts the turns of the episode.
func (r listedRow) Turns() int { return int(r.turns) }

// Calls counts the calls of tools.
func (r listedRow) Calls() int { return int(r.calls) }

// Working returns the working time in milliseconds.
func (r listedRow) Working() int64 { return r.working }

// Finished returns the end of the attempt in milliseconds since 1970.
func (r listedRow) Finished() int64 { return r.finished }

// Spent returns the cost.
func (r listedRow) Spent() string {
	if r.cost < 0 {
		return dollars(-r.cost-1, 1)
	}
	return dollars(r.cost, 0)
}

// IsParked reports whether the run gave up on the trial after this attempt.
func (r listedRow) IsParked() bool { return r.parked }

// Reliability returns the reliability as people write it.
func (r listedRow) Reliability() string { return assay.FormatReliability(r.Cell.Reliability) }

// Result returns the level, or the kind of fault.
func (r listedRow) Result() string { return cmp.Or(r.Level, r.Fault) }

// Class returns the colour of the result. Failures of models, faults of providers and errors of
// Assay have different ones.
func (r listedRow) Class() string {
	switch {
	case r.Fault == string(assay.Harness):
		return "ours"
	case r.Level == "":
		return "fault"
	}
	return levelClass(assay.Level(r.Level))
}

// pageRows is the number of trials on a page.
const pageRows = 100

// find returns the attempts that a filter chooses.
func (x *index) find(f filter) (out found) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	cells, texts := x.matchCells(f), x.matchTexts(f.Text)
	wants, known := f.wants(&x.texts)
	if !known {
		return out
	}
	prefix, older := strings.ToLower(f.Text), 0
	for i := len(x.rows) - 1; i >= 0; i-- {
		r := &x.rows[i]
		level := assay.Level(x.texts.texts[r.level])
		if !cells[r.cell].of || !r.hasAll(wants) || f.State == stateParked && !r.parked ||
			f.State == stateFailed && (level == "" || level == assay.FullSuccess) {
			continue
		}
		if f.Text != "" && !cells[r.cell].text && !r.has(texts) && !r.begins(prefix) {
			continue
		}
		out.Total++
		switch level {
		case "":
		case assay.FullSuccess:
			out.Full++
			fallthrough
		default:
			out.Done++
		}
		switch {
		case f.Before > 0 && i >= f.Before:
		case len(out.Rows) < pageRows:
			out.Rows = append(out.Rows, x.listed(*r))
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

// A matchedCell reports whether a cell is one of the chosen ones, and whether its names have the
// text.
type matchedCell struct{ of, text bool }

func (x *index) matchCells(f filter) []matchedCell {
	out := make([]matchedCell, len(x.cells))
	is := func(want, name string) bool { return want == "" || want == name }
	text := strings.ToLower(f.Text)
	for i, c := range x.cells {
		reliability := assay.FormatReliability(c.Reliability)
		out[i].of = is(f.Model, c.Model) && is(f.Variant, c.Variant) &&
			is(f.Severity, c.Severity) && is(f.Difficulty, c.Difficulty) && is(f.Type, c.TaskType) &&
			is(f.Reliability, reliability) && is(f.Mix, c.Faults)
		out[i].text = slices.ContainsFunc(
			[]string{c.Model, c.Variant, c.Severity, c.Difficulty, c.TaskType},
			func(name string) bool { return strings.Contains(strings.ToLower(name), text) })
	}
	return out
}

// matchTexts reports for each text of the dictionary whether it contains a text.
func (x *index) matchTexts(text string) []bool {
	if text == "" {
		return nil
	}
	out := make([]bool, len(x.texts.texts))
	for i, t := range x.texts.texts {
		out[i] = strings.Contains(strings.ToLower(t), strings.ToLower(text))
	}
	return out
}

func (r *row) has(texts []bool) bool {
	return texts[r.task] || texts[r.lane] || texts[r.ended] || texts[r.category] ||
		texts[r.level] || texts[r.fault]
}

// begins reports whether the trial's ID begins with a text of at least four digits.
func (r *row) begins(prefix string) bool {
	return len(prefix) >= 4 && strings.HasPrefix(string(r.trial.id()), prefix)
}

// A want is a text that a field of an attempt must have.
type want struct {
	field func(*row) uint32
	text  uint32
}

// wants returns what a filter wants of the texts of an attempt. It returns false if no attempt has
// one of them.
func (f filter) wants(d *dictionary) (all []want, ok bool) {
	ok = true
	add := func(text string, field func(*row) uint32) {
		n, known := d.at[text]
		all, ok = append(all, want{field, n}), ok && known
	}
	for _, w := range []struct {
		text  string
		field func(*row) uint32
	}{
		{f.Fault, func(r *row) uint32 { return r.fault }},
		{f.Category, func(r *row) uint32 { return r.category }},
		{f.Lane, func(r *row) uint32 { return r.lane }},
		{f.Run, func(r *row) uint32 { return r.run }},
	} {
		if w.text != "" {
			add(w.text, w.field)
		}
	}
	level := func(r *row) uint32 { return r.level }
	switch f.State {
	case "", stateParked, stateFailed:
	case stateFault:
		add("", level)
	default:
		add(f.State, level)
	}
	return all, ok
}

func (r *row) hasAll(wants []want) bool {
	for _, w := range wants {
		if w.field(r) != w.text {
			return false
		}
	}
	return true
}

func (x *index) listed(r row) listedRow {
	text := func(n uint32) string { return x.texts.texts[n] }
	return listedRow{
		row: r, ID: r.trial.id(), Cell: x.cells[r.cell], Task: text(r.task), Lane: text(r.lane),
		Run: text(r.run), Ended: text(r.ended), Because: text(r.category),
		Level: text(r.level), Fault: text(r.fault),
	}
}

// beside returns the outcomes of other trials with the same task, repeat and conditions, except for
// the model and the variant. They met the same luck.
func (x *index) beside(id assay.TrialID) (out []listedRow) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	key := keyOf(id)
	i := slices.IndexFunc(x.rows, func(r row) bool { return r.trial == key })
	if i < 0 {
		return nil
	}
	me := x.rows[i]
	mine := x.cells[me.cell]
	for _, r := range x.rows {
		c := x.cells[r.cell]
		if r.trial != key && r.task == me.task && r.repeat == me.repeat &&
			c.Reliability == mine.Reliability && c.Faults == mine.Faults &&
			x.texts.texts[r.level] != "" {
			out = append(out, x.listed(r))
		}
	}
	slices.SortStableFunc(out, func(a, b listedRow) int {
		sameVariant := func(r listedRow) int {
			if r.Cell.Variant == mine.Variant && r.Cell.Severity == mine.Severity {
				return 0
			}
			return 1
		}
		return sameVariant(a) - sameVariant(b)
	})
	return out
}

// levels returns the levels of each factor of the attempts, in their order of appearance, for the
// page's filters.
func (x *index) levels() map[string][]string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	out := make(map[string][]string)
	add := func(factor, level string) {
		if level != "" && !slices.Contains(out[factor], level) {
			out[factor] = append(out[factor], level)
		}
	}
	for _, c := range x.cells {
		add("model", c.Model)
		add("variant", c.Variant)
		add("severity", c.Severity)
		add("difficulty", c.Difficulty)
		add("type", c.TaskType)
		add("reliability", assay.FormatReliability(c.Reliability))
		add("mix", c.Faults)
	}
	for k := range x.faults {
		add("fault", string(k.kind))
		add("lane", k.lane)
	}
	for _, values := range out {
		slices.Sort(values)
	}
	return out
}
