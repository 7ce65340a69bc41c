package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/task/conversation"
	"github.com/assay-eval/assay/internal/task/library"
)

// judgements are the verdicts on the conversations of a file.
type judgements struct {
	Library  library.Meta           `json:"library"`
	Program  string                 `json:"program"`
	Judged   int                    `json:"judged"`
	Levels   map[assay.Level]int    `json:"levels"`
	Withheld int                    `json:"undecided"`
	Verdicts []conversation.Verdict `json:"conversations"`
}

func newJudge(p *process) *cobra.Command {
	var name, output string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "judge FILE",
		Short: "Judge conversations that Assay did not conduct",
		Long: `Judge reads conversations that another program recorded, and judges them by the tasks of a
library of yours, with the verdicts and causes of trials. The format follows from the
content: trajectories (ATIF), OpenTelemetry spans as a collector writes them (OTLP/JSON),
logs of Inspect (.eval or .json), and OpenAI's messages as JSON lines. Each may be
compressed with gzip or zstd, and - is standard input.

The calls are carried out again with the tools of the library, because conversations lack
the state in the end. A verdict that needs more than a conversation has is withheld, and
the reason is stated.

Nothing is stored: these are no trials, and no report counts them. --output keeps the
verdicts as JSON lines with the fields of exports and their origin. The exit code is 3 if
a verdict was withheld.

Agree and draw compare judges that are models with people.`,
		Example: `  assay judge traces.jsonl --library tasks.yaml
  assay judge log.eval --library tasks.yaml --output judged.jsonl
  ssh prod cat traces.jsonl.gz | assay judge - --library tasks.yaml
  assay judge traces.jsonl --library tasks.yaml --json | jq '.conversations[] | select(.cause)'`,
		Args: cobra.ExactArgs(1),
		// Without it, a command with others below it completes only these.
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return nil, cobra.ShellCompDirectiveDefault
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if name == "" {
				return usageError("--library is missing\nhint: name your file of tasks: --library tasks.yaml")
			}
			if same(output, args[0]) || same(output, name) {
				return usageError("--output %s would replace what is read\nhint: name another file", output)
			}
			if err := atomicfile.Check(output); output != "" && err != nil {
				return err
			}
			lib, err := library.OpenNamed(cmd.Context(), name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, lib.Close()) }()
			found, err := readConversations(cmd, args[0])
			if err != nil {
				return err
			}
			all, err := judgeAll(cmd, lib, found)
			if err != nil {
				return err
			}
			if output != "" {
				if err := atomicfile.Write(p.out, output, all.write); err != nil {
					return err
				}
			}
			if output != "-" {
				err = p.either(asJSON, all, func() { writeJudgements(p, all) })
			}
			if err == nil && all.Withheld > 0 {
				err = &codedError{code: exitIncomplete}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&name, "library", "", "the `file` of tasks")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write a line of JSON for each conversation to a `file`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(newAgree(p), newDraw(p))
	return cmd
}

// readConversations reads those of a file, or of standard input.
func readConversations(cmd *cobra.Command, path string) ([]conversation.Conversation, error) {
	in, name := cmd.InOrStdin(), "standard input"
	if path != "-" {
		f, err := os.Open(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usageError("%s: file not found\nhint: name a file of conversations, or - for standard input", path)
		}
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in, name = f, filepath.ToSlash(path)
	}
	plain, err := export.Decompress(in)
	if err != nil {
		return nil, usageError("%s: %w", name, err)
	}
	defer plain.Close()
	found, err := conversation.Read(name, plain)
	if err != nil {
		return nil, &codedError{exitUsage, err}
	}
	return found, nil
}

// judgeAll judges conversations by the tasks of a library.
func judgeAll(cmd *cobra.Command, lib *library.Library, found []conversation.Conversation) (all judgements, err error) {
	judge, err := conversation.NewJudge(lib.Catalog())
	if err != nil {
		return all, fmt.Errorf("%s: %w", lib.Meta().Name, err)
	}
	ids, err := taskIDs(cmd, lib)
	if err != nil {
		return all, err
	}
	all = judgements{Library: lib.Meta(), Program: version(), Levels: make(map[assay.Level]int)}
	for i := range found {
		c := &found[i]
		c.Name, c.Program = cmp.Or(c.Name, fmt.Sprint(i+1)), all.Program
		id, err := c.TaskIn(ids, len(found) == 1)
		if err != nil && len(found) == 1 {
			return all, &codedError{exitUsage, err}
		}
		v := conversation.Verdict{Origin: c.Origin, Conversation: c.Name, Task: c.Task}
		if err != nil {
			v.Undecided = strings.ReplaceAll(err.Error(), "\nhint: ", "; ")
		} else {
			task, err := lib.Any(cmd.Context(), id)
			if err != nil {
				return all, err
			}
			v = judge.Verdict(c, &task)
		}
		if all.Judged++; v.Level == "" {
			all.Judged--
			all.Withheld++
		} else {
			all.Levels[v.Level]++
		}
		all.Verdicts = append(all.Verdicts, v)
		if err := cmd.Context().Err(); err != nil {
			return all, err
		}
	}
	return all, nil
}

// taskIDs returns the IDs of a library's tasks.
func taskIDs(cmd *cobra.Command, lib *library.Library) (ids []string, err error) {
	counts, err := lib.Counts(cmd.Context())
	for _, c := range counts {
		refs, err := lib.Refs(cmd.Context(), c.Type, c.Difficulty)
		if err != nil {
			return nil, err
		}
		for _, r := range refs {
			ids = append(ids, string(r.ID))
		}
	}
	return ids, err
}

// write writes a line for each conversation.
func (j judgements) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, v := range j.Verdicts {
		if err := e.Encode(v); err != nil {
			return err
		}
	}
	return nil
}

// longReason is how many characters of a reason a table shows.
const longReason = 160

func writeJudgements(p *process, all judgements) {
	t := document.NewScreenTable(p.terminal, 5, "conversation", "task", "level", "cause", "what went wrong first")
	for _, v := range all.Verdicts {
		level, cause, why := levelText(v.Level), v.Cause.Text(), v.Because
		switch {
		case v.Undecided != "":
			level, why = "undecided", v.Undecided
		case v.NoCause != "":
			cause, why = "undecided", v.NoCause
		}
		if v.Turn > 0 && why != "" {
			why = fmt.Sprintf("turn %d: %s", v.Turn, why)
		}
		if len(why) > longReason {
			why = assay.Head(why, longReason) + "…"
		}
		t.Row(sanitize(v.Conversation), string(v.Task), level, cause, sanitize(why))
	}
	var parts []string
	for _, level := range assay.Levels {
		if n := all.Levels[level]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, levelText(level)))
		}
	}
	if all.Withheld > 0 {
		parts = append(parts, fmt.Sprintf("%d undecided", all.Withheld))
	}
	fmt.Fprintf(p.out, "%s\n\n%s, apart from all trials: %s\n", t,
		assay.Counted(len(all.Verdicts), "conversation"), strings.Join(parts, ", "))
}

func levelText(level assay.Level) string { return strings.ReplaceAll(string(level), "_", " ") }
