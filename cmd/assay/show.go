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
	"github.com/assay-eval/assay/internal/store"
)

func newShow(p *process) *cobra.Command {
	var path string
	var number int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "show TRIAL",
		Short: "Show a trial's transcript",
		Long: `Show prints what happened in a trial: the conversation, each call of a tool with
its chance and its luck, and the verdict. TRIAL is the beginning of a trial's ID.`,
		Example: `  assay show 3f2a9c
  assay show 3f2a9c --attempt 1
  assay show 3f2a9c --json | jq .transcript.calls`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			db, err := store.OpenReadOnly(cmd.Context(), path)
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
			tr, err := db.Transcript(cmd.Context(), id, a.Number)
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(p.out).Encode(struct {
					Attempt    assay.Attempt    `json:"attempt"`
					Transcript assay.Transcript `json:"transcript"`
				}{a, tr})
			}
			return writeTrial(p.out, attempts, a, tr)
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().IntVar(&number, "attempt", 0, "the attempt's number; 0 is the one that settled the trial, or the latest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
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

func writeTrial(out io.Writer, attempts []assay.Attempt, a assay.Attempt, tr assay.Transcript) error {
	var w bytes.Buffer
	fmt.Fprintf(&w, "trial %s, attempt %d of %d\n", a.ID, a.Number, len(attempts))
	fmt.Fprintf(&w, "  %s, %s, %s %s, reliability %s, task %s, repeat %d\n", a.Model, a.Variant, a.Difficulty, a.TaskType,
		assay.FormatReliability(a.Reliability), a.Task, a.Repeat)
	fmt.Fprintf(&w, "  world %s, tools %s, seed %d, templates %s, experiment %s\n", a.World, a.Tools, a.Seed, a.Templates, a.Experiment)
	fmt.Fprintf(&w, "  served by %s on %s, %d requests, %d + %d tokens, %s working, %s queued\n", a.ServedModel, a.Lane, a.Requests,
		a.InputTokens, a.OutputTokens, time.Duration(a.WorkingMS)*time.Millisecond, time.Duration(a.QueuedMS)*time.Millisecond)
	calls := tr.Calls
	turn := 0
	for _, m := range tr.Messages {
		if m.Role == assay.Assistant {
			turn++
			fmt.Fprintf(&w, "\n── turn %d ──\n", turn)
		} else if m.Role != assay.ToolRole {
			fmt.Fprintf(&w, "\n── %s ──\n", m.Role)
		}
		writeMessage(&w, m)
		if m.Role == assay.ToolRole && len(calls) > 0 && executes(m.Content, calls[0].Tool) {
			c := calls[0]
			calls = calls[1:]
			verdict := "failed"
			if c.OK {
				verdict = "worked"
			}
			fmt.Fprintf(&w, "    (chance %.3f, luck %.3f: %s)\n", c.Chance, c.Luck, verdict)
		}
	}
	w.WriteString("\n")
	writeVerdict(&w, a)
	_, err := out.Write(w.Bytes())
	return err
}

// executes reports whether a tool message is the result of an executed call.
func executes(content, tool string) bool {
	var r struct {
		Tool    json.RawMessage
		Success *bool
	}
	return json.Unmarshal([]byte(content), &r) == nil && r.Success != nil && string(r.Tool) == fmt.Sprintf("%q", tool)
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
		fmt.Fprintf(w, "fault: %s\n  It is not the model's doing; the trial stays owed.\n", a.FaultDetail)
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
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n"+by)
}
