package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"text/tabwriter"
)

// report is the result of the measurements.
type report struct {
	Program string `json:"program"`
	System  string `json:"system"`
	Cores   int    `json:"cores"`
	// Quick is true if the measurements were small.
	Quick bool  `json:"quick"`
	Rows  []row `json:"rows"`
}

// row is one figure with its target and the bare client's figure.
type row struct {
	// Number is the ID of the measurement, such as 2a.
	Number string  `json:"number"`
	What   string  `json:"what"`
	Value  float64 `json:"value"`
	Unit   unit    `json:"unit"`
	// Limit is the bare client's figure.
	Limit *float64 `json:"limit,omitempty"`
	// Aim is nil if the figure only explains others.
	Aim  *aim   `json:"aim,omitempty"`
	Note string `json:"note,omitempty"`
}

type unit string

// The units. A share is in [0,1] and printed in percent.
const (
	count     unit = ""
	share     unit = "share"
	times     unit = "×"
	seconds   unit = "s"
	perSecond unit = "/s"
	micros    unit = "µs"
	bytesUnit unit = "B"
	megabytes unit = "MB"
)

// aim is the target of a value.
type aim struct {
	// Relation is ≥, < or =.
	Relation string  `json:"relation"`
	Bound    float64 `json:"bound"`
	Reached  bool    `json:"reached"`
}

func (r row) atLeast(bound float64) row { return r.aim("≥", bound, r.Value >= bound) }

func (r row) below(bound float64) row { return r.aim("<", bound, r.Value < bound) }

func (r row) zero() row { return r.aim("=", 0, r.Value == 0) }

func (r row) aim(relation string, bound float64, reached bool) row {
	r.Aim = &aim{relation, bound, reached}
	return r
}

// beside returns the row with the bare client's figure.
func (r row) beside(limit float64) row {
	r.Limit = &limit
	return r
}

// because returns the row with a note.
func (r row) because(format string, args ...any) row {
	r.Note = fmt.Sprintf(format, args...)
	return r
}

// missed returns an error with the figures that miss their aims, or nil.
func (r report) missed() error {
	var missed []string
	for _, row := range r.Rows {
		if row.Aim != nil && !row.Aim.Reached {
			missed = append(missed, fmt.Sprintf("%s %s is %s, want %s",
				row.Number, row.What, row.Unit.text(row.Value), row.Unit.aim(*row.Aim)))
		}
	}
	if missed == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", errMissed, strings.Join(missed, "; "))
}

// writeText writes the rows as a table, followed by their notes.
func (r report) writeText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\t\tvalue\tbare client\ttarget\t")
	for _, row := range r.Rows {
		limit, aim, verdict := "", "", ""
		if row.Limit != nil {
			limit = row.Unit.text(*row.Limit)
		}
		if row.Aim != nil {
			aim = row.Unit.aim(*row.Aim)
			verdict = "missed"
			if row.Aim.Reached {
				verdict = "reached"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
			row.Number, row.What, row.Unit.text(row.Value), limit, aim, verdict)
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

func (u unit) aim(a aim) string { return a.Relation + " " + u.text(a.Bound) }

// text formats a value with three significant digits, or as an integer if its
// integer part is longer.
func (u unit) text(v float64) string {
	suffix := " " + string(u)
	switch u {
	case count:
		suffix = ""
	case perSecond:
		suffix = "/s"
	case share:
		v, suffix = 100*v, " %"
	}
	digits := 0
	if v != math.Trunc(v) {
		digits = max(0, 2-int(math.Floor(math.Log10(cmp.Or(math.Abs(v), 1)))))
	}
	return strconv.FormatFloat(v, 'f', min(digits, 3), 64) + suffix
}
