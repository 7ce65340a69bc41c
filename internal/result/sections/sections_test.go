package sections_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/result/stat"
)

// overview returns the sentences above the table of models.
func overview(a *report.Analysis) string {
	if d := sections.Report(a); d.Overview != nil {
		return d.Overview.Lead
	}
	return ""
}

// outcome returns an analysis of two models on 40 tasks, of which the given numbers are successes.
func outcome(m, n int) *report.Analysis {
	a := order(40, ranked{"m", m}, ranked{"n", n})
	for i := range a.Standings {
		a.Standings[i].Best = a.Ranking.Models[i].Best
	}
	a.Models = []report.Paired{{A: "m", B: "n", Comparison: stat.Comparison{
		Tasks: 40, Clusters: 40, Difference: float64(n-m) / 40, P: a.Ranking.P(0, 1), Detectable: .1,
	}, Q: a.Ranking.P(0, 1)}}
	return a
}

func TestOverviewSaysWhichModelIsTheBest(t *testing.T) {
	t.Parallel()
	filtered := report.Standing{Model: "o", Planned: 100, Done: 90, Selected: "10 content_filter"}
	half := report.Standing{Model: "m", Planned: 100, Done: 80}
	few := order(5, ranked{"m", 5}, ranked{"n", 0})
	for name, c := range map[string]struct {
		analysis *report.Analysis
		want     string
	}{
		"clearly ahead": {outcome(40, 20), "Best: m. It is significantly better than n."},
		"too close": {
			outcome(22, 20),
			"Too close to call: m, n. m scored 5.0 points higher than n on the same 40 tasks (adjusted p = .509).",
		},
		"all fail": {order(40, ranked{"m", 0}, ranked{"n", 0}), "No model succeeds, so that none is the best."},
		"too few tasks": {
			few, "The models cannot be told apart whatever they do: these trials have 5 tasks. 6 are enough " +
				"for 2 models if the better one is better on each; `tasks_per_type` adds tasks.",
		},
		"few trials": {
			&report.Analysis{Table: new(report.Table), Standings: []report.Standing{half, filtered}},
			"No model can be called the best yet. Out of the comparison: m has done 80 % of its " +
				"trials; o lacks trials that are not missing by chance (10 content_filter).",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := overview(c.analysis); !strings.Contains(got, c.want) {
				t.Errorf("the overview is\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestOverviewSaysWhatToDoNext(t *testing.T) {
	t.Parallel()
	one := func(table report.Table) *report.Analysis {
		a := order(40, ranked{"m", 20})
		a.Table = &table
		return a
	}
	warned, failed := one(report.Table{}), one(report.Table{})
	warned.Warnings = []report.Warning{{Kind: "zero"}}
	failed.Reason = &report.Reason{Cause: assay.WrongTool, Count: 80, Failed: 120}
	for name, c := range map[string]struct {
		analysis *report.Analysis
		want     string
	}{
		"pending": {
			one(report.Table{Planned: 10, Done: 7, Skipped: 2}), "Finish 1 pending trial with `assay run FILE`.",
		},
		"a warning": {warned, "Read the warning below before relying on these figures."},
		"too close": {
			outcome(22, 20), "To separate the first two, run about 160 tasks instead of 40. Such data find a",
		},
		"failures": {failed, "Read failed episodes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := overview(c.analysis); !strings.Contains(got, c.want) {
				t.Errorf("the sentences are\n%s\nwant %q", got, c.want)
			}
		})
	}
}

func compared(difference, p float64, cells ...report.Paired) *report.Comparison {
	return &report.Comparison{
		A: report.Side{Name: "my-model"}, B: report.Side{Name: "sim/optimal"}, Cells: cells,
		Whole: stat.Comparison{
			Tasks: 40, Clusters: 40, Difference: difference, P: p, Detectable: .08,
			Power: stat.Power{At5: .41, At10: .93},
		},
	}
}

func TestComparisonOpensWithItsVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		difference, p float64
		want          string
	}{
		"higher": {
			.017, .01,
			"sim/optimal scored 1.7 points higher than my-model on 40 tasks, which is significant (p = .010).",
		},
		"too close": {
			-.017, .4,
			"sim/optimal scored 1.7 points lower than my-model on 40 tasks, which is too close " +
				"to call (p = .400). Such data find a difference of 5 points in 41 of 100 " +
				"cases, of 10 points in 93, and of 8 points in 80.",
		},
		"the same": {
			0, 1,
			"sim/optimal scored the same as my-model on 40 tasks. Such data find a difference of 5 points in 41 of 100 " +
				"cases, of 10 points in 93, and of 8 points in 80.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := sections.Comparison(compared(c.difference, c.p), nil)
			if got := d.Summary[0].Text; got != c.want {
				t.Errorf("the verdict is %q, want %q", got, c.want)
			}
		})
	}
}

