package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/reading"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// vendorFlags are the flags of vendors, including the flags of documents.
type vendorFlags struct {
	documentFlags
	margin string
	allow  []string
	run    runFlags // of an experiment file
}

func newVendors(p *process) *cobra.Command {
	var f vendorFlags
	cmd := &cobra.Command{
		Use:   "vendors MODEL MODEL... | FILE",
		Short: "Compare the hosts of one model, and certify what differs",
		Long: `Vendors compares the hosts of one open-weight model on the same tasks. Each host is a model
of the store with a name of its own; the first one is the reference. A FILE is an experiment
whose models are the hosts; its pending trials run first.

A host is one of

  equivalent     its success differs from the reference's by less than the margin, either way
  different      its success differs, by more than chance
  inconclusive   neither is shown

The certificate also has what else differs: calls of tools that do not parse or that their
tool refuses, which tool is called first, whether the first reply to the same prompt calls
one, how replies end, refusals, faults, tokens, time and money.

Exit codes: 0 all hosts are equivalent, 4 one is different, 5 one is inconclusive.`,
		Example: `  assay vendors k2-moonshot k2-fireworks k2-deepinfra --margin 5pt
  assay vendors hosts.yaml --store hosts.db --output certificate.html
  assay vendors k2@moonshot k2@together --json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.check(p, args); err != nil {
				return err
			}
			if isFile(args[0]) {
				if args, err = p.runVendors(cmd.Context(), args[0], f); err != nil {
					return err
				}
			}
			return untilInterrupted(cmd.Context(), p, func(ctx context.Context) error {
				return p.vendors(ctx, args, f)
			})
		},
	}
	f.flags(cmd, "")
	flags := cmd.Flags()
	flags.StringVar(&f.margin, "margin", "5pt", "the tolerated `difference`, in percentage points")
	flags.StringSliceVar(&f.allow, "allow", nil,
		"what may differ: "+strings.Join(report.Unlikenesses, ", "))
	flags.StringVar(&f.run.providers, "providers", "",
		"with a file: the providers `file` to use instead of the experiment's")
	simLatencyFlag(cmd, &f.run.simLatency)
	cmd.ValidArgsFunction = namesIn(&f.store,
		func(ctx context.Context, db *store.DB) ([]string, error) { return db.Models(ctx) })
	return cmd
}

func (f *vendorFlags) check(p *process, args []string) error {
	if err := f.documentFlags.check(p); err != nil {
		return err
	}
	file := isFile(args[0])
	switch {
	case file && len(args) > 1:
		return usageError("a file names all hosts, so no further names can follow it")
	case !file && len(args) == 1:
		return usageError("%s has no host to be compared with\n"+
			"hint: name the reference first, then other hosts of the same model", args[0])
	}
	seen := make(map[string]bool)
	for _, name := range args {
		if seen[name] {
			return usageError("%s is named twice", name)
		}
		seen[name] = true
	}
	return checkAllowed(f.allow)
}

// runVendors runs the pending trials of an experiment file and returns its models.
func (p *process) runVendors(ctx context.Context, path string, f vendorFlags) ([]string, error) {
	f.run.store = f.store
	e, err := f.run.experiment([]string{path})
	if err != nil {
		return nil, err
	}
	if len(e.Models) < 2 {
		return nil, usageError("%s has one model: vendors compares several hosts of one", path)
	}
	return e.Models, p.runQuietly(ctx, e, f.run)
}

// vendors writes the certificate, and returns the verdict as an exit code.
func (p *process) vendors(ctx context.Context, names []string, f vendorFlags) (err error) {
	margin, err := points(f.margin)
	if err != nil {
		return err
	}
	db, err := p.openToRead(ctx, f.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := checkWhere(ctx, db, f.where); err != nil {
		return err
	}
	v, err := reading.VendorRequest{
		Names: names, Where: f.where, Cluster: f.cluster, Margin: margin, Allow: f.allow,
	}.Vendors(ctx, db)
	if errors.Is(err, report.ErrNothingInCommon) {
		return sanitizedError{err}
	}
	if err != nil {
		return err
	}
	err = f.write(p, v, func() (*document.Document, error) { return exhibit.Vendors(v), nil })
	switch {
	case err != nil:
		return err
	case v.Verdict == report.Different:
		return &codedError{code: exitFail}
	case v.Verdict == report.Undecided:
		return &codedError{code: exitInconclusive}
	}
	return nil
}
