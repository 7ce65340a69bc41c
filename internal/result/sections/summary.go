package sections

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/report"
)

// command returns a command for the store of the report.
func (a analysis) command(verb string) string {
	program, store, _ := strings.Cut(cmp.Or(a.Show, "assay show"), " show")
	return program + " " + verb + store
}

// runs returns the command that works on the pending trials.
func (a analysis) runs() string { return a.command(plan.RunVerb(a.Experiment)) }

// nextText lists the next steps. If there are pending trials, finishing them comes first.
func (a analysis) nextText() string {
	var steps []string
	if n := a.Planned - a.Done - a.Skipped; n > 0 {
		command := a.runs()
		if a.Again {
			command += " --again"
		}
		steps = append(steps, fmt.Sprintf("Finish %s with `%s`.",
			assay.Counted(n, report.Left(a.faults())+" trial"), command))
	}
	others := slices.ContainsFunc(a.Warnings, func(w report.Warning) bool {
		return w.Kind != "incomplete"
	})
	switch {
	case others && len(a.Warnings) == 1:
		steps = append(steps, "Read the warning below before relying on these figures.")
	case others:
		steps = append(steps, fmt.Sprintf("Read the %d warnings below before relying on these "+
			"figures.", len(a.Warnings)))
	}
	if close := a.tied(); close != nil {
		steps = append(steps, a.moreTasks(*close))
	} else if a.Reason != nil {
		steps = append(steps, fmt.Sprintf("Read failed episodes: `%s`.", a.command("failures")))
	}
	return strings.Join(steps, " ")
}

// moreTasks says what would separate the first two models.
func (a analysis) moreTasks(p report.Paired) string {
	if a.Ranking.Clusters < a.Ranking.Needed {
		return a.tooFew()
	}
	found := foundText(p.Comparison) + "."
	if n := tasksToSeparate(p); n > 0 {
		return fmt.Sprintf("To separate the first two, run about %.0f tasks instead of %d. %s", n,
			p.Tasks, found)
	}
	if p.Clusters < 2 {
		return found
	}
	var others []string
	for _, c := range []struct {
		what string
		has  func(report.Standing) bool
	}{
		{"what flawed plans cost them", func(s report.Standing) bool { return s.FlawedPlan != nil }},
		{"what failing tools cost them", func(s report.Standing) bool { return s.FailingTools != nil }},
		{"what a success costs", func(s report.Standing) bool { return s.Price != nil }},
	} {
		if slices.ContainsFunc(a.Standings, c.has) {
			others = append(others, c.what)
		}
	}
	if len(others) > 0 {
		return "Compare " + strings.Join(others, ", and ") + ", below. " + found
	}
	return found
}

// tooFew says that the models have too few independent tasks in common to tell them apart.
func (a analysis) tooFew() string {
	r := a.Ranking
	n := assay.Counted(r.Clusters, "task")
	if r.Clusters < r.Tasks {
		n = assay.Counted(r.Clusters, "sequence") + " of tools, which are the independent observations"
	}
	return fmt.Sprintf("The models cannot be told apart whatever they do: these trials have %s. %d are "+
		"enough for %d models if the better one is better on each; `tasks_per_type` adds tasks.", n,
		r.Needed, len(r.Names))
}

// tasksToSeparate returns 0 if it is more than 20 times as many as there are, or not more. The
// smallest detectable difference shrinks with the square root of the number of tasks.
func tasksToSeparate(p report.Paired) float64 {
	times := math.Pow(p.Detectable/p.Difference, 2)
	if p.Difference == 0 || times > 20 || p.Clusters < 2 {
		return 0
	}
	if n := math.Ceil(times*float64(p.Tasks)/10) * 10; n > float64(p.Tasks) {
		return n
	}
	return 0
}

func roughly(share float64) string { return fmt.Sprintf("%.0f %%", 100*share) }

// scored writes a difference of rates, such as "scored 1.7 points higher than".
func scored(difference float64) string {
	switch points := math.Round(1000 * difference); {
	case points > 0:
		return fmt.Sprintf("scored %.1f points higher than", points/10)
	case points < 0:
		return fmt.Sprintf("scored %.1f points lower than", -points/10)
	}
	return "scored the same as"
}

// named writes a p or q value with its name.
func named(name string, p float64) string {
	if text := report.Probability(p); strings.HasPrefix(text, "<") {
		return name + " " + text
	}
	return name + " = " + report.Probability(p)
}
