package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Measure is a figure of a group of outcomes. It is stated once, in figures.go: captions, hints of
// columns, JSON and docs/results.md come from its declaration.
type Measure struct {
	// Key is its name in JSON.
	Key string
	// Heads are the heads of its columns: one, unless its values are lists.
	Heads []string
	// Means completes "<head>: ", such as "mean share of successful calls".
	Means string
	// Format is how a value is shown: AsPercent and the like, or a verb of package fmt.
	Format string

	of func(*tally) Value
	// standing returns the value of a model that is a figure of its common trials.
	standing func(*Standing) Value
	// profile returns the value of a model that is a figure of its repeats.
	profile func(*profile) Value
	style   style
	// obvious measures are explained in docs only.
	obvious bool
}

// plainly returns the measure as one that tables need not explain.
func (m *Measure) plainly() *Measure {
	m.obvious = true
	return m
}

// ofModel says how the measure follows from a model's row on the first screen.
func (m *Measure) ofModel(of func(*Standing) Value) *Measure {
	m.standing = of
	return m
}

// The formats of measures besides verbs of package fmt. Dollars have a verb after the sign.
const (
	AsPercent = "%"
	AsTokens  = "tokens"
	AsWords   = "words"
	AsDollars = "$"
)

// A style is how a value is written as JSON.
type style int

const (
	nested    style = iota // a share is an object, or flat: a count KEY, KEY_rate and KEY_95
	percent                // a number, and its interval KEY_95
	omitted                // left out if it is unknown or zero
	listed                 // a list
	raw                    // whatever the value has
	unwritten              // not in JSON
)

// A Value is a measure of one group.
type Value struct {
	// Known is false if the group has no such figure.
	Known bool
	// Number is a share, a mean or a count. Its 95 % interval accounts for repeats within tasks; see
	// [stat.Clustered]. It is nil for figures without one.
	Number   float64
	Interval *stat.Interval
	// Count of N outcomes are a share.
	Count, N int
	// Text is the value of a measure that is a name.
	Text string
	// List has the values of a measure with several heads.
	List []float64
	// AtLeast is true if the true figure may be larger.
	AtLeast bool

	raw any
}

// Share returns the value of a share.
func (v Value) Share() Share {
	s := Share{Count: v.Count, Rate: v.Number, Of: v.N}
	if v.Interval != nil {
		s.Interval = *v.Interval
	}
	return s
}

// A Share is a count with its rate. The 95 % interval accounts for repeats within tasks; see
// [stat.Clustered]. If the share has no trials, its rate is 0 and meaningless.
type Share struct {
	Count    int           `json:"count"`
	Rate     float64       `json:"rate"`
	Interval stat.Interval `json:"interval"`
	Of       int           `json:"-"` // how many the count is a part of
}

func (s Share) value() Value {
	return Value{Known: s.Of > 0, Number: s.Rate, Interval: &s.Interval, Count: s.Count, N: s.Of}
}

func number(n float64) Value { return Value{Known: true, Number: n} }

// The kinds of measures. Each counts outcomes, unless its name says something else.

func rate(all countKind, some ...countKind) func(*tally) Value {
	return func(t *tally) Value { return t.among(all, some...).value() }
}

func tallied(kind countKind) func(*tally) Value {
	return func(t *tally) Value { return number(float64(t.n(kind))) }
}

func total(kind amountKind) func(*tally) Value {
	return func(t *tally) Value { return number(t.amounts[kind]) }
}

// ratioOf divides a sum. It is unknown if the number is 0.
func ratioOf(sum, n float64) Value {
	if n == 0 {
		return Value{}
	}
	return number(sum / n)
}

// average divides an amount by the outcomes.
func average(of amountKind) func(*tally) Value {
	return func(t *tally) Value { return ratioOf(t.amounts[of], float64(t.n(done))) }
}

// quotient divides two amounts. Without any of the second, it is 0.
func quotient(part, whole amountKind) func(*tally) Value {
	return func(t *tally) Value {
		return number(t.amounts[part] / max(1, t.amounts[whole]))
	}
}

func quantiles(of histogramKind, value func(int) float64, at ...float64) func(*tally) Value {
	return func(t *tally) Value {
		v := Value{Known: t.n(done) > 0}
		for _, q := range at {
			v.List = append(v.List, quantile(t.histograms[of], q, value))
		}
		v.Number = v.List[0]
		return v
	}
}

func mostFrequentOf(of tagKind) func(*tally) Value {
	return func(t *tally) Value {
		name := mostFrequent(t.tags[of])
		return Value{Known: name != "", Text: name}
	}
}

// dollars is an amount of money, of which some may be unknown.
func dollars(of, unpriced amountKind) func(*tally) Value {
	return func(t *tally) Value {
		return Value{Known: true, Number: t.amounts[of] / 1e9, AtLeast: t.leastCost(of, unpriced)}
	}
}

// leastCost reports whether some of an amount of money may be unknown.
func (t *tally) leastCost(of, unpriced amountKind) bool {
	return t.amounts[unpriced] > 0 || of == costs && t.amounts[unmetered] > 0 || t.doubted && t.amounts[of] > 0
}

// as returns the measure with another style of JSON.
func (m *Measure) as(s style) *Measure {
	other := *m
	other.style = s
	return &other
}

// A Grid has the same measures of several groups of outcomes.
type Grid struct {
	// By names the factors that tell the groups apart.
	By       []string
	Measures []*Measure
	Rows     []GridRow

	flat bool // shares are flat in JSON
}

// A GridRow is one group. The factors of its cell that are not in [Grid.By] have no meaning.
type GridRow struct {
	assay.Cell
	Values []Value

	grid  *Grid
	tally *tally
}

