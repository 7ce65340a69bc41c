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

// figure is one figure with its target and the bare client's figure.
type figure struct {
	number string // the ID of the measurement, such as 2a
	what   string
	value  float64
	unit   unit
	limit  *float64 // the bare client's figure
	aim    *aim     // nil if the figure only explains others
	note   string
}

type unit string

// The units. A share is in [0,1] and printed in percent.
const (
	count     unit = ""
	share     unit = "share"
	times     unit = "×"
	seconds   unit = "s"
	micros    unit = "µs"
	megabytes unit = "MB"
)

// aim is the target of a value.
type aim struct {
	relation string // ≥, < or =
	bound    float64
	reached  bool
}

func newRow(what string, u unit, value float64) figure {
	return figure{what: what, unit: u, value: value}
}

func countRow(what string, n int) figure { return newRow(what, count, float64(n)) }

func (r figure) atLeast(bound float64) figure { return r.aims("≥", bound, r.value >= bound) }

func (r figure) below(bound float64) figure { return r.aims("<", bound, r.value < bound) }

func (r figure) zero() figure { return r.aims("=", 0, r.value == 0) }

func (r figure) aims(relation string, bound float64, reached bool) figure {
	r.aim = &aim{relation, bound, reached}
	return r
}

// beside returns the row with the bare client's figure.
func (r figure) beside(limit float64) figure {
	r.limit = &limit
	return r
}

// because returns the row with a note.
func (r figure) because(format string, args ...any) figure {
	r.note = fmt.Sprintf(format, args...)
	return r
}

// smallAims has the targets of --quick, by measurement and figure. They are far below the figures
// of a quiet machine, so that a busy one reaches them, too.
var smallAims = map[string]func(figure) figure{
	"2a ideal ÷ wall time":                    func(r figure) figure { return r.atLeast(0.5) },
	"2d used ÷ permitted traffic":             func(r figure) figure { return r.atLeast(0.95) },
	"2d requests answered 429":                func(r figure) figure { return r.below(0.02) },
	"2e used ÷ permitted traffic":             func(r figure) figure { return r.atLeast(0.9) },
	"2e requests answered 429":                func(r figure) figure { return r.below(0.15) },
	"2e used ÷ permitted traffic, no headers": func(r figure) figure { return r.atLeast(0.9) },
	"2e requests answered 429, no headers":    func(r figure) figure { return r.below(0.15) },
	"2f ideal ÷ wall time":                    func(r figure) figure { return r.atLeast(0.5) },
}

// small replaces the target of a row by the target of its small version, if it has one.
func small(r figure) figure {
	r.aim = nil
	if aim, ok := smallAims[r.number+" "+r.what]; ok {
		return aim(r)
	}
	return r
}

// missed returns an error with the figures that miss their aims, or nil.
func missed(rows []figure) error {
	var all []string
	for _, r := range rows {
		if r.aim != nil && !r.aim.reached {
			all = append(all, fmt.Sprintf("%s %s is %s, want %s",
				r.number, r.what, r.unit.text(r.value), r.unit.aim(*r.aim)))
		}
	}
	if all == nil {
		return nil
	}
	return fmt.Errorf("%w: %s", errMissed, strings.Join(all, "; "))
}

// writeText writes rows as a table, followed by their notes.
func writeText(w io.Writer, rows []figure) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "\t\tvalue\tbare client\ttarget\t")
	for _, r := range rows {
		limit, aim, verdict := "", "", ""
		if r.limit != nil {
			limit = r.unit.text(*r.limit)
		}
		if r.aim != nil {
			aim, verdict = r.unit.aim(*r.aim), "missed"
			if r.aim.reached {
				verdict = "reached"
			}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n",
			r.number, r.what, r.unit.text(r.value), limit, aim, verdict)
	}
	_ = t.Flush()
	for _, r := range rows {
		if r.note != "" {
			fmt.Fprintf(w, "\n%s, %s: %s\n", r.number, r.what, r.note)
		}
	}
}

func (u unit) aim(a aim) string { return a.relation + " " + u.text(a.bound) }

// text formats a value with three significant digits, or as an integer if its
// integer part is longer.
func (u unit) text(v float64) string {
	suffix := " " + string(u)
	switch u {
	case count:
		suffix = ""
	case share:
		v, suffix = 100*v, " %"
	}
	digits := 0
	if v != math.Trunc(v) {
		digits = max(0, 2-int(math.Floor(math.Log10(cmp.Or(math.Abs(v), 1)))))
	}
	return strconv.FormatFloat(v, 'f', min(digits, 3), 64) + suffix
}
