package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

func newShow(p *process) *cobra.Command {
	var path string
	var number int
	var asJSON, prompt bool
	cmd := &cobra.Command{
		Use:   "show [TRIAL]",
		Short: "Show a trial's transcript, or what models are told",
		Long: `Show prints what happened in a trial: the conversation, each call of a tool with
its chance and its luck, the verdict, the plan against the path that the model took, and
how the score came about, rule by rule. TRIAL is the beginning of a trial's ID.

With --prompt it prints only the messages that the trial began with, and without
a trial the templates of everything that episodes say to models, with their hash.`,
		Example: `  assay show 3f2a9c
  assay show 3f2a9c --attempt 1
  assay show 3f2a9c --json | jq .transcript.calls
  assay show 3f2a9c --prompt
  assay show --prompt`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			switch {
			case len(args) == 0 && prompt:
				return writeTemplates(p.out, asJSON)
			case len(args) == 0:
				return usageError("say which trial to show\nhint: `assay status` and `assay export` name trials; `assay show --prompt` prints the templates")
			}
			db, err := p.openForOne(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			id, err := db.FindTrial(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			var attempts []assay.Attempt
			for a, err := range db.Attempts(cmd.Context(), store.Filter{Trial: id}) {
				if err != nil {
					return err
				}
				attempts = append(attempts, a)
			}
			a, err := chooseAttempt(attempts, number)
			if err != nil {
				return err
			}
			tr, gone, err := transcriptOf(cmd.Context(), db, &a)
			if err != nil {
				return err
			}
			if prompt && tr == nil {
				return errors.New(gone)
			}
			if prompt {
				return writeOpening(p.out, *tr, asJSON)
			}
			explained, unexplained := explain(cmd.Context(), db, &a, tr)
			if asJSON {
				return json.NewEncoder(p.out).Encode(struct {
					Attempt     assay.Attempt      `json:"attempt"`
					Transcript  *assay.Transcript  `json:"transcript"`
					Explanation *score.Explanation `json:"explanation"`
				}{a, tr, explained})
			}
			opinions, err := opinionsOn(cmd.Context(), db, a)
			if err != nil {
				return err
			}
			if err := writeTrial(p.out, attempts, a, tr, gone, opinions); err != nil {
				return err
			}
			return writeExplanation(p.out, &a, explained, unexplained)
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().IntVar(&number, "attempt", 0, "the attempt's number; 0 is the one that settled the trial, or the latest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&prompt, "prompt", false, "print what the model was told at first, or without a trial the templates")
	return cmd
}

// transcriptOf returns the transcript of an attempt, or nil and why there is none.
func transcriptOf(ctx context.Context, db *store.DB, a *assay.Attempt) (*assay.Transcript, string, error) {
	tr, err := db.Transcript(ctx, a.ID, a.Number)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, "there is no transcript: it was deleted, or never saved", nil
	case errors.Is(err, store.ErrDamaged):
		return nil, "the transcript is damaged: \"assay verify\" says more", nil
	case err != nil:
		return nil, "", err
	}
	return &tr, "", nil
}

// explain tells how an outcome came about, or why that cannot be told. A fault, and
// what has no transcript, has nothing to explain.
func explain(ctx context.Context, db *store.DB, a *assay.Attempt, tr *assay.Transcript) (*score.Explanation, error) {
	if tr == nil || !a.Settles() || score.Version(a.World) == "" {
		return nil, nil
	}
	tasks := newTaskBook(db)
	task, judge, err := tasks.task(ctx, a)
	if err == nil {
		e := judge.Explain(&a.Trial, task, tr)
		return &e, tasks.close()
	}
	return nil, errors.Join(err, tasks.close())
}

func writeExplanation(out io.Writer, a *assay.Attempt, e *score.Explanation, unexplained error) error {
	var w bytes.Buffer
	switch {
	case unexplained != nil:
		fmt.Fprintf(&w, "\nHow the score came about cannot be told: %v\n", unexplained)
	case e != nil:
		if e.Outcome.ScoreVersion != a.ScoreVersion {
			fmt.Fprintf(&w, "\nWhat follows is by the rules %s; those that judged it were %s.\n", e.Outcome.ScoreVersion, a.ScoreVersion)
		}
		fmt.Fprintf(&w, "\n%s\n", strings.Join(e.Text(), "\n"))
	}
	_, err := out.Write(w.Bytes())
	return err
}

// writeTemplates prints what episodes say to models.
func writeTemplates(out io.Writer, asJSON bool) error {
	templates := episode.Templates()
	if asJSON {
		files := make(map[string]string)
		for _, t := range templates {
			files[t.Name] = t.Text
		}
		return json.NewEncoder(out).Encode(map[string]any{"hash": episode.TemplatesHash, "templates": files})
	}
	var w bytes.Buffer
	fmt.Fprintf(&w, "templates %s\n", episode.TemplatesHash)
	for _, t := range templates {
		fmt.Fprintf(&w, "\n── %s ──\n%s", t.Name, t.Text)
	}
	_, err := out.Write(w.Bytes())
	return err
}

// writeOpening prints the messages with which a trial began.
func writeOpening(out io.Writer, tr assay.Transcript, asJSON bool) error {
	messages := tr.Messages
	for i, m := range messages {
		if m.Role == assay.Assistant {
			messages = messages[:i]
			break
		}
	}
	if asJSON {
		return json.NewEncoder(out).Encode(messages)
	}
	var w bytes.Buffer
	for i, m := range messages {
		if i > 0 {
			w.WriteString("\n")
		}
		fmt.Fprintf(&w, "── %s ──\n%s\n", m.Role, m.Content)
	}
	_, err := out.Write(w.Bytes())
	return err
}

func chooseAttempt(attempts []assay.Attempt, number int) (assay.Attempt, error) {
	if len(attempts) == 0 {
		return assay.Attempt{}, errors.New("the trial has no attempt yet")
	}
	best := attempts[len(attempts)-1]
	for _, a := range attempts {
		if a.Number == number {
			return a, nil
		}
		if a.Settles() {
			best = a
		}
	}
	if number != 0 {
		return best, fmt.Errorf("trial %s has %d attempts, none with number %d", best.ID, len(attempts), number)
	}
	return best, nil
}

// writeTrial writes an attempt; gone says why it has no transcript.
func writeTrial(out io.Writer, attempts []assay.Attempt, a assay.Attempt, tr *assay.Transcript, gone string, opinions []store.Classification) error {
	var w bytes.Buffer
	fmt.Fprintf(&w, "trial %s, attempt %d of %d\n", a.ID, a.Number, len(attempts))
	variant := a.Variant
	if a.Severity != "" {
		variant += " (" + a.Severity + ")"
	}
	fmt.Fprintf(&w, "  %s, %s, %s %s, reliability %s, task %s, repeat %d\n", a.Model, variant, a.Difficulty, a.TaskType,
		assay.FormatReliability(a.Reliability), a.Task, a.Repeat)
	fmt.Fprintf(&w, "  world %s, protocol %s, tools %s, seed %d, templates %s, experiment %s\n", a.World, a.Protocol, a.Tools, a.Seed, a.Templates, a.Experiment)
	fmt.Fprintf(&w, "  served by %s on %s, %d requests, %d + %d tokens, %s working, %s queued\n", a.ServedModel, a.Lane, a.Requests,
		a.InputTokens, a.OutputTokens, time.Duration(a.WorkingMS)*time.Millisecond, time.Duration(a.QueuedMS)*time.Millisecond)
	if tr != nil {
		writeTranscript(&w, tr)
	} else {
		fmt.Fprintf(&w, "  %s\n", gone)
	}
	w.WriteString("\n")
	writeVerdict(&w, a)
	for _, o := range opinions {
		fmt.Fprintf(&w, "  %s says %s, with confidence %.2f: %s\n", o.Model, o.Category, o.Confidence, o.Reason)
	}
	_, err := out.Write(w.Bytes())
	return err
}

func writeTranscript(w *bytes.Buffer, tr *assay.Transcript) {
	turn := 0
	for i, m := range tr.Messages {
		if m.Role == assay.Assistant {
			turn++
			fmt.Fprintf(w, "\n── turn %d ──\n", turn)
		} else if m.Role != assay.ToolRole {
			fmt.Fprintf(w, "\n── %s ──\n", m.Role)
		}
		writeMessage(w, m)
		if i+1 == len(tr.Messages) || tr.Messages[i+1].Role == assay.Assistant {
			writeCalls(w, tr.Calls, turn)
		}
	}
}

// opinionsOn returns what models said of an attempt.
func opinionsOn(ctx context.Context, db *store.DB, a assay.Attempt) ([]store.Classification, error) {
	var opinions []store.Classification
	for o, err := range db.Classifications(ctx, store.Filter{Trial: a.ID}) {
		if err != nil {
			return nil, err
		}
		if o.Number == a.Number {
			opinions = append(opinions, o)
		}
	}
	return opinions, nil
}

// writeCalls says how the calls of a turn were decided.
func writeCalls(w *bytes.Buffer, calls []assay.CallRecord, turn int) {
	for _, c := range calls {
		if c.Turn == turn {
			fmt.Fprintf(w, "    (%s)\n", decided(c))
		}
	}
}

func writeMessage(w *bytes.Buffer, m assay.Message) {
	if m.Reasoning != "" {
		fmt.Fprintf(w, "%s\n", indent("(reasoning) "+m.Reasoning, "    "))
	}
	switch {
	case m.Role == assay.ToolRole:
		fmt.Fprintf(w, "%s\n", indent("← "+m.Content, "  "))
	case m.Content != "":
		fmt.Fprintf(w, "%s\n", indent(m.Content, "  "))
	}
	for _, c := range m.Calls {
		fmt.Fprintf(w, "  → %s %s\n", c.Name, c.Arguments)
	}
}

func writeVerdict(w *bytes.Buffer, a assay.Attempt) {
	if !a.Settles() {
		fmt.Fprintf(w, "fault: %s\n  It is not the model's doing; the trial stays pending.\n", a.FaultDetail)
		return
	}
	fmt.Fprintf(w, "%s, ended by %s after %d turns and %d calls\n", a.Level, a.Ended, a.Outcome.Turns, a.ToolCalls)
	fmt.Fprintf(w, "  required   %s\n", strings.Join(a.RequiredTools, ", "))
	fmt.Fprintf(w, "  succeeded  %s\n", strings.Join(a.ExecutedTools, ", "))
	fmt.Fprintf(w, "  coverage %.2f, order correct %v, corrections %d", a.Coverage, a.OrderCorrect, a.Assisted)
	if a.ErrorCategory != "" {
		fmt.Fprintf(w, ", error category %s", a.ErrorCategory)
	}
	fmt.Fprintf(w, " (rules %s)\n", a.ScoreVersion)
	if a.ScoreVersion != "pilot-1" { // which measured nothing more
		writeMeasures(w, a)
	}
}

// writeMeasures says how the episode went beside its verdict.
func writeMeasures(w *bytes.Buffer, a assay.Attempt) {
	fmt.Fprintf(w, "  calls: %d mistakes, %d failed by chance (%d overcome), %d wasted; efficiency %.2f\n",
		a.Mistakes, a.Failures, a.Recovered, a.Wasted, a.Efficiency)
	fmt.Fprintf(w, "  adherence to the task's plan %.2f", a.Adherence)
	if a.GivenAdherence != nil {
		fmt.Fprintf(w, ", to the plan it was given %.2f", *a.GivenAdherence)
	}
	if a.Outcome.Loop != "" {
		fmt.Fprintf(w, "; a loop (%s) began in turn %d", a.Outcome.Loop, a.LoopTurn)
	}
	fmt.Fprintf(w, "\n  the best policy succeeds with probability %.3f\n", a.Best)
	if s := a.Pilot; s != nil {
		fmt.Fprintf(w, "  the original's three verdicts: executor %s, paper %s, batch %s\n", s.Executor, s.Paper, s.Batch)
	}
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
