package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/store"
)

func newStore(p *process) *cobra.Command {
	return group("store", "Verify, copy, merge, repair, trim, judge and price stores again",
		"  assay store verify\n  assay store backup copy.db",
		interruptible(p, newVerify(p)), interruptible(p, newBackup(p)),
		interruptible(p, newMerge(p)), interruptible(p, newRecover(p)),
		interruptible(p, newDelete(p)), newRescore(p), newPrice(p), newClassify(p),
		interruptible(p, newImportLegacy(p)))
}

func newBackup(p *process) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy a store, even while a run writes to it",
		Long: `Backup copies the current state of a store to a new file. The file appears complete
or not at all, and has the permissions of the store. A run that writes to the store
meanwhile is not disturbed. The replies and costs of attempts that have not ended are
copied to FILE.bills, so that the next run on the copy goes on with them. Space left by deleted rows is not copied. Backup refuses
a store that verify found damaged, because runs could write to the copy.`,
		Example: `  assay store backup results-2026-11-20.db
  assay store backup --store results.db /mnt/other/results.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			db, err := store.OpenReadOnly(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			snapshot, err := db.Backup(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			copied, err := store.OpenReadOnly(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, copied.Close()) }()
			left, err := copied.Left(cmd.Context())
			if err != nil {
				return err
			}
			from, err := db.Left(cmd.Context())
			if err != nil {
				return err
			}
			fmt.Fprintf(p.out, "%s holds snapshot %s of %s\n", args[0], snapshot, path)
			if begun := job.BegunBy(left.Attempts...); begun.Attempts > 0 {
				fmt.Fprintf(p.out, "%s.bills holds %s without an end, with replies of models: %d; move both together\n",
					args[0], assay.Counted(begun.Attempts, "attempt"), begun.Replies)
			}
			if from.Missing != nil {
				fmt.Fprintf(p.err, "assay: %s\n", from.Missing)
			}
			return nil
		},
	}
	storeFlag(cmd, &path)
	return cmd
}

func newMerge(p *process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "merge NEW STORE...",
		Short: "Merge several stores into a new one",
		Long: `Merge combines several stores in a new one, for example the stores of machines that
worked on one experiment. An attempt that is in several stores is copied once. If
several stores have an outcome for one trial, the outcome that was finished first
counts, and the others are listed. If an experiment has different plans in different
stores, status and reports use the plan of the latest run, and the others are
listed. The order of the stores makes no difference, and merging a result again adds
nothing. Attempts that have not ended go on in the new store, of two at the same trial
the one with more replies; the other one is listed. No cost is lost: what does not
count otherwise still counts as money. If two copies of a store both went on with an
attempt, what it had cost before is counted in each. The stores are only read.`,
		Example: `  assay store merge all.db machine-1.db machine-2.db
  assay store merge all-2.db all.db machine-3.db`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.rebuild(args[0], asJSON, func(show func(string, int, int)) (store.Copied, error) {
				return store.Merge(cmd.Context(), args[0], args[1:], show)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func newRecover(p *process) *cobra.Command {
	var path string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "recover FILE",
		Short: "Copy the intact rows of a damaged store to a new one",
		Long: `Recover makes a new store from the intact rows of a damaged one, and lists what it
left out. It copies the rows that SQLite can read and whose seals are intact. Trials
whose outcome is lost are pending again, and costs are then "at least" in reports. The damaged store stays as it is. If only the
transcript of an attempt is lost, the attempt is kept without it.

If SQLite cannot read the file or some of its pages, go back to a backup, or collect
what its pages hold with the shell from sqlite.org, and recover that:

  sqlite3 assay.db .recover | sqlite3 found.db
  assay store recover --store found.db whole.db

The exit code is 0 if every attempt was kept, and 1 if some were lost.`,
		Example: `  assay store recover whole.db
  assay store recover --store results.db whole.db && assay run experiment.yaml --store whole.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return p.rebuild(args[0], asJSON, func(show func(string, int, int)) (store.Copied, error) {
				sum, err := store.Recover(cmd.Context(), args[0], path, show)
				for i, lost := range sum.LostList {
					sum.LostList[i] = lost.Worded(words, path)
				}
				return sum, err
			})
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// rebuilt is the JSON that merge and recover print.
type rebuilt struct {
	Store string `json:"store"`
	store.Copied
}

