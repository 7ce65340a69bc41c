package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/store"
)

func newReport(p *process) *cobra.Command {
	var f documentFlags
	cmd := &cobra.Command{
		Use:   "report [EXPERIMENT]",
		Short: "Tables, charts and warnings of an experiment",
		Long: `Report shows what an experiment found. It begins with the best model and variant, whether
that is more than chance, what goes wrong, and what to do next. Warnings follow, then rates
with intervals, comparisons of variants and models on the same tasks, errors, effort, cost,
and what it takes to reproduce the run. Without EXPERIMENT it reports the latest run's.

The HTML is one file that needs no network. With --transcripts N it has the transcripts of
up to N failed episodes of each model.`,
		Example: `  assay report
  assay report flawed-workflows --format html --output report.html
  assay report --format html --transcripts 20 --output report.html
  assay report --json | jq '.warnings[].title'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.check(); err != nil {
				return err
			}
			db, err := p.openToRead(cmd.Context(), f.store)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			e, err := latestExperiment(cmd.Context(), db, args)
			if errors.Is(err, errNoExperiment) {
				return writeOthers(cmd.Context(), p, db, f, err)
			}
			if err != nil {
				return err
			}
			return writeReport(cmd.Context(), p, db, e, f)
		},
	}
	f.flags(cmd, "transcripts of episodes that did not fully succeed, at most `N` of each model")
	cmd.ValidArgsFunction = namesIn(&f.store, experimentNames)
	return cmd
}

var errNoExperiment = errors.New("the store holds no experiment yet\nhint: `assay run` runs one")

// writeOthers reports what other systems found, for a store that holds nothing else, or
// returns empty.
func writeOthers(ctx context.Context, p *process, db *store.DB, f documentFlags, empty error) error {
	others, err := othersIn(ctx, db)
	switch {
	case err != nil:
		return err
	case len(others) == 0:
		return empty
	}
	return f.write(p, others, func() (*document.Document, error) { return exhibit.Others(others), nil })
}

// latestExperiment returns the named experiment, or that of the latest run.
func latestExperiment(ctx context.Context, db *store.DB, args []string) (e store.Experiment, err error) {
	all, err := chooseExperiments(ctx, db, args)
	if err != nil {
		return e, err
	}
	if len(all) == 0 {
		return e, errNoExperiment
	}
	return slices.MaxFunc(all, func(a, b store.Experiment) int { return a.UpdatedAt.Compare(b.UpdatedAt) }), nil
}

func writeReport(ctx context.Context, p *process, db *store.DB, e store.Experiment, f documentFlags) (err error) {
	j, err := job.Reopen(ctx, e)
	if err != nil {
		return fmt.Errorf("experiment %s cannot be planned again: %w", e.Name, err)
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	a, snapshot, err := analyze(ctx, db, j, e)
	if err != nil {
		return err
	}
	return f.write(p, a, func() (*document.Document, error) {
		d := exhibit.Report(a)
		if f.transcripts == 0 {
			return d, nil
		}
		return d, addFailures(ctx, db, j, d, snapshot, f.transcripts)
	})
}

// analyze makes the figures of an experiment's report, and names the state of the
// store that they are of.
func analyze(ctx context.Context, db *store.DB, j *job.Job, e store.Experiment) (*report.Analysis, string, error) {
	snapshot, err := db.Snapshot(ctx)
	if errors.Is(err, store.ErrDamaged) {
		snapshot, err = "", nil
	}
	if err != nil {
		return nil, "", err
	}
	runs, err := db.Runs(ctx, e.Name)
	if err != nil {
		return nil, "", err
	}
	b := report.Beside{Unread: db.Skipped}
	for _, r := range runs {
		lanes, err := lanesOf(r)
		if err != nil {
			return nil, "", err
		}
		b.Lanes = append(b.Lanes, lanes...)
	}
	b.Lanes = b.Lanes[max(0, len(b.Lanes)-mostLanes):]
	if b.Others, err = othersIn(ctx, db); err != nil {
		return nil, "", err
	}
	if err := givenUp(ctx, j, db, &b); err != nil {
		return nil, "", err
	}
	unplanned, err := j.Unplanned(ctx, db, e)
	if err != nil {
		return nil, "", err
	}
	for _, name := range slices.Sorted(maps.Keys(unplanned)) {
		b.Unplanned = append(b.Unplanned, name+": "+counted(unplanned[name], "attempt"))
	}
	if b.Prompts, err = promptsOf(ctx, j); err != nil {
		return nil, "", err
	}
	b.Facts = factsOf(j, e, runs, snapshot)
	a, err := designOf(j).Analyze(j.Experiment.Name, j.Trials(), db.Verdicts(ctx, store.Filter{Snapshot: snapshot}), b)
	return a, snapshot, err
}

// givenUp adds the trials that stop rules skip.
func givenUp(ctx context.Context, j *job.Job, db *store.DB, b *report.Beside) error {
	skipped, stops, err := j.StoppedEarly(ctx, db)
	if err != nil {
		return err
	}
	b.Skipped = skipped
	for _, s := range stops {
		b.Stopped = append(b.Stopped, fmt.Sprintf("%s; %s skipped", s, counted(s.Skipped, "trial")))
	}
	return nil
}

// mostLanes of the latest runs are shown.
const mostLanes = 60

// lanesOf reads how full a run's lanes were from its summary.
func lanesOf(r store.Run) ([]report.Lane, error) {
	var summary struct {
		Lanes []report.Lane `json:"lanes"`
	}
	if len(r.Summary) == 0 {
		return nil, nil
	}
	if err := json.Unmarshal(r.Summary, &summary); err != nil {
		return nil, fmt.Errorf("summary of run %s: %w", r.ID, err)
	}
	for i := range summary.Lanes {
		summary.Lanes[i].Run = r.ID
	}
	return summary.Lanes, nil
}

// othersIn returns the aggregates of other systems that the store holds, pooled over
// task types: counts are added, and rates follow from them.
func othersIn(ctx context.Context, db *store.DB) ([]report.Other, error) {
	imports, err := db.Imports(ctx)
	if err != nil {
		return nil, err
	}
	var all []report.Other
	for _, i := range imports {
		if i.Kind != legacyKind {
			continue
		}
		var d legacy.Database
		if err := json.Unmarshal(i.Body, &d); err != nil {
			return nil, fmt.Errorf("import %s: %w", i.Name, err)
		}
		all = append(all, otherOf(i, &d))
	}
	return all, nil
}

func otherOf(i store.Import, d *legacy.Database) report.Other {
	type key struct {
		model, variant, difficulty string
		reliability                float64
	}
	type sum struct {
		legacy.Counts
		corrected bool
	}
	sums := make(map[key]*sum)
	var order []key
	left := 0
	for n := range d.Aggregates {
		a := &d.Aggregates[n]
		counts, ok := a.Counts()
		if !ok {
			left++
			continue
		}
		k := key{a.Model, a.Variant, a.Difficulty, a.Reliability}
		if sums[k] == nil {
			sums[k] = new(sum)
			order = append(order, k)
		}
		sums[k].Add(counts)
		sums[k].corrected = sums[k].corrected || a.Corrected != nil
	}
	o := report.Other{
		Name:   i.Name,
		Source: fmt.Sprintf("A %s, last updated %s", i.Kind, d.LastUpdated),
		Note: fmt.Sprintf("Counts are pooled over task types. %d of %d aggregates are not usable and left out; %d contradictions were found in the file (SHA-256 %s…).",
			left, len(d.Aggregates), len(d.Findings), i.SHA256[:12]),
	}
	for _, k := range order {
		s := sums[k]
		o.Rows = append(o.Rows, report.OtherRow{
			Model: k.model, Variant: k.variant, Difficulty: k.difficulty, Reliability: k.reliability,
			N: s.Total, Full: s.Full, Partial: s.Partial, FullRate: float64(s.Full) / float64(max(1, s.Total)),
			Interval: stat.Wilson(s.Full, s.Total, stat.Z95), Corrected: s.corrected,
		})
	}
	return o
}

// facts are what it takes to do the same again.
func factsOf(j *job.Job, e store.Experiment, runs []store.Run, snapshot string) []report.Fact {
	x := j.Experiment
	programs := make(map[string]bool)
	for _, r := range runs {
		programs[r.Program] = true
	}
	meta := j.Library.Meta()
	library := fmt.Sprintf("%s, digest %s", meta.Name, meta.Digest)
	if e.Library.Digest != "" && e.Library.Digest != meta.Digest {
		library += fmt.Sprintf("; the latest run used %s", e.Library.Digest)
	}
	spec := sha256.Sum256(e.Spec)
	facts := []report.Fact{
		{Name: "experiment", Value: x.Name},
		{Name: "specification", Value: string(e.Spec)},
		{Name: "its SHA-256", Value: hex.EncodeToString(spec[:])},
		{Name: "snapshot", Value: snapshot},
		{Name: "seed", Value: fmt.Sprint(x.Seed)},
		{Name: "world", Value: x.World},
		{Name: "library", Value: library},
		{Name: "protocol", Value: x.Protocol},
		{Name: "tools", Value: x.Tools},
		{Name: "limits", Value: fmt.Sprintf("%d turns, %s a request, %s a trial", x.Limits.Turns, time.Duration(x.Limits.Request), time.Duration(x.Limits.Trial))},
		{Name: "templates", Value: episode.TemplatesHash + " today"},
		{Name: "programs", Value: strings.Join(slices.Sorted(maps.Keys(programs)), ", ")},
		{Name: "runs", Value: fmt.Sprint(len(runs))},
	}
	if len(runs) > 0 {
		facts = append(facts, report.Fact{Name: "ran", Value: fmt.Sprintf("%s to %s", runs[0].StartedAt.Format(time.RFC3339), lastEnd(runs).Format(time.RFC3339))})
	}
	return append(facts, report.Fact{Name: "Assay", Value: version()}, report.Fact{Name: "reported", Value: time.Now().UTC().Format(time.RFC3339)})
}

func lastEnd(runs []store.Run) time.Time {
	last := runs[len(runs)-1].StartedAt
	for _, r := range runs {
		if r.FinishedAt.After(last) {
			last = r.FinishedAt
		}
	}
	return last
}

// sampled tasks of each type tell whether variants say the same to models.
const sampled = 4

// prompts returns a digest of what each variant and severity says at first, over a
// sample of tasks.
func promptsOf(ctx context.Context, j *job.Job) (map[string]string, error) {
	digests := make(map[string][]string)
	seen := make(map[strand]map[assay.TaskID]bool)
	for _, m := range j.Experiment.Models { // which need not have the same variants
		for t := range sampleOf(j, m, seen) {
			task, err := j.Library.Task(ctx, t.Task, t.Difficulty)
			if err != nil {
				return nil, err
			}
			messages, err := episode.Opening(j.Library.Catalog(), &t, &task)
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(messages)
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(text)
			key := report.PromptKey(t.Variant, t.Severity)
			digests[key] = append(digests[key], string(t.Task)+" "+hex.EncodeToString(sum[:8]))
		}
	}
	prompts := make(map[string]string)
	for key, all := range digests {
		slices.Sort(all)
		sum := sha256.Sum256([]byte(strings.Join(all, "\n")))
		prompts[key] = hex.EncodeToString(sum[:8])
	}
	return prompts, nil
}

// A strand is what a sample has some tasks of.
type strand struct{ variant, severity, taskType string }

// sample yields a model's first trials of each strand that no earlier model had.
func sampleOf(j *job.Job, model string, seen map[strand]map[assay.TaskID]bool) iter.Seq[assay.Trial] {
	mine := make(map[strand]map[assay.TaskID]bool)
	for c, n := range j.Plan.Cells(model) {
		if s := (strand{c.Variant, c.Severity, c.TaskType}); n > 0 && seen[s] == nil {
			mine[s] = make(map[assay.TaskID]bool)
		}
	}
	maps.Copy(seen, mine)
	return func(yield func(assay.Trial) bool) {
		open, looked := len(mine), 0
		for t := range j.Plan.Trials(model) {
			// Cells take turns, so that the first trials are of all of them.
			if looked++; open == 0 || looked > 40*len(mine)*sampled {
				return
			}
			tasks := mine[strand{t.Variant, t.Severity, t.TaskType}]
			if tasks == nil || len(tasks) == sampled || tasks[t.Task] {
				continue
			}
			if tasks[t.Task] = true; len(tasks) == sampled {
				open--
			}
			if !yield(t) {
				return
			}
		}
	}
}

// addFailures adds the transcripts of episodes that did not fully succeed, and a
// table that leads to them.
func addFailures(ctx context.Context, db *store.DB, j *job.Job, d *document.Document, snapshot string, most int) error {
	mine := make(map[assay.TrialID]bool)
	for t := range j.Trials() {
		mine[t.ID] = true
	}
	chosen := make(map[string]int)
	table := &document.Table{Columns: []document.Column{
		{Head: "trial", Names: true},
		{Head: "model", Names: true},
		{Head: "variant", Names: true},
		{Head: "task type", Names: true},
		{Head: "reliability"},
		{Head: "level", Names: true},
		{Head: "why", Names: true},
		{Head: "turns"},
	}}
	for a, err := range db.Attempts(ctx, store.Filter{Snapshot: snapshot, OnlySettled: true}) {
		if err != nil {
			return err
		}
		if a.Level == assay.FullSuccess || !mine[a.ID] || chosen[a.Model] == most {
			continue
		}
		tr, err := db.Transcript(ctx, a.ID, a.Number)
		if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
			continue
		}
		if err != nil {
			return err
		}
		chosen[a.Model]++
		e := episodeOf(&a, &tr)
		d.Episodes = append(d.Episodes, e)
		turns := float64(a.Outcome.Turns)
		table.Rows = append(table.Rows, []document.Cell{
			{Text: string(a.ID[:8]), Episode: e.ID},
			{Text: a.Model},
			{Text: a.Variant},
			{Text: a.TaskType},
			{Text: assay.FormatReliability(a.Reliability), Value: &a.Reliability},
			{Text: string(a.Level)},
			{Text: a.ErrorCategory},
			{Text: fmt.Sprint(a.Outcome.Turns), Value: &turns},
		})
	}
	if len(table.Rows) > 0 {
		d.Sections = append(d.Sections, document.Section{
			ID: "failures", Title: "Failed episodes", Table: table,
			Lead: fmt.Sprintf("The first %d of each model, with their transcripts.", most),
		})
	}
	return nil
}

// episodeOf lays a transcript out.
func episodeOf(a *assay.Attempt, tr *assay.Transcript) document.Episode {
	e := document.Episode{
		ID:    fmt.Sprintf("trial-%s-%d", a.ID, a.Number),
		Title: fmt.Sprintf("%s: %s, %s", a.ID[:8], a.Model, a.Variant),
		Lead: fmt.Sprintf("%s, %s, reliability %s, task %s. It ended in %s (%s) after %d turns and %d calls.", a.TaskType, a.Difficulty,
			assay.FormatReliability(a.Reliability), a.Task, a.Level, a.ErrorCategory, a.Outcome.Turns, a.ToolCalls),
	}
	turn := 0
	for i, m := range tr.Messages {
		if m.Role == assay.Assistant {
			turn++
		}
		var text []string
		if m.Reasoning != "" {
			text = append(text, "(reasoning) "+m.Reasoning)
		}
		if m.Content != "" {
			text = append(text, m.Content)
		}
		for _, c := range m.Calls {
			text = append(text, fmt.Sprintf("→ %s %s", c.Name, c.Arguments))
		}
		e.Steps = append(e.Steps, document.Step{Who: string(m.Role), Text: strings.Join(text, "\n")})
		if i+1 == len(tr.Messages) || tr.Messages[i+1].Role == assay.Assistant {
			for _, c := range tr.Calls {
				if c.Turn == turn {
					e.Steps = append(e.Steps, document.Step{Text: decided(c)})
				}
			}
		}
	}
	return e
}

// decided says how a call was decided.
func decided(c assay.CallRecord) string {
	switch {
	case c.Mistake:
		return fmt.Sprintf("%s: a mistake, %s", c.Tool, c.Code)
	case c.OK:
		return fmt.Sprintf("%s: chance %.3f, luck %.3f: worked", c.Tool, c.Chance, c.Luck)
	}
	return fmt.Sprintf("%s: chance %.3f, luck %.3f: failed, %s", c.Tool, c.Chance, c.Luck, c.Code)
}
