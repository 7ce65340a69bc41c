package main

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/query"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/store"
)

func newAgree(p *process) *cobra.Command {
	var path string
	var conditions []string
	var asJSON, dry bool
	cmd := &cobra.Command{
		Use:   "agree LABELS.csv",
		Short: "Compare judges that are models with people's labels",
		Long: `Agree compares what models judged with what people say of the same trials. LABELS.csv has the
columns trial and label, which is pass or fail; "assay judge draw" writes one to fill in.

It states how often judge and people agree, Cohen's kappa, which errors the judge makes,
and the rate of passes that people would give to all judged trials, also by model. Intervals
are about further tasks, and hold if the labelled trials were drawn at random.

The store keeps that the judge was compared, so that reports no longer warn of it if there are 30
labels or more; --dry-run keeps nothing.`,
		Example: `  assay judge draw 60 --output labels.csv
  assay judge agree labels.csv
  assay judge agree labels.csv --where model=gpt-5 --json | jq '.[].corrected_rate'`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			where, err := parseWhere(conditions)
			if err != nil {
				return err
			}
			labels, err := query.ReadLabels(args[0])
			if wrong, ok := errors.AsType[*query.LabelsError](err); ok {
				return usageError("%w", wrong)
			}
			if err != nil {
				return err
			}
			return compareJudges(cmd.Context(), p, path, labels, where, asJSON, dry || len(conditions) > 0)
		},
	}
	storeFlag(cmd, &path)
	whereFlag(cmd, &conditions)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, an object for each judge")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "keep nothing in the store; so does --where")
	return cmd
}

func compareJudges(
	ctx context.Context, p *process, path string, labels *query.Labels, where export.Where, asJSON, dry bool,
) (err error) {
	open := p.openToRead
	if !dry {
		open = store.Open
	}
	db, err := open(ctx, path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	all, unused, err := query.Agreement(ctx, db, labels, where)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return errors.New("no model has judged an outcome of the store\n" +
			"hint: judge: {rubric: …, model: …} in a task lets a model judge it")
	}
	if n := len(unused); n > 0 {
		fmt.Fprintf(p.err, "assay: no model has judged the trials of %d labels, such as %s\n", n, unused[0])
	}
	for i := range all {
		if !dry && all[i].Labelled > 0 {
			if err := all[i].Keep(ctx, db, labels, store.Import{At: time.Now(), Program: version()}); err != nil {
				return err
			}
		}
	}
	if !dry && !asJSON {
		for i := range all {
			if n := all[i].Labelled; n > 0 && n < store.EnoughLabels {
				fmt.Fprintf(p.err, "assay: %s of the judge %s are too few: reports warn of it until there are %d\n",
					assay.Counted(n, "label"), all[i].Judge, store.EnoughLabels)
			}
		}
	}
	return p.either(asJSON, all, func() {
		for i := range all {
			writeAgreement(p, &all[i])
		}
	})
}

func writeAgreement(p *process, a *query.JudgeAgreement) {
	p.say("judge %s (prompt %s): %d outcomes judged, %d of them labelled, at %d tasks", a.Judge, a.Prompt, a.Judged,
		a.Labelled, a.Tasks)
	if a.Labelled == 0 {
		fmt.Fprintln(p.out)
		return
	}
	t := p.table("", "people pass", "people fail")
	t.Row("judge passes", fmt.Sprint(a.PassPass), fmt.Sprint(a.PassFail))
	t.Row("judge fails", fmt.Sprint(a.FailPass), fmt.Sprint(a.FailFail))
	fmt.Fprintf(p.out, "\n%s\n\n", t)
	t = p.table("figure", "value", "95 % interval")
	row := func(name string, e stat.Inferred, format func(float64) string) {
		t.Row(name, format(e.Value), format(e.Interval.Low)+" to "+format(e.Interval.High))
	}
	kappa := func(v float64) string { return strings.Replace(fmt.Sprintf("%.2f", v), "-", "−", 1) }
	row("agreement*", a.Raw, report.Percent)
	row("Cohen's kappa", a.Kappa, kappa)
	row("passed, though people fail it", a.FalsePass, report.Percent)
	row("failed, though people pass it", a.FalseFail, report.Percent)
	row("the judge's rate of passes", a.Rate, report.Percent)
	row("corrected: people's rate", a.Corrected, report.Percent)
	fmt.Fprintf(p.out, "%s\n", t)
	p.say("* These are about all judged outcomes: labelled ones count as often as the judge passes and fails in all.")
	if len(a.Models) > 1 {
		t = p.table("model", "judged", "labelled", "judge's rate", "corrected", "95 % interval")
		for _, m := range a.Models {
			t.Row(m.Model, fmt.Sprint(m.Judged), fmt.Sprint(m.Labelled), report.Percent(m.Rate.Value),
				report.Percent(m.Corrected.Value),
				report.Percent(m.Corrected.Interval.Low)+" to "+report.Percent(m.Corrected.Interval.High))
		}
		fmt.Fprintf(p.out, "\n%s\n", t)
	}
	t = p.table("task", "labelled", "agreed")
	for _, task := range a.ByTask {
		t.Row(string(task.Task), fmt.Sprint(task.Labelled), fmt.Sprint(task.Agreed))
	}
	fmt.Fprintf(p.out, "\n%s\n\n", t)
}

func newDraw(p *process) *cobra.Command {
	var path, output string
	var conditions []string
	var seed uint64
	cmd := &cobra.Command{
		Use:   "draw N",
		Short: "Draw trials for people to label",
		Long: `Draw writes a file of labels to fill in, with trials that models judged: half of those that they
passed, half of those that they failed, at random and in random order. People read a trial with
"assay show", or its page of a published site, and write pass or fail into the column label.`,
		Example: `  assay judge draw 60 --output labels.csv
  assay judge draw 20 --where model=gpt-5 --seed 2`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			n, err := strconv.Atoi(args[0])
			if err != nil || n < 1 {
				return usageError("%q is no number of trials\nhint: assay judge draw 60", args[0])
			}
			if _, err := os.Stat(output); output != "-" && err == nil {
				return usageError("--output %s: the file exists, and labels in it would be lost\nhint: name a new file", output)
			}
			where, err := parseWhere(conditions)
			if err != nil {
				return err
			}
			db, err := p.openToRead(cmd.Context(), path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			drawn, err := query.Draw(cmd.Context(), db, where, n, seed)
			if err != nil {
				return err
			}
			if len(drawn) == 0 && len(conditions) > 0 {
				return errors.New("no model has judged an outcome with " + strings.Join(conditions, " and "))
			}
			if len(drawn) == 0 {
				return errors.New("no model has judged an outcome of the store")
			}
			if len(drawn) < n {
				fmt.Fprintf(p.err, "assay: models have judged %d trials, which are all drawn\n", len(drawn))
			}
			if output != "-" {
				fmt.Fprintf(p.err, "assay: write pass or fail into the column label, then: assay judge agree %s\n", output)
			}
			return atomicfile.Write(p.out, output, func(w io.Writer) error {
				c := csv.NewWriter(w)
				_ = c.Write([]string{"trial", "task", "label"})
				for _, a := range drawn {
					_ = c.Write([]string{string(a.ID), string(a.Task), ""})
				}
				c.Flush()
				return c.Error()
			})
		},
	}
	storeFlag(cmd, &path)
	whereFlag(cmd, &conditions)
	cmd.Flags().StringVarP(&output, "output", "o", "-", "the `file` to write; - is standard output")
	cmd.Flags().Uint64Var(&seed, "seed", 1, "another number draws others")
	return cmd
}