func TestComparisonFoldsAllButSignificantAndLargeDifferences(t *testing.T) {
	t.Parallel()
	for _, significant := range []int{0, 3, 25} {
		t.Run(fmt.Sprint(significant), func(t *testing.T) {
			t.Parallel()
			var cells []report.Paired
			for i := range 60 {
				p := report.Paired{Condition: fmt.Sprint("condition ", i), Q: 1}
				p.Tasks, p.Difference = 4, .5-float64(i)/200
				if i < significant {
					p.Q = .01
				}
				cells = append(cells, p)
			}
			d := sections.Comparison(compared(.1, .01, cells...), nil)
			table := d.Sections[1].Table
			if want := max(10, significant); table.Shown != want || len(table.Rows) != 60 {
				t.Errorf("%d of %d rows are shown, want %d of 60",
					table.Shown, len(table.Rows), want)
			}
		})
	}
}

// TestSectionsOfMeasures checks that a measure is shown where it exists, and explained if it is.
func TestSectionsOfMeasures(t *testing.T) {
	t.Parallel()
	known := func(n float64) report.Value { return report.Value{Known: true, Number: n} }
	rate := func(n float64) report.Value {
		return report.Value{Known: true, Number: n, Interval: &stat.Interval{High: 1}, N: 4}
	}
	m := assay.Cell{Model: "m"}
	data := []*report.Measure{
		report.Done, report.Precision, report.Unwanted, report.WrongData, report.WrongDataAt,
	}
	faults := []*report.Measure{report.Done, report.Scheduled, report.Met, report.MetShare}
	for _, tc := range []struct {
		name, section string
		measures      []*report.Measure
		values        []report.Value
		want, caption string
	}{
		{"no effects", "data", data, []report.Value{known(4), known(0), rate(0), rate(0), {}}, "", ""},
		{
			"effects", "data", data, []report.Value{
				known(4), known(.75), rate(.25), rate(.5), {Known: true, Text: "parser"},
			}, "m | 4 | 0.75 | 25.0 % | 50.0 % | parser", "Most often at: the tool",
		},
		{
			"no tool", "data", data,
			[]report.Value{known(4), known(.75), rate(.25), rate(0), {}},
			"m | 4 | 0.75 | 25.0 % | 0.0 %", "",
		},
		{"no faults", "exposure", faults, nil, "", ""},
		{
			"faults", "exposure", faults,
			[]report.Value{known(4), known(8), known(6), known(.75)},
			"m | 4 | 8 | 6 | 75.0 %", "Met: the scheduled faults",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			var rows []report.GridRow
			if tc.values != nil {
				rows = []report.GridRow{{Cell: m, Values: tc.values}}
			}
			a := &report.Analysis{Table: &report.Table{Planned: 4, Done: 4}}
			g := report.NewGrid([]string{"model"}, tc.measures, rows...)
			if tc.section == "data" {
				a.Effort = g
			} else {
				a.Exposures = g
			}
			var texts []string
			caption := ""
			for _, section := range sections.Report(a).Sections {
				if section.ID == tc.section {
					caption = section.Notes[0]
					for _, c := range section.Table.Rows[0] {
						texts = append(texts, c.Text)
					}
				}
			}
			if got := strings.Join(texts, " | "); got != tc.want {
				t.Errorf("row %q, want %q", got, tc.want)
			}
			if !strings.Contains(caption, tc.caption) || tc.caption == "" && strings.Contains(caption, "ost often") {
				t.Errorf("caption %q, want %q", caption, tc.caption)
			}
		})
	}
}

// TestErrorTableFits checks that as many causes as usual fit the columns of a terminal, and that the
// ones without outcomes have no column.
func TestErrorTableFits(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ width, occurring int }{{120, 8}, {100, 6}, {80, 5}} {
		row := report.ErrorRow{Model: "qwen2.5-7b-instruct", Done: 150}
		for i, cause := range assay.Causes {
			c := report.ErrorCell{Cause: cause}
			if i < tc.occurring {
				c.Count, c.Rate = i+1, 1
				c.Interval = stat.Interval{Low: .72, High: 1}
				row.Total += c.Count
			}
			row.Cells = append(row.Cells, c)
		}
		var b strings.Builder
		figures := &report.Table{Planned: 150, Done: 150, Errors: report.Errors{
			Causes: assay.Causes, Rows: []report.ErrorRow{row},
		}}
		d := sections.Report(&report.Analysis{Table: figures})
		err := d.WriteText(&b, document.Terminal{Width: tc.width})
		if err != nil {
			t.Fatal(err)
		}
		_, table, _ := strings.Cut(b.String(), "Why trials failed")
		if n := strings.Count(table, "qwen2.5"); n != 1 {
			t.Errorf("%d columns: the table has %d blocks:\n%s", tc.width, n, table)
		}
		for line := range strings.Lines(table) {
			if n := utf8.RuneCountInString(line) - 1; n > tc.width {
				t.Errorf("%d columns: a line has %d: %s", tc.width, n, line)
			}
		}
		main := assay.Causes[tc.occurring-1].Text()
		if !strings.Contains(table, "\n"+main) {
			t.Errorf("%d columns: the main cause %q is missing:\n%s", tc.width, main, table)
		}
		if rare := assay.BadLuck.Text(); strings.Contains(table, rare) {
			t.Errorf("%d columns: %q without outcomes has a column", tc.width, rare)
		}
	}
}

