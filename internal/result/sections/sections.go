// Package sections shows the figures of package report to people. It lays them out as documents
// with sentences, tables and charts.
//
// It chooses words and layout only. Package report computes the figures, and package document
// writes the pages.
package sections

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// The factors of tables, as package report names them.
const (
	variant     = "variant"
	taskType    = "task_type"
	difficulty  = "difficulty"
	severity    = "severity"
	reliability = "reliability"
	faultMix    = "fault_mix"
	interfaces  = "interface"
	phrasing    = "phrasing"
)

type (
	analysis   struct{ *report.Analysis }
	pivot      struct{ *report.Pivot }
	comparison struct{ *report.Comparison }
)

// Report lays out the report of an experiment. It leaves out sections without figures.
func Report(figures *report.Analysis) *document.Document {
	a := analysis{figures}
	d := &document.Document{
		Title: "Experiment " + a.Experiment, Headline: Headline(figures), Lead: a.lead(),
		Overview: a.standingSection(),
	}
	for _, w := range a.Warnings {
		shown := document.Warning{Title: w.Title, Text: w.Text, Where: w.Where}
		d.Warnings = append(d.Warnings, shown)
	}
	for _, s := range []*document.Section{
		a.section("success"), a.section("security"), a.section("main-metrics"),
		a.pivotSection(variant, "Variants", "How the same task is given to the model: alone, with advice, "+
			"with its plan, or with a flawed plan."),
		a.variantDifferences(), a.modelDifferences(), a.curveSection(),
		a.pivotSection(faultMix, "By mix of faults", "Only trials with the right plan, or else with the "+
			"first variant without a flaw, and with tools that can fail."),
		a.pivotSection(interfaces, "By interface", "The same tasks and luck; only the names, shapes and formats "+
			"that the tools use differ."),
		a.pivotSection(phrasing, "By phrasing", "The same tasks in other words, at the same difficulty and with "+
			"the same information."),
		a.pivotSection(taskType, "By task type", ""),
		a.pivotSection(difficulty, "By difficulty, and scale", ""),
		a.errorSection(), a.loopSection(), a.section("effort"), a.section("data"), a.section("safety"), a.section("exposure"),
		a.section("reactions"), a.section("model-faults"),
		a.tokenSection(), a.section("cost"), a.repeatSection(), a.section("profile"), a.section("robustness"),
		a.section("variance"), a.section("predictability"), a.section("published"), a.section("published-robustness"), a.section("pilot"), a.laneSection(),
	} {
		if s != nil {
			d.Sections = append(d.Sections, *s)
		}
	}
	if len(a.Parts) > 1 {
		for i := range a.Parts {
			for _, s := range a.partSections(i) {
				d.Sections = append(d.Sections, *s)
			}
		}
	}
	d.Sections = append(d.Sections, otherSections(a.Others)...)
	for _, f := range append(slices.Clone(a.Facts), a.origins()...) {
		d.Facts = append(d.Facts, document.Fact(f))
	}
	return d
}

// origins lists the prompts and rules that outcomes were made with.
func (a analysis) origins() (facts []report.Fact) {
	for _, f := range []struct {
		name   string
		values []string
	}{{"templates of outcomes", a.Templates}, {"rules of scoring", a.ScoreVersions}} {
		known := slices.DeleteFunc(slices.Clone(f.values), func(v string) bool { return v == "" })
		if len(known) > 0 {
			facts = append(facts, report.Fact{Name: f.name, Value: strings.Join(known, ", ")})
		}
	}
	return facts
}

func (a analysis) lead() string {
	switch {
	case a.Done == 0:
		return a.nothingDone()
	case len(a.Where) > 0:
		return fmt.Sprintf("Only attempts with %s count in this report.",
			strings.Join(a.Where, " and "))
	}
	return ""
}

// nothingDone says why there are no figures and what to do.
func (a analysis) nothingDone() string {
	text := "No trial is done yet."
	if len(a.Where) > 0 {
		text = fmt.Sprintf("No done trial has %s.", strings.Join(a.Where, " and "))
	}
	switch {
	case a.Faulted != nil && a.Faulted.Attempts > 0:
		return fmt.Sprintf("%s %s. Correct what they name, then `%s` tries the trials again.", text,
			report.Capital(a.Faulted.Text()), a.runs())
	case len(a.Where) > 0:
		return fmt.Sprintf("%s `%s` without --where counts all of them, and `%s` runs those that are pending.", text,
			a.command("report"), a.runs())
	}
	return fmt.Sprintf("%s `%s` runs them.", text, a.runs())
}

// Others lays out the aggregates of other systems, for a store without an experiment.
func Others(others []report.Other) *document.Document {
	return &document.Document{
		Title: "Aggregates of other systems",
		Lead:  "This store has no experiment of its own.", Sections: otherSections(others),
	}
}
