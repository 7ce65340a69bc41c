package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/task/score"
)

func newShow(p *process) *cobra.Command {
	var path string
	var number int
	var asJSON, prompt, reveal bool
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
			db, err := p.openToRead(ctx, path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			t, err := query.FindTrial(ctx, db, args[0], number, reveal)
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
				attempt, err := export.JSON(t.Attempt)
				if err != nil {
					return err
				}
				return json.NewEncoder(p.out).Encode(struct {
					Attempt     json.RawMessage    `json:"attempt"`
					Transcript  *assay.Transcript  `json:"transcript"`
					Explanation *score.Explanation `json:"explanation"`
				}{attempt, t.Transcript, explanation})
			}
			opinions, err := t.Opinions(ctx, db)
			if err != nil {
				return err
			}
			_, err = p.out.Write(t.Text(opinions, explanation, unexplained))
			return err
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().IntVar(&number, "attempt", 0,
		"the attempt's number; 0 is the one that settled the trial, or else the latest")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	revealFlag(cmd, &reveal)
	cmd.Flags().BoolVar(&prompt, "prompt", false,
		"print the first messages to the model, or without a trial the templates")
	return cmd
}

// writeTemplates prints all templates of messages to models.
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
