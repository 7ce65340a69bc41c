package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/legacy"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/store"
)

type exportFlags struct {
	store, format, output, calls string
	experiment, run              string
	snapshot, since              string
	conditions                   []string
	check, providers             string
	reveal                       bool
}

func newExport(p *process) *cobra.Command {
	var f exportFlags
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Write attempts as JSON lines, CSV, Parquet, or in formats of others",
		Long: `Export writes one record per attempt. A record has a level if the attempt
ended in an outcome, and otherwise a fault. With --output, files appear complete or not at all, together
with a manifest, FILE.manifest.json. It names the state of the store, the filters,
anything that could not be read, the meaning of each column, and the digest of each
file. --check proves that the files are as they were written. An export never
replaces a store.

  jsonl, csv   text; both have the same fields; compressed if the name of the file ends
               with .gz or .zst
  parquet      typed; for pandas, Polars, DuckDB and others
  atif         a trajectory per outcome, as JSON lines, for Harbor, training and other readers
  inspect      logs for the viewer of Inspect, one per experiment and model, and
               manifest.json, in the directory that --output names
  eee          a directory of records for Every Eval Ever, with figures as in reports
  hf           a directory of .eval_results for model repositories on the Hugging Face Hub
  v3           the master_database.json of the 2025 original

--experiment selects the trials that an experiment plans, even if another experiment's run
carried them out, as reports do. --where accepts several values separated by commas. A
value that contains commas also matches as a whole.

A snapshot names a state of the store forever. --snapshot exports that state again, and
--since exports only attempts that were added or judged again after it.

eee and hf publish figures of experiments. --providers names the file that says who made a model
(developer) and where its weights are (hub). hf needs a hub, and 95 % of the trials done.`,
		Example: `  assay export --output results.csv
  assay export --experiment quickstart | jq -r .level | sort | uniq -c
  assay export --output results.parquet --calls calls.parquet
  assay export --where model=gpt-4o --where level=failure,partial_success
  assay export --since 1200-3f2a9c71d0aa --output new.jsonl
  assay export --format inspect --output logs
  assay export --format eee --providers providers.yaml --output eee
  assay export --format atif --where level=full_success --output good.jsonl.zst
  assay export --check results.csv`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := checkNoneEmpty(cmd); err != nil {
				return err
			}
			if f.check != "" && cmd.Flags().NFlag() > 1 {
				return usageError("--check takes no other flag")
			}
			if f.check != "" {
				return checkExport(cmd.Context(), p, f.check)
			}
			return exportAttempts(cmd.Context(), p, f)
		},
	}
	storeFlag(cmd, &f.store)
	names := export.FormatNames()
	flags := cmd.Flags()
	formatFlag(cmd, &f.format, names, string(export.JSONL))
	flags.StringVarP(&f.output, "output", "o", "-", "the `file` to write; - is standard output")
	flags.StringVar(&f.calls, "calls", "",
		"also write the tool calls to this `file`, in the same format")
	flags.StringVar(&f.experiment, "experiment", "",
		"only attempts at the trials that this experiment plans")
	flags.StringVar(&f.run, "run", "",
		"only attempts of the run with this ID, or one that starts with it")
	flags.StringVar(&f.snapshot, "snapshot", "",
		"the state of the store to export; the default is the current state")
	flags.StringVar(&f.since, "since", "",
		"only attempts that were added or judged again after this snapshot")
	whereFlag(cmd, &f.conditions)
	revealFlag(cmd, &f.reveal)
	flags.StringVar(&f.providers, "providers", "",
		"the providers `file` that names the developers and repositories of models, for eee and hf")
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
	flags.StringVar(&f.check, "check", "",
		"check an exported `file` or directory instead of exporting")
	_ = cmd.RegisterFlagCompletionFunc("experiment", namesIn(&f.store, experimentNames))
	return cmd
}

// whereFlag adds --where to a command.
func whereFlag(cmd *cobra.Command, conditions *[]string) {
	cmd.Flags().StringArrayVar(conditions, "where", nil,
		"only attempts with `FIELD=VALUE` or FIELD!=VALUE, faults, failures, or the beginning of a "+
			"trial's ID; * stands for any text; may be given several times")
}

// parseWhere parses the values of --where.
func parseWhere(conditions []string) (export.Where, error) {
	where, err := export.ParseWhere(conditions)
	if err != nil {
		return where, usageError("--where: %w", err)
	}
	return where, nil
}

// checkWhere returns a usage error if a condition of --where names a value that nothing in the store
// has, and nothing in another one.
func checkWhere(
	ctx context.Context, db *store.DB, where export.Where, others ...iter.Seq2[assay.Attempt, error],
) error {
	if err := query.CheckWhere(ctx, db, where, others...); err != nil {
		return usageError("--where: %w", err)
	}
	return nil
}

