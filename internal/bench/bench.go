// Package bench says how far the program is from the best that there could be:
// it holds the rows of the comparison, the arithmetic of the ideals, a bare
// HTTP client that shows what the machine allows, and the [Rig] that starts the
// program and measures it from outside.
//
// What is measured, and what it should be, is the caller's.
package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"text/tabwriter"
)

// A Report is what one comparison found.
type Report struct {
	Program string `json:"program"`
	System  string `json:"system"`
	Cores   int    `json:"cores"`
	// Quick says that all was measured in small, which proves little.
	Quick bool  `json:"quick"`
	Rows  []Row `json:"rows"`
}

// A Row is one figure beside its aim and its limit.
type Row struct {
	// Number is what the figure belongs to, such as 2a.
	Number string  `json:"number"`
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   Unit    `json:"unit"`
	// Limit is what a bare HTTP client got in the same place.
	Limit *float64 `json:"limit,omitempty"`
	// Aim is nil for a figure that is there to explain others.
	Aim  *Aim   `json:"aim,omitempty"`
	Note string `json:"note,omitempty"`
}

// A Unit is what a value counts.
type Unit string

// The units. A share is in [0,1] and printed in percent.
const (
	Count     Unit = ""
	Share     Unit = "share"
	Seconds   Unit = "s"
	PerSecond Unit = "/s"
	Micros    Unit = "µs"
	Bytes     Unit = "B"
	Megabytes Unit = "MB"
)

// An Aim is a bound that a value should keep.
type Aim struct {
	// Relation is ≥, < or =.
	Relation string  `json:"relation"`
	Bound    float64 `json:"bound"`
	Reached  bool    `json:"reached"`
}

// AtLeast returns the row with the aim that its value is bound or more.
func (r Row) AtLeast(bound float64) Row { return r.aim("≥", bound, r.Value >= bound) }

// Below returns the row with the aim that its value is less than bound.
func (r Row) Below(bound float64) Row { return r.aim("<", bound, r.Value < bound) }

// None returns the row with the aim that there is nothing to count.
func (r Row) None() Row { return r.aim("=", 0, r.Value == 0) }

func (r Row) aim(relation string, bound float64, reached bool) Row {
	r.Aim = &Aim{relation, bound, reached}
	return r
}

// Beside returns the row with what a bare client got.
func (r Row) Beside(limit float64) Row {
	r.Limit = &limit
	return r
}

// Because returns the row with a note.
func (r Row) Because(format string, args ...any) Row {
	r.Note = fmt.Sprintf(format, args...)
	return r
}

// WriteText writes the rows as a table, and below it what has to be said of
// them.
func (r Report) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\t\tvalue\tbare client\taim\t")
	for _, row := range r.Rows {
		limit, aim, verdict := "", "", ""
		if row.Limit != nil {
			limit = row.Unit.text(*row.Limit)
		}
		if row.Aim != nil {
			aim = row.Aim.Relation + " " + row.Unit.text(row.Aim.Bound)
			verdict = "missed"
			if row.Aim.Reached {
				verdict = "reached"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", row.Number, row.What, row.Unit.text(row.Value), limit, aim, verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, row := range r.Rows {
		if row.Note == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "\n%s, %s: %s\n", row.Number, row.What, row.Note); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\nassay %s on %s, %d cores\n", r.Program, r.System, r.Cores)
	return err
}

// text prints a value with three significant digits, or all before the point.
func (u Unit) text(v float64) string {
	suffix := " " + string(u)
	switch u {
	case Count:
		suffix = ""
	case PerSecond:
		suffix = "/s"
	case Share:
		v, suffix = 100*v, " %"
	}
	digits := 0
	if v != math.Trunc(v) {
		digits = max(0, 2-int(math.Floor(math.Log10(cmp.Or(math.Abs(v), 1)))))
	}
	return strconv.FormatFloat(v, 'f', min(digits, 3), 64) + suffix
}
