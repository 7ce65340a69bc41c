package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/audit"
	"github.com/assay-eval/assay/internal/store"
)

func newPrice(p *process) *cobra.Command {
	var path string
	var dry, asJSON bool
	cmd := &cobra.Command{
		Use:   "price PRICES.yaml",
		Short: "Compute the dollars of stored tokens again by a price list",
		Long: `Price computes what every stored attempt costs by the prices in a file, from the
tokens of its replies and the lanes that gave them. The file is a price list as a
providers file can name one. Costs that differ are stored next to the attempt, which
never changes. From then on, reports, exports, status and budgets use them, and
reports and "assay show" say what the cost was at first.

Models that the file does not name keep their costs, and so do judges. Tokens stay of
unknown cost if the endpoint did not report them. Run it again after an interruption:
what was stored already is not stored twice.`,
		Example: `  assay store price prices.yaml --dry-run
  assay store price prices.yaml --store results.db`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var sum audit.Priced
			err := untilInterrupted(cmd.Context(), p, func(ctx context.Context) (err error) {
				list, err := plan.LoadPrices(args[0])
				if err != nil {
					return err
				}
				for _, doubt := range list.Doubts() {
					fmt.Fprintf(p.err, "assay: %s\n", doubt)
				}
				open := openExisting
				if dry {
					open = store.OpenReadOnly
				}
				db, err := open(ctx, path)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, db.Close()) }()
				sum, err = audit.Price(ctx, db, list, version(), dry)
				return err
			})
			if err != nil {
				return err
			}
			return p.either(asJSON, sum, func() { writePriced(p, sum, dry) })
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "show what would change, and store nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func writePriced(p *process, sum audit.Priced, dry bool) {
	verb := "were stored"
	if dry {
		verb = "would be stored"
	}
	fmt.Fprintf(p.out, "%s computed by %s (SHA-256 %.12s…); %d differ and %s\n",
		assay.Counted(sum.Attempts, "cost"), sum.File, sum.SHA256, sum.Changed, verb)
	w := tabwriter.NewWriter(p.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "attempts\ttokens\tbefore\tafter\t  model")
	var others []string
	for _, m := range sum.Models {
		if !m.Listed {
			text := m.Model
			if m.Before.AtLeast() {
				text += " (" + assay.DollarsText(m.Before.USD, 2, true) + ")"
			}
			others = append(others, text)
			continue
		}
		fmt.Fprintf(w, "%d\t%d\t%s\t%s\t  %s\n", m.Attempts, m.Before.Tokens,
			assay.DollarsText(m.Before.USD, 2, m.Before.AtLeast()),
			assay.DollarsText(m.After.USD, 2, m.After.AtLeast()), m.Model)
	}
	w.Flush()
	if len(others) > 0 {
		fmt.Fprintf(p.out, "without a price there, and as before: %s\n", strings.Join(others, ", "))
	}
	if sum.JudgesUSD > 0 {
		fmt.Fprintf(p.out, "what models have cost as judges of tasks stays as it was: %s\n",
			assay.DollarsText(sum.JudgesUSD, 2, false))
	}
}
