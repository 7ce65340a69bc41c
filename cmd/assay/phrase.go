package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/rephrase"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/result/atomicfile"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

type phraseFlags struct{ tasks, model, reader, as, providers string }

func newPhrase(p *process) *cobra.Command {
	var f phraseFlags
	cmd := &cobra.Command{
		Use:   "phrase TASKS --model MODEL --providers FILE",
		Short: "Propose tasks of your own in other words",
		Long: `Phrase asks a model to put each task of a YAML file in other words, and a second model whether both
texts ask for the same. It shows you both, what the second model says, and which numbers and addresses were
lost or added, and asks whether to keep the proposal. One that you keep is written to the file at once, under
phrasings: of its task; nothing else in the file changes. Tasks that have the phrasing are skipped, so the
same command continues where it was stopped.`,
		Example: `  assay library phrase tasks.yaml --model gpt-5 --providers providers.yaml
  assay library phrase tasks.yaml --model gpt-5 --reader claude-opus-5 --as terse --providers providers.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.tasks = args[0]
			if err := f.check(); err != nil {
				return err
			}
			err := untilInterrupted(cmd.Context(), p, func(ctx context.Context) error { return phrase(ctx, p, f) })
			if coded := (*codedError)(nil); errors.As(err, &coded) && coded.code == exitInterrupted {
				return &codedError{exitInterrupted, errors.New("interrupted\n" +
					"hint: what you kept is in the file; the same command goes on")}
			}
			return err
		},
	}
	cmd.Flags().StringVar(&f.model, "model", "", "the `model` that writes")
	cmd.Flags().StringVar(&f.reader, "reader", "", "the `model` that compares; the default is the one that writes")
	cmd.Flags().StringVar(&f.as, "as", "casual", "the `phrasing` to add, which is the style that is asked for")
	cmd.Flags().StringVar(&f.providers, "providers", "", "the providers `file` that lists the models")
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
	return cmd
}

func (f *phraseFlags) check() error {
	if f.reader == "" {
		f.reader = f.model
	}
	switch {
	case f.model == "":
		return usageError("--model is missing\nhint: --model NAME --providers FILE")
	case sim.Is(f.model) || sim.Is(f.reader):
		return usageError("simulated models cannot write or compare texts\nhint: --model NAME --providers FILE")
	case !library.ValidName(f.as) || f.as == assay.Plain || f.as == plan.All:
		return usageError("--as %q is not a valid name of another phrasing\nhint: use up to 60 letters, digits, dashes and "+
			"underscores; the plain words of a task are its prompt", f.as)
	case !library.IsTaskFile(f.tasks):
		return usageError("%s is no YAML file of tasks\nhint: the built-in and fresh libraries have phrasings already: "+
			"phrasings: [plain, reordered, casual, typed] in an experiment", f.tasks)
	case f.providers == "":
		return usageError("--providers is missing\nhint: --providers FILE names the providers file that lists %s", f.model)
	}
	return nil
}

// phrase goes through the tasks of a file.
func phrase(ctx context.Context, p *process, f phraseFlags) (err error) {
	doc, left, err := f.unphrased(ctx)
	if err != nil {
		return err
	}
	if err := atomicfile.Check(f.tasks); err != nil {
		return err
	}
	if len(left) == 0 {
		p.say("Every task of %s has the phrasing %s.", f.tasks, f.as)
		return nil
	}
	var models [2]rephrase.Model
	for i, name := range []string{f.model, f.reader} {
		if i == 1 && name == f.model { // one pool keeps the limits of both
			models[i] = models[0]
			break
		}
		pool, closePool, failed := job.OnePool(ctx, job.One{Name: "phrase", Model: name, Providers: f.providers}, p.env, 0)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, closePool()) }()
		_, effort := plan.SplitLevel(name)
		models[i] = rephrase.Model{Provider: pool, Name: name, Sampling: assay.Sampling{Effort: effort}}
	}
	answers := answersIn(p.in)
	var spend assay.Spend
	kept := 0
	defer func() {
		p.say("%d of %s kept in %s; %s.", kept, assay.Counted(len(left), "phrasing"), f.tasks, costOf(spend))
		if kept > 0 {
			p.say("Next: write phrasings: [plain, %s] in an experiment.", f.as)
		}
	}()
	for i, task := range left {
		fmt.Fprintf(p.out, "%s (%d of %d)\n", sanitize(task.id), i+1, len(left))
		answered := p.sayWaiting("    waiting for " + f.model)
		proposal, err := rephrase.Propose(ctx, models[0], models[1], task.text(doc), f.as)
		answered()
		spend = spend.Add(proposal.Spend)
		switch {
		case errors.Is(err, rephrase.ErrNothing):
			p.say("  %s", err)
			continue
		case err != nil:
			return err
		}
		p.compare(task.text(doc), proposal, f.reader)
		if input, ok := p.in.(*os.File); ok && isTerminal(input) {
			select {
			case <-answers: // typed before there was a question
			default:
			}
		}
		keep, err := p.decides(ctx, answers)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case !keep:
			continue
		}
		if doc, err = f.add(doc, task, proposal.Text); err != nil {
			return err
		}
		kept++
	}
	return nil
}

// usualWait is how long a person waits until a line says what for, and again.
const usualWait = 10 * time.Second

// sayWaiting says every now and then what the program waits for, until the returned function is called.
func (p *process) sayWaiting(what string) (over func()) {
	began, done := time.Now(), make(chan struct{})
	var saying sync.WaitGroup
	saying.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(usualWait):
				fmt.Fprintf(p.err, "%s for %s; it may be slow, or refuse requests because of its limits\n",
					what, time.Since(began).Round(time.Second))
			}
		}
	})
	return func() { close(done); saying.Wait() }
}

func costOf(s assay.Spend) string {
	if s.AtLeast() {
		return assay.CostText(s.CostUSD, 4, "these models")
	}
	return assay.CostText(s.CostUSD, 4)
}

// An unphrasedTask is a task of a file that lacks a phrasing.
type unphrasedTask struct{ id, path string }

func (t unphrasedTask) text(doc *yamldoc.Document) string {
	return strings.TrimSpace(doc.Node(t.path + ".prompt").Value)
}

// unphrased reads a file, which has to be a valid library, and lists its tasks without the phrasing.
func (f phraseFlags) unphrased(ctx context.Context) (doc *yamldoc.Document, left []unphrasedTask, err error) {
	lib, err := library.OpenNamed(ctx, f.tasks)
	if err != nil {
		return nil, nil, err
	}
	if err := lib.Close(); err != nil {
		return nil, nil, err
	}
	if doc, err = yamldoc.Read(f.tasks, yamldoc.Help{}); err != nil {
		return nil, nil, err
	}
	for i := 0; doc.Has(fmt.Sprintf("$.tasks[%d]", i)); i++ {
		at := fmt.Sprintf("$.tasks[%d]", i)
		if doc.Has(at+".prompt") && !doc.Has(at+".phrasings."+f.as) {
			if _, err := doc.Insert(at, "phrasings", f.as, "in other words"); err != nil {
				return nil, nil, err
			}
			left = append(left, unphrasedTask{doc.Node(at + ".id").Value, at})
		}
	}
	if !doc.Has("$.tasks[0].prompt") {
		return nil, nil, doc.At("$.tasks", "the environment names the tasks, so they have no prompts here",
			"`phrasings:` of a task that the environment names is in the output of its command")
	}
	return doc, left, nil
}

// add writes a phrasing into the file, in which the task must not have changed.
func (f phraseFlags) add(doc *yamldoc.Document, t unphrasedTask, text string) (*yamldoc.Document, error) {
	before := t.text(doc)
	doc, err := yamldoc.Read(f.tasks, yamldoc.Help{})
	if err != nil {
		return nil, err
	}
	if !doc.Has(t.path+".prompt") || t.text(doc) != before || doc.Has(t.path+".phrasings."+f.as) {
		return nil, fmt.Errorf("task %s of %s has changed since it was read, so this was not written: %q\n"+
			"hint: run the same command again", t.id, f.tasks, text)
	}
	source, err := doc.Insert(t.path, "phrasings", f.as, text)
	if err != nil {
		return nil, err
	}
	if doc, err = yamldoc.Parse(f.tasks, source, yamldoc.Help{}); err != nil {
		return nil, err
	}
	return doc, atomicfile.Write(nil, f.tasks, func(w io.Writer) error {
		_, err := w.Write(source)
		return err
	})
}

// compare shows a task and its proposal.
func (p *process) compare(task string, proposal rephrase.Proposal, reader string) {
	for _, text := range []struct{ sign, words string }{{"  - ", task}, {"  + ", proposal.Text}} {
		for line := range strings.Lines(text.words) {
			p.item(text.sign, sanitize(strings.TrimSpace(line)))
		}
	}
	switch proposal.Verdict {
	case rephrase.Same:
		p.item("    ", sanitize(reader)+" finds no difference.")
	case rephrase.Differs:
		p.item("    ", sanitize(reader)+" finds a difference: "+sanitize(proposal.Why))
	default:
		p.item("    ", sanitize(reader)+" gave no verdict: "+sanitize(proposal.Why))
	}
	if len(proposal.Lost) > 0 {
		p.item("    ", "lost: "+sanitize(strings.Join(proposal.Lost, ", ")))
	}
	if len(proposal.Added) > 0 {
		p.item("    ", "added: "+sanitize(strings.Join(proposal.Added, ", ")))
	}
}

// decides asks a person until the answer is clear. The error is [io.EOF] if there is no more answer.
func (p *process) decides(ctx context.Context, answers <-chan string) (keep bool, err error) {
	for {
		fmt.Fprint(p.out, "    Keep it? [y]es, [n]o, [q]uit: ")
		select {
		case <-ctx.Done():
			fmt.Fprintln(p.out)
			return false, context.Cause(ctx)
		case answer, more := <-answers:
			switch strings.ToLower(strings.TrimSpace(answer)) {
			case "y", "yes":
				return true, nil
			case "n", "no":
				return false, nil
			case "q", "quit":
				return false, io.EOF
			}
			if !more {
				fmt.Fprintln(p.out)
				return false, io.EOF
			}
		}
	}
}

// answersIn sends the lines of a reader until it ends, or the program does.
func answersIn(r io.Reader) <-chan string {
	all := make(chan string)
	go func() {
		defer close(all)
		for s := bufio.NewScanner(r); s.Scan(); {
			all <- s.Text()
		}
	}()
	return all
}
