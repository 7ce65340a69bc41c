package exhibit

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Vendors lays out how the hosts of a model differ, as a certificate.
func Vendors(v *report.Vendors) *document.Document {
	others := strings.Join(vendorNames(v.All[1:]), ", ")
	d := &document.Document{
		Title:    fmt.Sprintf("Vendors: %s, measured against %s", others, v.All[0].Name),
		Sections: []document.Section{successOf(v), callsOf(v), firstOf(v), costOf(v)},
		Facts: []document.Fact{
			{Name: "margin", Value: fmt.Sprintf("%.1f points", 100*v.Margin)},
			{Name: "prompts", Value: strings.Join(v.Prompts, ", ")},
			{Name: "rules of verdicts", Value: strings.Join(v.Judges, ", ")},
			{Name: "snapshot of the store", Value: cmp.Or(v.Snapshot, "none, the store is "+
				"damaged")},
		},
	}
	for _, x := range v.All[1:] {
		d.Summary = append(d.Summary, document.Point{
			Label: strings.ToUpper(string(x.Against.Verdict)), Text: vendorText(v, x),
		})
	}
	if s := endsOf(v); len(s.Table.Columns) > 2 {
		d.Sections = append(d.Sections, s)
	}
	if s := faultsOf(v); len(s.Table.Rows) > 0 {
		d.Sections = append(d.Sections, s)
	}
	if v.Unread > 0 {
		d.Warnings = append(d.Warnings, document.Warning{
			Title: report.DamagedTitle, Text: report.DamagedHelp,
			Where: []string{fmt.Sprintf("%d attempts cannot be read or proved", v.Unread)},
		})
	}
	return d
}

func vendorNames(all []report.Vendor) (names []string) {
	for _, v := range all {
		names = append(names, v.Name)
	}
	return names
}

// vendorText is the verdict about a vendor in a sentence.
func vendorText(v *report.Vendors, x report.Vendor) string {
	e := x.Against
	text := fmt.Sprintf("%s %s %s on %s, with 90 %% confidence between %+.1f and %+.1f points",
		x.Name, scored(e.Difference), v.All[0].Name, assay.Counted(e.Tasks, "task"), 100*e.Test.Lower,
		100*e.Test.Upper)
	switch {
	case e.Reason != "":
		return fmt.Sprintf("%s, and there is no verdict below %.0f %%. So far, %s.",
			report.Capital(e.Reason), 100*(1-report.MostPending), text)
	case e.Verdict == report.Alike:
		return fmt.Sprintf("%s: less than %.1f either way (%s).", text, 100*v.Margin,
			named("p", e.Test.P))
	case e.Verdict == report.Different:
		return fmt.Sprintf("%s, which is more than chance (%s).", text, named("q", e.Q))
	}
	if n := e.Clusters; n < stat.UnitsNeeded(v.Margin, stat.PassLevel) {
		return fmt.Sprintf("%s. So few (%d) cannot rule out a difference of less than %s points, whatever "+
			"the repeats; %d can.", text, n, leastText(stat.LeastLoss(n, stat.PassLevel)),
			stat.UnitsNeeded(v.Margin, stat.PassLevel))
	}
	return fmt.Sprintf("%s. Neither a difference of %.1f points is ruled out (%s), nor is any "+
		"difference shown (%s). Data like these show %.0f of 100 equal hosts to be equivalent; more "+
		"repeats or tasks decide it.", text, 100*v.Margin, named("p", e.Test.P), named("q", e.Q),
		100*e.Passing)
}

func successOf(v *report.Vendors) document.Section {
	var all []report.Paired
	for _, x := range v.All[1:] {
		all = append(all, x.Against.Paired)
	}
	return document.Section{
		ID: "success", Title: "Full success on the same tasks",
		Table: pairedTable(all, names("A", "B"), func(p report.Paired) []string {
			return []string{p.A, p.B}
		}),
		Notes: []string{
			methodNote(all[0].Method) + " " + weightNote,
			"Equivalent means that the 90 % interval lies within the margin (two one-sided " +
				"tests, Schuirmann 1987).",
		},
	}
}

