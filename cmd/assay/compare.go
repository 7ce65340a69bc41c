package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/sections"
	"github.com/assay-eval/assay/internal/store"
)

func newCompare(p *process) *cobra.Command {
	var f documentFlags
	var hosts string
	cmd := &cobra.Command{
		Use:   "compare A B | --hosts MODEL [MODEL...]",
		Short: "Compare two experiments, runs, models or variants on the same tasks",
		Long: `Compare shows what changed from A to B, whether that is significant, overall and
condition by condition, and which trials flipped. A and B are experiments, runs (or the
beginnings of their IDs), models or variants. If a name is ambiguous, write model:NAME,
run:NAME, experiment:NAME or variant:NAME.

Trials are matched by task, repeat and everything else that both sides have in common. If
each side has a single level of a factor, and the two levels differ, the sides are compared
by that factor.

--hosts compares the hosts of one model, each of which is a model of the store with a name of
its own: success, faults, time and money of each, and whether the success of the others
differs from that of MODEL. Without further names, all other models of the store are hosts.`,
		Example: `  assay compare sim/expert sim/obedient
  assay compare optimal flawed_missing_step --where model=sim/obedient
  assay compare my-model@v1 my-model@v2
  assay compare --hosts k2-moonshot k2-fireworks k2-deepinfra
  assay compare before after --transcripts 20 --output compare.html
  assay compare run:01a1fe7e run:01a2003b --json | jq '.flips'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if hosts != "" {
				return nil
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := f.check(p); err != nil {
				return err
			}
			ctx := cmd.Context()
			db, err := p.openToRead(ctx, f.store)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			if err := checkWhere(ctx, db, f.where); err != nil {
				return err
			}
			if hosts != "" {
				return p.compareHosts(ctx, db, append([]string{hosts}, args...), f)
			}
			c, err := query.Compare(ctx, db, args[0], args[1], f.where, f.cluster)
			if errors.Is(err, report.ErrNothingInCommon) || errors.Is(err, query.ErrOneSide) {
				return sanitizedError{err}
			}
			if err != nil {
				return err
			}
			return f.write(p, c, func() (*document.Document, error) {
				return c.Document(ctx, f.transcripts, f.reveal)
			})
		},
	}
	f.flags(cmd, "both transcripts of the first `N` flips")
	cmd.Flags().StringVar(&hosts, "hosts", "",
		"compare other hosts of this `model` with it")
	_ = cmd.RegisterFlagCompletionFunc("hosts", namesIn(&f.store, modelNames))
	cmd.ValidArgsFunction = namesIn(&f.store, query.Names)
	return cmd
}

func modelNames(ctx context.Context, db *store.DB) ([]string, error) { return db.Models(ctx) }

// compareHosts compares the hosts of a model with the first one. If only that is named, all other
// models of the store are hosts.
func (p *process) compareHosts(
	ctx context.Context, db *store.DB, names []string, f documentFlags,
) error {
	if f.transcripts > 0 {
		return usageError("--hosts has no transcripts\nhint: `assay compare A B` has them")
	}
	if len(names) == 1 {
		all, err := db.Models(ctx)
		if err != nil {
			return err
		}
		names = append(names, slices.DeleteFunc(all, func(m string) bool { return m == names[0] })...)
	}
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			return usageError("%s is named twice", name)
		}
	}
	if len(names) == 1 {
		return usageError("%s is the only model of the store, so no host can be compared with it", names[0])
	}
	h, err := query.Hosts(ctx, db, names, f.where, f.cluster)
	if errors.Is(err, report.ErrNothingInCommon) {
		return sanitizedError{err}
	}
	if err != nil {
		return err
	}
	return f.write(p, h, func() (*document.Document, error) { return sections.Hosts(h), nil })
}