// rowGrid computes the measures of rows and cells.
func rowGrid(groups []*cell, by ...string) *Grid {
	g := grid(groups, by, rowMeasures...)
	g.flat = true
	return g
}

// NewGrid returns a grid with rows, each of which has a value for every measure.
func NewGrid(by []string, measures []*Measure, rows ...GridRow) *Grid {
	g := &Grid{By: by, Measures: measures, Rows: append([]GridRow{}, rows...)}
	for i := range g.Rows {
		g.Rows[i].grid = g
	}
	return g
}

// grid computes measures of groups of cells.
func grid(groups []*cell, by []string, measures ...*Measure) *Grid {
	return gridOf(groups, nil, by, measures...)
}

// gridOf computes measures of groups of cells, and of the standings of their models.
func gridOf(groups []*cell, standings []Standing, by []string, measures ...*Measure) *Grid {
	rows := make([]GridRow, len(groups))
	for i, c := range groups {
		rows[i] = GridRow{Cell: c.Cell, tally: &c.tally, Values: make([]Value, len(measures))}
		s := standingOf(standings, c.Model)
		for k, m := range measures {
			if m.of != nil {
				rows[i].Values[k] = m.of(&c.tally)
			} else if s != nil {
				rows[i].Values[k] = m.standing(s)
			}
		}
	}
	return NewGrid(by, measures, rows...)
}

// Get returns the value of a measure, which is unknown if the grid does not have it.
func (r GridRow) Get(m *Measure) Value {
	i := slices.IndexFunc(r.grid.Measures, func(o *Measure) bool { return o.Key == m.Key })
	if i < 0 {
		return Value{}
	}
	return r.Values[i]
}

// Int returns the value of a measure that is a count.
func (r GridRow) Int(m *Measure) int { return int(r.Get(m).Number) }

// All returns the rows. A nil grid has none.
func (g *Grid) All() []GridRow {
	if g == nil {
		return nil
	}
	return g.Rows
}

// Has reports whether a row's value satisfies a condition.
func (g *Grid) Has(m *Measure, is func(Value) bool) bool {
	return slices.ContainsFunc(g.All(), func(r GridRow) bool { return is(r.Get(m)) })
}

// MarshalJSON writes an object for each row, with its factors and measures.
func (g *Grid) MarshalJSON() ([]byte, error) {
	rows := make([]map[string]any, len(g.Rows))
	for i, r := range g.Rows {
		row := make(map[string]any)
		for _, factor := range g.By {
			switch factor {
			case reliability:
				row[factor] = r.Reliability
			case faultMix:
				if r.Faults != "" {
					row[factor] = r.Faults
				}
			case interfaces:
				if r.Interface != "" {
					row[factor] = r.Interface
				}
			case phrasing:
				if r.Phrasing != "" {
					row[factor] = r.Phrasing
				}
			default:
				row[factor] = *fields[factor](&r.Cell)
			}
		}
		for k, m := range g.Measures {
			m.write(row, r.Values[k], g.flat)
		}
		rows[i] = row
	}
	return json.Marshal(rows)
}

// write adds a value to a JSON object.
func (m *Measure) write(to map[string]any, v Value, flat bool) {
	var plain any
	switch {
	case v.raw != nil:
		plain = v.raw
	case m.Format == AsWords:
		plain = v.Text
	case m.style == nested && v.Interval != nil:
		plain = v.Share()
	case v.Known && !math.IsNaN(v.Number):
		plain = v.Number
	}
	switch {
	case m.style == omitted:
		if v.Known && (plain != 0. || v.N > 0) { // a rate of 0 is not "none"
			if to[m.Key] = plain; v.Interval != nil {
				to[m.Key+"_95"] = v.Interval
			}
		}
	case m.style == nested && flat && v.Interval != nil:
		to[m.Key], to[m.Key+"_rate"], to[m.Key+"_95"] = v.Count, v.Number, v.Interval
	case m.style == percent:
		to[m.Key], to[m.Key+"_95"] = plain, v.Interval
	case m.style == listed:
		to[m.Key] = v.List
	case m.style == unwritten:
	default:
		to[m.Key] = plain
	}
}

// Caption explains measures in sentences, as notes of tables do.
func Caption(measures ...*Measure) (text string) {
	for _, m := range measures {
		if m.Means != "" && !m.obvious {
			text += fmt.Sprintf(" %s: %s.", Capital(m.Heads[0]), m.Means)
		}
	}
	if text == "" {
		return ""
	}
	return text[1:]
}

// Only returns the rows that satisfy a condition.
func (g *Grid) Only(is func(GridRow) bool) *Grid {
	some := &Grid{}
	if g != nil {
		some.By, some.Measures = g.By, g.Measures
	}
	for _, r := range g.All() {
		if is(r) {
			some.Rows = append(some.Rows, r)
		}
	}
	return some
}

// Level returns the level of a factor.
func (r GridRow) Level(factor string) string { return level(r.Cell, factor) }

// Capital begins a text with a capital letter.
func Capital(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// Readable returns a name from a data file the way a person would write it.
func Readable(name string) string {
	if name == "" {
		return "none"
	}
	return strings.ReplaceAll(strings.TrimPrefix(name, "flawed_"), "_", " ")
}

// ReadableList joins readable names with commas.
func ReadableList(names []string) string {
	var out []string
	for _, n := range names {
		out = append(out, Readable(n))
	}
	return strings.Join(out, ", ")
}

// Percent writes a share as a percentage.
func Percent(share float64) string {
	return strings.Replace(fmt.Sprintf("%.1f %%", 100*share), "-", "−", 1)
}

// Probability writes a p or q value the way statisticians do, without a leading zero.
func Probability(p float64) string {
	if p < .001 {
		return "< .001"
	}
	return strings.TrimPrefix(fmt.Sprintf("%.3f", p), "0")
}