// vendorSection has one row a vendor.
func vendorSection(
	id, title string, v *report.Vendors, heads []string, row func(*report.Vendor) []document.Cell,
	notes ...string,
) document.Section {
	return document.Section{
		ID: id, Title: title, Notes: notes,
		Table: tableOf(append(names("vendor"), figures(heads...)...), v.All,
			func(x report.Vendor) []document.Cell {
				return append([]document.Cell{text(x.Name)}, row(&x)...)
			}),
	}
}

// shareOf shows how many of all, with the share.
func shareOf(n, all int) document.Cell {
	if all == 0 {
		return text("–")
	}
	share := float64(n) / float64(all)
	return sorted(fmt.Sprintf("%d (%s)", n, report.Percent(share)), share)
}

func callsOf(v *report.Vendors) document.Section {
	heads := []string{
		"replies", "calls", "not parsed", "refused by the tool", "replies without an action",
		"cut off", "content filter",
	}
	row := func(x *report.Vendor) []document.Cell {
		c := &x.Conduct
		return []document.Cell{
			whole(c.Replies), whole(c.Calls),
			shareOf(c.Unparsed, c.Calls), shareOf(c.Mistaken, c.Calls),
			shareOf(c.Idle, c.Replies), shareOf(c.Truncated, c.Replies), whole(c.Refusals),
		}
	}
	return vendorSection("calls", "Calls of tools", v, heads, row, "Not parsed: a call without a name, or arguments that are not a JSON object. Refused "+
		"by the tool: arguments or an order that the tool's description rules out.")
}

func firstOf(v *report.Vendors) document.Section {
	heads := []string{
		"pairs", "both call", "only here", "only the reference", "F1", "same first tool",
	}
	return vendorSection("first", "First replies to the same prompts", v, heads,
		func(x *report.Vendor) []document.Cell {
			if x.Against == nil {
				return []document.Cell{text("reference")}
			}
			f := x.Against.First
			return []document.Cell{
				whole(f.Pairs), whole(f.Both), whole(f.OnlyVendor), whole(f.OnlyReference),
				decimal(f.F1(), "%.3f"), shareOf(f.SameTool, f.Compared),
			}
		}, "F1 is the tool-call trigger similarity of K2 Vendor Verifier. A model that "+
			"samples does not agree with itself either: run the reference twice, under two "+
			"names, to see by how much.")
}

func costOf(v *report.Vendors) document.Section {
	heads := []string{
		"trials", "input tokens", "output tokens", "reasoning", "cached",
		"median reply", "95 % within", "dollars", "served as",
	}
	per := func(n, trials int) document.Cell {
		return decimal(float64(n)/float64(max(1, trials)), "%.0f")
	}
	return vendorSection("cost", "Tokens, time and money", v, heads,
		func(x *report.Vendor) []document.Cell {
			c := &x.Conduct
			return []document.Cell{
				whole(c.Settled),
				per(c.Usage.InputTokens, c.Settled), per(c.Usage.OutputTokens, c.Settled),
				per(c.Usage.ReasoningTokens, c.Settled), per(c.Usage.CachedTokens, c.Settled),
				decimal(c.Median, "%.2f s"), decimal(c.P95, "%.2f s"),
				dollars(c.USD/float64(max(1, c.Settled)), c.Usage.UnpricedTokens > 0, "%.5f"),
				text(strings.Join(c.Served, ", ")),
			}
		}, "Tokens and dollars are per trial. Replies are timed without queues.")
}

func endsOf(v *report.Vendors) document.Section {
	words := v.Ends()
	return vendorSection("ends", "How replies ended", v, words,
		func(x *report.Vendor) (row []document.Cell) {
			for _, word := range words {
				row = append(row, shareOf(x.Conduct.Finish[word], x.Conduct.Replies))
			}
			return row
		}, "In the endpoints' own words.")
}

func faultsOf(v *report.Vendors) document.Section {
	t := tableOf(append(names("fault"), figures(vendorNames(v.All)...)...), v.Kinds(),
		func(kind assay.FaultKind) []document.Cell {
			row := []document.Cell{text(string(kind))}
			for _, x := range v.All {
				ended, retried := x.Conduct.FaultKinds[kind], x.Conduct.Retried[kind]
				row = append(row, sorted(fmt.Sprintf("%d + %d", ended, retried), float64(ended)))
			}
			return row
		})
	return document.Section{
		ID: "faults", Title: "Faults", Table: t,
		Notes: []string{"Attempts that ended in a fault, and requests that were repeated " +
			"after one."},
	}
}