// TestTablesOfSeveritiesTellWhichTasks checks that a table of severities explains that its columns
// are of different tasks, and that other tables do not.
func TestTablesOfSeveritiesTellWhichTasks(t *testing.T) {
	t.Parallel()
	const want = "The prompts of all severities differ at every task"
	for name, c := range map[string]struct {
		levels []string
		told   bool
	}{
		"one severity":    {[]string{"optimal", "flawed_tool_misuse"}, false},
		"two severities":  {[]string{"flawed_tool_misuse, light", "flawed_tool_misuse, severe"}, true},
		"a single column": {[]string{"flawed_tool_misuse, light"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			row := report.PivotRow{Model: "m", Cells: make([]report.PivotCell, len(c.levels))}
			d := sections.Report(&report.Analysis{Table: &report.Table{}, Pivots: []report.Pivot{
				{Factor: "variant", Levels: c.levels, Rows: []report.PivotRow{row}},
			}})
			var text strings.Builder
			if err := d.WriteText(&text, document.Terminal{Width: 500}); err != nil {
				t.Fatal(err)
			}
			if told := strings.Contains(text.String(), want); told != c.told {
				t.Errorf("the report explains it: %v, want %v\n%s", told, c.told, &text)
			}
		})
	}
}

// TestLanesNameTheBottleneck checks the sentences about the speed of the latest run.
func TestLanesNameTheBottleneck(t *testing.T) {
	t.Parallel()
	a := &report.Analysis{
		Table: &report.Table{},
		Background: report.Background{
			Lanes: []report.Lane{
				{Run: "old", Lane: "gw/K1/m", Found: "4 at a time"},
				{Run: "new", Lane: "gw/K1/m", Found: "9 at a time"},
			},
			Speed: &report.Speed{
				WallS: 90, LeastS: 60, ForecastS: 100,
				Models: []report.ModelSpeed{
					{Model: "idle", Used: 0.1},
					{Model: "hung", Used: 1, Lost: 0.97, Bottleneck: "requests without a reply"},
					{Model: "m", Used: 0.5, Bottleneck: "rpm limit of gw/K1/m", WaitedS: 80},
				},
			},
		},
	}
	all := sections.Report(a).Sections
	lanes := all[len(all)-1]
	want := "The latest run took 1m30s; fastest possible: 1m0s (1.50×); forecast: 1m40s (0.90×).\n" +
		"idle: 10 % of its lanes' time used\n" +
		"hung: 100 % of its lanes' time used, 97 % of it without a reply; " +
		"bottleneck: requests without a reply\n" +
		"m: 50 % of its lanes' time used; bottleneck: rpm limit of gw/K1/m (waited 1m20s)"
	if lanes.Lead != want {
		t.Errorf("the section begins with\n%s\nwant\n%s", lanes.Lead, want)
	}
	a.Speed = &report.Speed{WallS: 4.4, LeastS: 0.0000011, ForecastS: 0.09}
	all = sections.Report(a).Sections
	if got := all[len(all)-1].Lead; got != "The latest run took 4.4 s." {
		t.Errorf("without limits, the section begins with %q", got)
	}
	if last := lanes.Notes[len(lanes.Notes)-1]; last != "gw/K1/m: 9 at a time" {
		t.Errorf("the last note is %q, want the limits that the latest run found out", last)
	}
}

// TestSoughtFiguresKeepTheirColumns checks that the table of models has a column for what was measured,
// even if no model can have the figure: one without a success can lose nothing.
func TestSoughtFiguresKeepTheirColumns(t *testing.T) {
	t.Parallel()
	a := outcome(0, 0)
	for i := range a.Standings {
		a.Standings[i].FlawedPlan, a.Standings[i].FailingTools = new(report.Cost), new(report.Cost)
		a.Standings[i].Price = new(stat.Price)
	}
	heads := make(map[string]bool)
	for _, c := range sections.Report(a).Overview.Table.Columns {
		heads[c.Head] = true
	}
	for _, m := range []*report.Measure{
		report.FlawedPlan, report.WorstFlaw, report.ToolFailures, report.WorstKind, report.DollarsPerSuccess,
	} {
		if !heads[m.Heads[0]] {
			t.Errorf("there is no column for %q among %v", m.Heads[0], heads)
		}
	}
}
