package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/result/reading"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

func newShow(p *process) *cobra.Command {
	var path string
	var number int
	var asJSON, prompt bool
	cmd := &cobra.Command{
		Use:   "show [TRIAL]",
		Short: "Show a trial's transcript, or the prompt templates",
		Long: `Show prints what happened in a trial: the conversation, each tool call with its
chance and its luck, the verdict, the plan compared with the path that the model
took, and how the score came about, rule by rule. TRIAL is the beginning of a
trial's ID.

With --prompt it prints only the messages with which the trial began. With --prompt and no
trial, it prints the templates of everything that episodes say to models, with their hash.`,
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
				return usageError("no trial is named\n" +
					"hint: `assay export` lists trials; `assay show --prompt` prints the templates")
			}
			ctx := cmd.Context()
			db, err := p.openForOne(ctx, path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			t, err := reading.FindTrial(ctx, db, args[0], number)
			if err != nil {
				return err
			}
			if prompt && t.Transcript == nil {
				return errors.New(t.NoTranscript)
			}
			if prompt {
				return writeOpening(p.out, t.Opening(), asJSON)
			}

			explanation, unexplained := t.Explain(ctx, db)
			if asJSON {
				return json.NewEncoder(p.out).Encode(struct {
					Attempt     assay.Attempt      `json:"attempt"`
					Transcript  *assay.Transcript  `json:"transcript"`
					Explanation *score.Explanation `json:"explanation"`
				}{t.Attempt, t.Transcript, explanation})
			}
			opinions, err := t.Opinions(ctx, db)
			if err != nil {
				return err
			}
			var w bytes.Buffer
			writeTrial(&w, t, opinions)
			writeExplanation(&w, t, explanation, unexplained)
			_, err = p.out.Write(w.Bytes())
			return err
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().IntVar(&number, "attempt", 0,
		"the attempt's number; 0 is the one that settled the trial, or else the latest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.Flags().BoolVar(&prompt, "prompt", false,
		"print the first messages to the model, or without a trial the templates")
	return cmd
}

func writeExplanation(w *bytes.Buffer, t *reading.Trial, e *score.Explanation, unexplained error) {
	switch {
	case unexplained != nil:
		fmt.Fprintf(w, "\nThe score cannot be explained: %v\n", unexplained)
	case e != nil:
		if e.Outcome.ScoreVersion != t.ScoreVersion {
			fmt.Fprintf(w,
				"\nThe explanation follows the rules %s; the outcome was judged by the rules %s.\n",
				e.Outcome.ScoreVersion, t.ScoreVersion)
		}
		fmt.Fprintf(w, "\n%s\n", strings.Join(e.Text(), "\n"))
	}
}

// writeTemplates prints the templates of everything that episodes say to models.
func writeTemplates(out io.Writer, asJSON bool) error {
	templates := episode.Templates()
	if asJSON {
		files := make(map[string]string)
		for _, t := range templates {
			files[t.Name] = t.Text
		}
		return json.NewEncoder(out).Encode(map[string]any{
			"hash":      episode.TemplatesHash,
			"templates": files,
		})
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
func writeOpening(out io.Writer, messages []assay.Message, asJSON bool) error {
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

func writeTrial(w *bytes.Buffer, t *reading.Trial, opinions []store.Classification) {
	fmt.Fprintf(w, "trial %s, attempt %d of %d\n", t.ID, t.Number, t.Attempts)
	variant := t.Variant
	if t.Severity != "" {
		variant += " (" + t.Severity + ")"
	}
	fmt.Fprintf(w, "  %s, %s, %s %s, reliability %s, task %s, repeat %d\n",
		t.Model, variant, t.Difficulty, t.TaskType, assay.FormatReliability(t.Reliability), t.Task,
		t.Repeat)
	fmt.Fprintf(w, "  world %s, protocol %s, tools %s, seed %d, templates %s, experiment %s\n",
		t.World, t.Protocol, t.Tools, t.Seed, t.Templates, t.Experiment)
	working := time.Duration(t.WorkingMS) * time.Millisecond
	queued := time.Duration(t.QueuedMS) * time.Millisecond
	fmt.Fprintf(w, "  served by %s on %s, %d requests, %d + %d tokens, %s working, %s queued\n",
		t.ServedModel, t.Lane, t.Requests, t.InputTokens, t.OutputTokens, working, queued)
	if t.Transcript != nil {
		writeTranscript(w, t.Transcript)
	} else {
		fmt.Fprintf(w, "  %s\n", t.NoTranscript)
	}
	w.WriteString("\n")
	writeVerdict(w, &t.Attempt)
	for _, o := range opinions {
		fmt.Fprintf(w, "  %s says %s, with confidence %.2f: %s\n",
			o.Model, o.Category, o.Confidence, o.Reason)
	}
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
		if i+1 < len(tr.Messages) && tr.Messages[i+1].Role != assay.Assistant {
			continue
		}
		for _, c := range tr.Calls {
			if c.Turn == turn {
				fmt.Fprintf(w, "    (%s)\n", reading.CallText(c))
			}
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

func writeVerdict(w *bytes.Buffer, a *assay.Attempt) {
	if !a.Settles() {
		fmt.Fprintf(w, "fault: %s\n  The model did not cause it; the trial is still pending.\n",
			a.FaultDetail)
		return
	}
	fmt.Fprintf(w, "%s, ended by %s after %d turns and %d calls\n",
		a.Level, a.Ended, a.Outcome.Turns, a.ToolCalls)
	fmt.Fprintf(w, "  required   %s\n", strings.Join(a.RequiredTools, ", "))
	fmt.Fprintf(w, "  succeeded  %s\n", strings.Join(a.ExecutedTools, ", "))
	fmt.Fprintf(w, "  coverage %.2f, order correct %v, corrections %d",
		a.Coverage, a.OrderCorrect, a.Assisted)
	if a.ErrorCategory != "" {
		fmt.Fprintf(w, ", error category %s", a.ErrorCategory)
	}
	fmt.Fprintf(w, " (rules %s)\n", a.ScoreVersion)
	if a.ScoreVersion != "pilot-1" { // these rules measured only the verdict
		writeMeasures(w, a)
	}
}

// writeMeasures prints the measures that don't decide the verdict.
func writeMeasures(w *bytes.Buffer, a *assay.Attempt) {
	fmt.Fprintf(w,
		"  calls: %d mistakes, %d failed by chance (%d overcome), %d wasted; efficiency %.2f\n",
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
		fmt.Fprintf(w, "  the original's three verdicts: executor %s, paper %s, batch %s\n",
			s.Executor, s.Paper, s.Batch)
	}
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
