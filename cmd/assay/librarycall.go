package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/world/own"
)

func newLibraryCall(p *process) *cobra.Command {
	var name, task string
	var showState bool
	cmd := &cobra.Command{
		Use:   "call TOOL [ARGUMENTS]",
		Short: "Call one of your own tools",
		Long: `Call calls a tool of your own once, on the state of a task, and prints what a model would
get. The tool always works: no fault is planted.`,
		Example: `  assay library call get_order '{"order_id": 7}' --library tasks.yaml
  assay library call refund_order '{"order_id": 7, "amount": 5}' --library tasks.yaml --state`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if name == "" {
				return usageError("--library is missing\n" +
					"hint: name your file of tasks: --library tasks.yaml")
			}
			lib, err := library.OpenNamed(cmd.Context(), name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, lib.Close()) }()
			if !lib.Own() {
				return fmt.Errorf("the tools of %s are not your own\n"+
					"hint: `assay init` writes an example with tools of your own", name)
			}
			t, err := lib.Any(cmd.Context(), assay.TaskID(task))
			if err != nil {
				return err
			}
			text := "{}"
			if len(args) == 2 {
				text = args[1]
			}
			return callTool(cmd, p, lib.Catalog(), &t, args[0], text, showState)
		},
	}
	cmd.Flags().StringVar(&name, "library", "", "the `file` of tasks")
	cmd.Flags().StringVar(&task, "task", "",
		"the task whose state to use; the default is the first")
	cmd.Flags().BoolVar(&showState, "state", false, "print the state after the call, too")
	return cmd
}

func callTool(
	cmd *cobra.Command, p *process, catalog *assay.Catalog, task *assay.Task, tool, text string,
	showState bool,
) (err error) {
	if _, ok := catalog.Tool(tool); !ok {
		return fmt.Errorf("unknown tool %q\nhint: %s", tool,
			assay.NameHint(tool, catalog.Names()))
	}
	kit, err := toolkit.Of(catalog)
	if err != nil {
		return err
	}
	arguments, err := kit.ReadArguments(tool, text)
	if err != nil {
		return fmt.Errorf("the arguments do not fit %s: %w", tool, err)
	}
	backend, err := own.Start(cmd.Context(), catalog, task)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, backend.Close()) }()
	output, err := backend.Call(cmd.Context(), tool, arguments)
	if err != nil {
		return err
	}
	if err := printJSON(p, output); err != nil || !showState {
		return err
	}
	state, err := backend.State(cmd.Context())
	if err != nil || state == nil {
		return err
	}
	return printJSON(p, state)
}

func printJSON(p *process, text json.RawMessage) error {
	var b bytes.Buffer
	if err := json.Indent(&b, text, "", "  "); err != nil {
		return err
	}
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(p.out, sanitize(strings.TrimSuffix(line, "\n")))
	}
	return nil
}