// rebuild prints what a merge or a recovery copied.
func (p *process) rebuild(
	to string, asJSON bool, run func(show func(string, int, int)) (store.Copied, error),
) error {
	show := p.progress("")
	sum, err := run(show.on)
	show.end()
	if err != nil {
		return err
	}

	var lost error
	if sum.Lost > 0 || sum.Missing > 0 {
		lost = &codedError{code: exitError}
	}
	return errors.Join(p.print(asJSON, &rebuilt{to, sum}), lost)
}

func (r *rebuilt) String() string {
	var b strings.Builder
	for _, c := range firstOf(&b, r.PlanConflicts, "conflicts of plans") {
		fmt.Fprintf(&b, "experiment %s has two plans, which differ in %s: "+
			"status and reports use that of run %s in %s, not that of run %s in %s\n",
			c.Experiment, strings.Join(c.Fields, ", "), c.Kept.Run, c.Kept.Store, c.Left.Run,
			c.Left.Store)
	}
	differ := slices.DeleteFunc(slices.Clone(r.ConflictList), func(c store.Conflict) bool {
		return c.Kept.Level == c.Left.Level
	})
	for _, c := range firstOf(&b, differ, "conflicts") {
		fmt.Fprintf(&b, "trial %s has two outcomes, which differ: "+
			"kept %s of run %s in %s, left %s of run %s in %s\n",
			c.Trial, c.Kept.Level, c.Kept.Run, c.Kept.Store, c.Left.Level, c.Left.Run, c.Left.Store)
	}
	if n := len(r.ConflictList) - len(differ); n > 0 {
		fmt.Fprintf(&b, "%s two outcomes, which agree: the earlier ones were kept\n",
			countedVerb(n, "trial", "has", "have"))
	}
	for _, l := range firstOf(&b, r.LostList, "losses") {
		fmt.Fprintf(&b, "left: %s\n", l)
	}

	for _, m := range r.MissingJournals {
		fmt.Fprintf(&b, "left: %s\n", &m)
	}
	for _, l := range firstOf(&b, r.LeftBehind, "unfinished attempts") {
		fmt.Fprintf(&b, "left: %s\n", l)
	}
	fmt.Fprintf(&b, "%s: %s, %s, %s, %s, %s", r.Store, assay.Counted(r.Runs, "run"),
		assay.Counted(r.Trials, "trial"), assay.Counted(r.Attempts, "attempt"),
		assay.Counted(r.Outcomes, "outcome"), assay.Counted(r.Transcripts, "transcript"))
	if r.Doubles > 0 {
		fmt.Fprintf(&b, "; %d attempts occurred more than once", r.Doubles)
	}
	if r.Conflicts > 0 {
		fmt.Fprintf(&b, "; %d of the attempts count for their cost only, because of earlier outcomes", r.Conflicts)
	}
	if r.Lost > 0 {
		fmt.Fprintf(&b, "; left %s that cannot be trusted or read",
			assay.Counted(r.Lost, "attempt"))
	}
	if r.Missing > 0 {
		fmt.Fprintf(&b, "; %s missing", countedVerb(int(r.Missing), "attempt", "is", "are"))
	}
	if r.Bare > 0 {
		fmt.Fprintf(&b, "; %d attempts were kept without their transcripts, which are lost", r.Bare)
	}
	if r.Unfinished > 0 {
		fmt.Fprintf(&b, "; %s without an end, with replies of models: %d, in %s.bills",
			assay.Counted(r.Unfinished, "attempt"), r.Replies, r.Store)
	}
	b.WriteString("\n")
	return b.String()
}

func countedVerb(n int, noun, one, many string) string {
	if n == 1 {
		many = one
	}
	return assay.Counted(n, noun) + " " + many
}
