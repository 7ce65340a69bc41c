package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
)

// A Citation has what a paper needs to quote an experiment.
type Citation struct {
	// Method says what was done, how it was judged and what was found, in three sentences.
	Method string `json:"method"`
	BibTeX string `json:"bibtex"`
	// Digests identify what was used.
	Digests []report.Fact `json:"digests"`
	// Commands publish the results and plan the experiment again.
	Commands []string `json:"commands"`
	// Warnings are the titles of the report's warnings, whose figures may mislead.
	Warnings []string `json:"warnings"`
}

// Citation returns the citation of the report's experiment in its state.
func (r *Report) Citation(ctx context.Context) (Citation, error) {
	judges, err := r.judges(ctx)
	if err != nil {
		return Citation{}, err
	}
	x := r.experiment
	c := Citation{
		Method: strings.Join([]string{r.whatWasDone(), r.howItWasJudged(judges), r.whatWasFound()}, " "),
		Digests: []report.Fact{
			{Name: "experiment SHA-256", Value: r.fact("its SHA-256")},
			{Name: "library digest", Value: x.Stored.Library.Digest},
			{Name: "snapshot", Value: r.snapshot},
		},
		Warnings: []string{},
	}
	c.Digests = append(c.Digests, report.Fact{Name: "tools", Value: r.fact("tools")},
		report.Fact{Name: "templates", Value: strings.Join(r.Templates, ", ")},
		report.Fact{Name: "rules of scoring", Value: strings.Join(r.ScoreVersions, ", ")})
	c.Digests = slices.DeleteFunc(c.Digests, func(f report.Fact) bool { return f.Value == "" })
	c.Commands = []string{
		r.CommandLine("publish site " + x.Stored.Name),
		r.CommandLine("export --experiment " + x.Stored.Name + " --output attempts.jsonl.gz"),
		r.CommandLine("report "+x.Stored.Name+" --json") + " > report.json",
		"assay repeat report.json",
	}
	for _, w := range r.Warnings {
		c.Warnings = append(c.Warnings, w.Title)
	}
	var notes []string
	for _, d := range c.Digests {
		notes = append(notes, d.Name+" "+d.Value)
	}
	c.BibTeX = fmt.Sprintf("@misc{assay-%s-%d,\n  title = {Results of the experiment %s},\n"+
		"  howpublished = {Measured with Assay %s},\n  year = {%d},\n  month = %s,\n  note = {%s}\n}",
		key(x.Stored.Name), x.Stored.UpdatedAt.Year(), braced(x.Stored.Name), braced(r.fact("programs")), x.Stored.UpdatedAt.Year(),
		strings.ToLower(x.Stored.UpdatedAt.Month().String()[:3]), braced(strings.Join(notes, ",\n          ")))
	return c, nil
}

// whatWasDone names the experiment's models, conditions and tasks.
func (r *Report) whatWasDone() string {
	x := r.experiment
	conditions := []string{assay.Counted(len(distinctOf(x, func(t *assay.Trial) string {
		return t.Variant + " " + t.Severity
	})), "prompt variant")}
	for _, f := range []struct {
		name string
		of   func(*assay.Trial) string
	}{
		{"reliability", func(t *assay.Trial) string { return assay.FormatReliability(t.Reliability) }},
		{"fault mix", func(t *assay.Trial) string { return t.Faults }},
		{"interface", func(t *assay.Trial) string { return t.Interface }},
		{"phrasing", func(t *assay.Trial) string { return t.Phrasing }},
	} {
		values := distinctOf(x, f.of)
		switch {
		case f.name == "reliability":
			conditions = append(conditions, "tool reliability "+report.ReadableList(values))
		case len(values) > 1:
			conditions = append(conditions, f.name+" "+report.ReadableList(values))
		}
	}
	models := distinctOf(x, func(t *assay.Trial) string { return t.Model })
	named := strings.Join(models, ", ")
	if len(models) > 8 {
		named = strings.Join(models[:8], ", ") + " and others"
	}
	return fmt.Sprintf("The experiment %s measured %s (%s) with Assay %s in its world %s: %d of %d planned trials at %s "+
		"of the library %s are done, with %s and seed %s.", x.Stored.Name, assay.Counted(len(models), "model"), named, r.fact("programs"),
		r.fact("world"), r.Done, r.Planned, assay.Counted(r.Population.Tasks, "task"), x.Stored.Library.Name,
		strings.Join(conditions, ", "), r.fact("seed"))
}

