package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/store"
)

// Document returns the report as a document. It contains the transcripts of up to the given number
// of episodes per model that did not fully succeed.
func (r *Report) Document(ctx context.Context, transcripts int) (*document.Document, error) {
	d := sections.Report(r.Analysis)
	if transcripts == 0 {
		return d, nil
	}
	return d, r.addFailures(ctx, d, transcripts)
}

// addFailures adds the transcripts of episodes that did not fully succeed, at most a given number
// per model, and a table that links to them.
func (r *Report) addFailures(ctx context.Context, d *document.Document, most int) error {
	v, err := readVeil(ctx, r.db, r.experiment.Reveal)
	if err != nil {
		return err
	}
	counts := r.experiment.counts()
	shown := make(map[string]int) // by model
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
	for a, err := range r.db.Attempts(ctx, store.Filter{Snapshot: r.snapshot, OnlySettled: true}) {
		if err != nil {
			return err
		}
		if a.Level == assay.FullSuccess || shown[a.Model] == most || !counts(&a) {
			continue
		}
		e, err := episodeOf(ctx, r.db, v, &a)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		shown[a.Model]++
		d.Episodes = append(d.Episodes, *e)
		table.Rows = append(table.Rows, failureRow(&a, e.ID))
	}

	if len(table.Rows) > 0 {
		d.Sections = append(d.Sections, document.Section{
			ID:    "failures",
			Title: "Failed episodes",
			Lead:  fmt.Sprintf("The first %d of each model, with their transcripts.", most),
			Table: table,
		})
	}
	return nil
}

func failureRow(a *assay.Attempt, episode string) []document.Cell {
	turns := float64(a.Outcome.Turns)
	return []document.Cell{
		{Text: string(a.ID[:8]), Episode: episode},
		{Text: a.Model},
		{Text: a.Variant},
		{Text: a.TaskType},
		{Text: assay.FormatReliability(a.Reliability), Value: &a.Reliability},
		{Text: string(a.Level)},
		{Text: a.ErrorCategory},
		{Text: fmt.Sprint(a.Outcome.Turns), Value: &turns},
	}
}

// episodeOf returns the transcript of an attempt, or nil if it was not kept or is damaged.
func episodeOf(ctx context.Context, db *store.DB, v *veil, a *assay.Attempt) (*document.Episode, error) {
	tr, err := db.Transcript(ctx, a.ID, a.Number)
	switch {
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return new(Episode(a, v.transcript(a.Run, &tr))), nil
}

// Episode returns a transcript as a document shows it.
func Episode(a *assay.Attempt, tr *assay.Transcript) document.Episode {
	e := document.Episode{
		ID:    fmt.Sprintf("trial-%s-%d", a.ID, a.Number),
		Title: fmt.Sprintf("%s: %s, %s", a.ID[:8], a.Model, a.Variant),
		Lead: fmt.Sprintf("%s, %s, reliability %s, task %s. "+
			"It ended in %s (%s) after %d turns and %d calls.",
			a.TaskType, a.Difficulty, assay.FormatReliability(a.Reliability), a.Task,
			a.Level, a.ErrorCategory, a.Outcome.Turns, a.ToolCalls),
	}
	for _, turn := range turnsOf(tr) {
		if turn.Number > 0 {
			e.Steps = append(e.Steps, document.Step{Who: string(assay.Assistant), Text: turn.text()})
		}
		for _, a := range turn.Answers {
			e.Steps = append(e.Steps, document.Step(a))
		}
		for _, c := range turn.Calls {
			e.Steps = append(e.Steps, document.Step{Text: CallText(c)})
		}
	}
	return e
}

// text is the reply, a line for each part.
func (t Turn) text() string {
	var lines []string
	for _, part := range []string{t.Thinking, t.Said} {
		if part != "" {
			lines = append(lines, part)
		}
	}
	for _, call := range t.Asked {
		lines = append(lines, "→ "+call)
	}
	return strings.Join(lines, "\n")
}

// CallText explains whether a call worked, and the reason.
func CallText(c assay.CallRecord) string {
	if asked := c.Asked; asked != "" {
		c.Asked = ""
		return fmt.Sprintf("%s; the framework changed it: the tool server got %s, the model asked for %s",
			CallText(c), strings.TrimSpace(c.Tool+" "+cmp.Or(c.Written, c.Arguments)), asked)
	}
	if c.Written != "" {
		c.Written = ""
		return CallText(c) + "; in the tool's own terms " + c.Arguments
	}
	switch {
	case c.Mistake:
		return fmt.Sprintf("%s: a mistake, %s", c.Tool, c.Code)
	case c.Met() == "":
		return fmt.Sprintf("%s: chance %.3f, luck %.3f: worked", c.Tool, c.Chance, c.Luck)
	}
	text := fmt.Sprintf("%s: chance %.3f, luck %.3f: failed", c.Tool, c.Chance, c.Luck)
	if c.Fault != "" {
		text = fmt.Sprintf("%s: chance %.3f, luck %.3f: fault %s", c.Tool, c.Chance, c.Luck, c.Fault)
	}
	if c.Code != "" {
		text += ", " + c.Code
	}
	return text
}