// checkNoneEmpty refuses flags with an empty value. A script whose variable is empty would
// otherwise get everything that the flag was meant to leave out.
func checkNoneEmpty(cmd *cobra.Command) error {
	names := []string{
		"store", "format", "output", "calls", "experiment", "run", "snapshot",
		"since", "check", "providers",
	}
	for _, name := range names {
		if f := cmd.Flags().Lookup(name); f.Changed && f.Value.String() == "" {
			return usageError("--%s is empty\nhint: leave it out, or give it a value", name)
		}
	}
	return nil
}

func exportAttempts(ctx context.Context, p *process, f exportFlags) (err error) {
	e := query.Export{
		Output: f.output, Calls: f.calls, Stdout: p.out, Store: f.store, Program: version(),
	}
	name, packing := export.Packing(f.output)
	format, err := formatOf(f.format, name, export.FormatNames(), string(export.JSONL))
	if err != nil {
		return err
	}
	if e.Format, err = export.ParseFormat(format); err != nil {
		return usageError("%w", err)
	}
	if packing != "" && (e.Format == export.Parquet || slices.Contains(export.Directories, e.Format)) {
		return usageError("--output %s: %s is compressed already\nhint: leave %s out", f.output, e.Format, packing)
	}
	where, err := parseWhere(f.conditions)
	if err != nil {
		return err
	}
	if f.calls != "" && !slices.Contains(export.Formats, e.Format) {
		return usageError("--calls: %s has no table of tool calls\n"+
			"hint: jsonl, csv and parquet have one", e.Format)
	}
	if slices.Contains(export.Directories, e.Format) && f.output == "-" {
		return usageError("%s is a format of several files"+
			"\nhint: --output names a directory for them, such as --output logs", e.Format)
	}
	if err := checkPublic(&f, e.Format, where); err != nil {
		return err
	}
	if f.providers != "" {
		if e.Names, err = plan.PublicNames(f.providers); err != nil {
			return err
		}
	}

	db, err := p.openToRead(ctx, f.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := checkWhere(ctx, db, where); err != nil {
		return err
	}
	request := query.Request{
		Experiment: f.experiment, Run: f.run, Snapshot: f.snapshot, Since: f.since, Where: where,
		Reveal: f.reveal,
	}
	warn := func(message string) { fmt.Fprintf(p.err, "assay: %s\n", message) }
	if e.Selection, err = query.Select(ctx, db, request, warn); err != nil {
		return err
	}

	m, records, err := e.Write(ctx)
	var mixed *legacy.MixedError
	if errors.As(err, &mixed) {
		rescore := ""
		if mixed.SameRules() {
			rescore = "\nhint: `assay store rescore` gives all outcomes the same score_version"
		}
		return fmt.Errorf("%w%s\nhint: choose, for example with%s", err, rescore,
			whereFlags(mixed.Where()))
	}
	if err != nil {
		return sanitizedError{err}
	}
	if err := tellExported(ctx, p, &e, m, records); err != nil {
		return err
	}
	if f.snapshot == "" && f.since == "" {
		if err := tellUnfinished(ctx, p, db); err != nil {
			return err
		}
	}
	return incomplete(m.Missing, e.Selection.Narrowed() || f.experiment != "")
}

// checkPublic returns a usage error if flags do not fit the formats for public collections. A figure of trials
// that were chosen by what came of them, or of a part of the runs, would be none of the experiment.
func checkPublic(f *exportFlags, format export.Format, where export.Where) error {
	switch {
	case !slices.Contains(export.Public, format):
		if f.providers != "" {
			return usageError("--providers is for eee and hf, and %s has no public names", format)
		}
	case format == export.Hub && f.providers == "":
		return usageError("hf needs to know the repositories of models on the Hub\n" +
			"hint: write hub: ORG/NAME at a model in a providers file, and name it with --providers")
	case f.run != "" || f.since != "":
		return usageError("%s publishes figures of experiments, not of runs or of what is new\n"+
			"hint: leave --run and --since out; --snapshot exports an earlier state", format)
	case !where.OfTrials():
		return usageError("--where: %s publishes rates, so trials cannot be chosen by what came of them\n"+
			"hint: conditions on fields of trials are fine, such as model, variant or reliability", format)
	}
	return nil
}

// tellUnfinished says which attempts of the store an export cannot have yet.
func tellUnfinished(ctx context.Context, p *process, db *store.DB) error {
	left, err := db.Left(ctx)
	if n := len(left.Attempts); err == nil && n > 0 {
		spent := job.BegunBy(left.Attempts...)
		fmt.Fprintf(p.err, "assay: %s not exported; spent so far: %s\n",
			countedVerb(n, "unfinished attempt", "is", "are"), assay.DollarsText(spent.USD, 2, spent.AtLeast()))
	}
	return err
}

// tellExported prints a summary of the export. If the export is empty, it prints why.
func tellExported(
	ctx context.Context, p *process, e *query.Export, m export.Manifest, records int,
) error {
	what := assay.Counted(records, "attempt")
	switch e.Format {
	case export.EEE, export.Hub:
		for _, f := range m.Files {
			fmt.Fprintf(p.err, "%s: %s\n", filepath.Join(e.Output, filepath.FromSlash(f.Name)),
				assay.Counted(f.Rows, strings.TrimSuffix(string(f.Table), "s")))
		}
		what = assay.Counted(records, map[export.Format]string{export.EEE: "evaluation", export.Hub: "file"}[e.Format])
	case export.Inspect:
		for _, f := range m.Files {
			fmt.Fprintf(p.err, "%s: %s\n",
				filepath.Join(e.Output, f.Name), assay.Counted(f.Rows, "trial"))
		}
		if len(m.Files) > 0 {
			fmt.Fprintf(p.err, "`inspect view --log-dir %s` shows them\n", e.Output)
		}
		what = assay.Counted(records, "log")
	case export.ATIF:
		what = countedLines(records, m.Counts)
	case export.V3:
		what = assay.Counted(records, "trial")
		if records == 0 && m.Counts.Attempts > 0 {
			what += " (every selected attempt is a fault)"
		}
	}

	snapshot := "snapshot " + m.Snapshot
	if m.Snapshot == "" {
		snapshot = "the current state of the store, which is damaged and therefore has no name"
	}
	fmt.Fprintf(p.err, "%s of %s\n", what, snapshot)
	if text := notKept(m.Missing); text != "" {
		fmt.Fprintf(p.err, "assay: %s\n", text)
	}
	if m.Counts.Attempts > 0 {
		return nil
	}
	why, err := e.Selection.WhyEmpty(ctx)
	for line := range strings.Lines(why) {
		fmt.Fprintln(p.err, sanitize(strings.TrimSpace(line)))
	}
	return err
}

// countedLines counts the trajectories of an export, which has no faults unless all that is selected are.
func countedLines(records int, selected export.Counts) string {
	switch {
	case selected.Faults > 0 && selected.Outcomes > 0:
		return fmt.Sprintf("%s, without %s (--where faults exports those)",
			assay.Counted(records, "outcome"), assay.Counted(selected.Faults, "fault"))
	case selected.Faults > 0:
		return assay.Counted(records, "fault")
	}
	return assay.Counted(records, "outcome")
}

// notKept mentions attempts whose transcripts the store doesn't have. That is not damage.
func notKept(m export.Missing) string {
	if m.NotKept == 0 {
		return ""
	}
	return assay.Counted(m.NotKept, "attempt") +
		" exported without calls and messages, because the store has no transcript"
}

// incomplete returns an error if something could not be read.
func incomplete(m export.Missing, filtered bool) error {
	if !m.Damage() {
		return nil
	}
	return fmt.Errorf("%s\nhint: \"assay store verify\" says more", missingText(m, filtered))
}

// missingText lists the records that damage keeps out of an export. With a filter, an attempt
// that cannot be read may or may not have been selected.
func missingText(m export.Missing, filtered bool) string {
	var all []string
	if m.Attempts > 0 {
		missing := "so the export is incomplete"
		if filtered {
			missing = "so the export may be incomplete"
		}
		all = append(all, unread(m.Attempts)+", "+missing)
	}
	if m.Rows > 0 {
		all = append(all, assay.Counted(m.Rows, "other row")+" of the store cannot be read or proved")
	}
	if m.Transcripts > 0 {
		all = append(all,
			assay.Counted(m.Transcripts, "transcript")+" cannot be read, so the export is incomplete")
	}
	return strings.Join(all, "; ")
}

// whereFlags writes conditions as a POSIX shell reads them.
func whereFlags(conditions []string) string {
	var b strings.Builder
	for _, c := range conditions {
		b.WriteString(" --where '" + strings.ReplaceAll(c, "'", `'\''`) + "'")
	}
	return b.String()
}

// checkExport prints whether the files of an export match its manifest.
func checkExport(ctx context.Context, p *process, path string) error {
	m, err := query.CheckExport(ctx, path)
	if err != nil {
		return sanitizedError{err}
	}
	for _, f := range m.Files {
		record := strings.TrimSuffix(sanitize(string(f.Table)), "s")
		fmt.Fprintf(p.out, "%s: whole, %s\n", sanitize(f.Name), assay.Counted(f.Rows, record))
	}
	fmt.Fprintf(p.out, "%s, snapshot %s of %s\n",
		assay.Counted(m.Counts.Attempts, "attempt"), sanitize(m.Snapshot), sanitize(m.Store))
	if text := notKept(m.Missing); text != "" {
		fmt.Fprintln(p.out, text)
	}
	if !m.Missing.Damage() {
		return nil
	}
	f := m.Filter
	filtered := f.Experiment != "" || f.Run != "" || f.Since != "" || len(f.Where) > 0
	return fmt.Errorf("the files are as they were written, but %s\n"+
		"hint: export again from a store that is whole",
		missingText(m.Missing, filtered))
}