// howItWasJudged says what a success is, what happened to faults, and what intervals are about.
func (r *Report) howItWasJudged(judges string) string {
	return fmt.Sprintf("Each trial was judged by rules (%s) on what its tool calls did, never by what the model says of itself%s; "+
		"failures of providers, machines and programs (%d attempts) were tried again and count as no model's failure; "+
		"rates are means over tasks with 95 %% intervals clustered by %s, and models are ordered by one "+
		"sign-flip test of all pairs on the tasks that they share.",
		strings.Join(r.ScoreVersions, ", "), judges, r.Met.Attempts(), r.Population.Cluster)
}

// judges says which models judged outcomes, and how far they agree with people, or "".
func (r *Report) judges(ctx context.Context) (text string, err error) {
	comparisons, err := r.db.Comparisons(ctx)
	if err != nil {
		return "", err
	}
	asked, alone := make(map[report.Judge]int), make(map[report.Judge]int)
	for a, err := range r.Attempts(ctx) {
		if err != nil {
			return "", err
		}
		if a.Superseded || a.Verdict == "" {
			continue
		}
		j := report.Judge{Model: a.JudgedBy, Prompt: a.JudgePrompt}
		if asked[j]++; a.JudgedAlone {
			alone[j]++
		}
	}
	for _, j := range slices.SortedFunc(maps.Keys(asked), func(a, b report.Judge) int {
		return cmp.Compare(a.String(), b.String())
	}) {
		agreed := "which nobody has compared with people"
		for _, c := range comparisons {
			if c.Judge == j.Model && c.Prompt == j.Prompt {
				agreed = fmt.Sprintf("which agreed with people on %d of %d labels", c.Agreed, c.Labels)
			}
		}
		text += fmt.Sprintf(", and %d of them also by the model %s by a rubric (%d by it alone), %s", asked[j], j.Model, alone[j], agreed)
	}
	return text, nil
}

// whatWasFound has the rates of the first screen.
func (r *Report) whatWasFound() string {
	var rates []string
	for _, s := range r.Standings {
		rates = append(rates, fmt.Sprintf("%s %s (95 %% interval %.0f to %.0f %%, %s)", s.Model, report.Percent(s.Success.Rate),
			100*s.Success.Interval.Low, 100*s.Success.Interval.High, assay.Counted(s.Ranked, "trial")))
	}
	if len(rates) == 0 {
		return "No trial is done yet."
	}
	under := ""
	if r.Condition != "" {
		under = " with " + r.Condition
	}
	return "Full success" + under + ": " + strings.Join(rates, "; ") + "."
}

// fact returns a setting of the experiment.
func (r *Report) fact(name string) string {
	i := slices.IndexFunc(r.Facts, func(f report.Fact) bool { return f.Name == name })
	if i < 0 {
		return ""
	}
	return r.Facts[i].Value
}

// distinctOf returns the values of the experiment's trials in their order.
func distinctOf(x *Experiment, of func(*assay.Trial) string) (values []string) {
	for t := range x.Trials {
		if v := of(&t); !slices.Contains(values, v) {
			values = append(values, v)
		}
	}
	return values
}

// key returns a name as a part of BibTeX's key.
func key(name string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, name)
}

// braced escapes what TeX would obey.
func braced(text string) string {
	return strings.NewReplacer(`\`, `\textbackslash{}`, "{", `\{`, "}", `\}`, "%", `\%`, "&", `\&`, "#", `\#`,
		"$", `\$`, "_", `\_`, "~", `\textasciitilde{}`, "^", `\textasciicircum{}`).Replace(text)
}

// String has the citation for a terminal.
func (c Citation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n%s\n\n", c.Method, c.BibTeX)
	for _, d := range c.Digests {
		fmt.Fprintf(&b, "%s  %s\n", d.Name, d.Value)
	}
	fmt.Fprintf(&b, "\nPublish the results and let others repeat the experiment:\n  %s\n", strings.Join(c.Commands, "\n  "))
	if len(c.Warnings) > 0 {
		fmt.Fprintf(&b, "\nThe report explains %s, which readers should know:\n  %s\n",
			assay.Counted(len(c.Warnings), "warning"), strings.Join(c.Warnings, "\n  "))
	}
	return b.String()
}
