package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/check"
	"github.com/assay-eval/assay/internal/store"
)

type checkFlags struct {
	chosen
	timeout    time.Duration
	simLatency time.Duration
	asJSON     bool
	agents     bool
}

func newCheck(p *process) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Try every deployment, key and agent before a run spends money",
		Long: `Check sends the first two turns of a trial on every lane: each combination of a
deployment, a key and a model. It shows whether the key is accepted, which model answers,
whether calls of tools are parsed, whether the endpoint accepts the state of its own
replies (such as signed thinking), and what it reports about usage, caches and limits.
The models of a simulated user and of a judge get one message without tools.
Below the table is what to change, in the words of the providers file.

FILE is an experiment file, and the default is experiment.yaml in this directory. Without
it, --providers names the providers file, and --model some of its models and agents; the
default is all of them. Nothing is stored.

Each agent works with a built-in model that follows a script, so this costs nothing: on a
task of five steps, on the same task with a tool that fails once, and without an end. The
table shows

  tools            how many of the five it offers to its model, and others of its own
  parallel calls   whether it carries out all calls of one reply, in their order
  streamed calls   the same for replies in a stream, if it asks for them
  results, errors  whether its model sees what tools answer, and why they fail
  tokens           exact, unless its model is asked for more than the task needs, or not
                   through Assay
  limits           whether the experiment's limit of turns ends it, or its own
  end              how it ends, and whether it does when it gets SIGTERM
  room             the sandbox of its program

With --agents, only agents are checked, and no endpoint gets a request.

Lanes are checked at the same time, within their limits. A reply has at most 4,096 tokens
besides a stated budget of thinking. Agents work until they end.

Exit codes: 0 everything is fine, 1 error, 2 wrong usage or file, 3 something to change.`,
		Example: `  assay check experiment.yaml
  assay check --providers providers.yaml
  assay check --providers providers.yaml --model my-model --json
  assay check --agents               how agents treat calls, errors and limits, for free`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.timeout <= 0 {
				return usageError("--timeout is %v, want more than 0", f.timeout)
			}
			if f.providers == "" {
				args = f.file(args)
			}
			if len(args) == 0 && f.providers == "" {
				return usageError("nothing to check\n" +
					"hint: `assay check experiment.yaml`, or --providers FILE")
			}
			return p.check(cmd.Context(), args, f)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&f.models, "model", nil,
		"a `model` to check instead of those in the file; may be given several times")
	flags.StringVar(&f.providers, "providers", "",
		"the providers `file` to use instead of the experiment's")
	flags.DurationVar(&f.timeout, "timeout", check.DefaultTimeout,
		"how long a lane may take, and an agent by itself; a server that loads its model takes longer")
	flags.BoolVar(&f.agents, "agents", false, "check only agents, with a model that costs nothing")
	flags.BoolVar(&f.asJSON, "json", false, "print one JSON object")
	simLatencyFlag(cmd, &f.simLatency)
	_ = cmd.MarkFlagFilename("providers", "yaml", "yml")
	return cmd
}

// check tries the lanes, prints the results and chooses the exit code.
func (p *process) check(ctx context.Context, args []string, f checkFlags) (err error) {
	if len(args) == 0 && len(f.models) == 0 {
		providers, err := plan.LoadProviders(f.providers, p.env)
		if err != nil {
			return err
		}
		f.models = append(providers.Models(), slices.Sorted(maps.Keys(providers.Agents))...)
	}
	e, err := f.experiment(args)
	if err != nil {
		return err
	}
	j, err := job.Open(ctx, e, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	pools, err := j.Pools(p.env, f.simLatency)
	if err != nil {
		return err
	}
	defer pools.Close()
	if f.agents && len(pools.Agents) == 0 {
		return usageError("no agent to check\nhint: `assay init my-agent` writes one, with a providers file")
	}
	tell := func(string) {}
	if p.errTerminal && !f.asJSON {
		tell = func(what string) { fmt.Fprintf(p.err, "checking %s, for at most %v\n", sanitize(what), f.timeout) }
	}
	found := make(map[string]any)
	var results []check.Result
	if !f.agents {
		tell("lanes")
		if results, err = check.Run(ctx, j, pools, f.timeout); err != nil {
			return err
		}
		found["lanes"] = results
	}
	agents, err := check.Agents(ctx, j, pools, f.timeout, tell)
	if err != nil {
		return err
	}
	if len(pools.Notes) > 0 {
		found["notes"] = pools.Notes
	}
	if len(agents) > 0 {
		found["agents"] = agents
	}
	err = p.either(f.asJSON, found, func() {
		if !f.agents {
			writeCheck(p, results)
		}
		for _, note := range pools.Notes {
			p.say("%s", sanitize(note))
		}
		if len(results) > 0 && len(agents) > 0 {
			fmt.Fprintln(p.out)
		}
		writeAgents(p, agents)
	})
	changes := 0
	for _, r := range results {
		changes += len(r.Changes)
	}
	for _, a := range agents {
		changes += len(a.Changes)
	}
	if err == nil && changes > 0 {
		err = &codedError{code: exitIncomplete}
	}
	return err
}

// writeAgents prints how each agent behaves, what it printed if it did not end well, and the advised changes.
func writeAgents(p *process, agents []check.Agent) {
	if len(agents) == 0 {
		return
	}
	t := p.table("agent", "starts", "tools", "parallel\ncalls", "streamed\ncalls", "results", "errors", "tokens",
		"limits", "end", "room")
	for _, a := range agents {
		tools := "–"
		if a.Offered+a.Own > 0 {
			tools = fmt.Sprint(a.Offered)
		}
		if a.Own > 0 {
			tools += fmt.Sprintf(" + %d", a.Own)
		}
		cells := []string{sanitize(a.Agent), yesNo(a.Starts), tools}
		for _, f := range []check.Finding{
			a.Parallel, a.Streamed, a.Results, a.Errors, a.Tokens, a.Limit, a.End,
			check.Finding(a.Sandbox),
		} {
			cells = append(cells, sanitize(orDash(string(f))))
		}
		t.Row(cells...)
	}
	fmt.Fprintf(p.out, "%s\n", t)
	var change, know said
	for _, a := range agents {
		p.printed(a.Agent+" printed", a.Printed)
		change.add(a.Agent, a.Changes)
		know.add(a.Agent, a.Notes)
	}
	change.print(p, "To change", 0)
	know.print(p, "To know", 0)
}

// printed prints the last lines of a program under a heading, unless it printed no lines.
func (p *process) printed(head, lines string) {
	if lines == "" {
		return
	}
	fmt.Fprintf(p.out, "\n%s:\n", sanitize(head))
	for line := range strings.Lines(lines) {
		line = strings.ReplaceAll(strings.TrimRight(line, "\n"), "\t", "    ")
		fmt.Fprintf(p.out, "    %s\n", sanitize(line))
	}
}

func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// writeCheck prints a table of lanes, and below it the advised changes and the notes.
func writeCheck(p *process, results []check.Result) {
	t := p.table("model", "lane", "reply", "model served", "calls", "state", "tokens", "cached",
		"limits told")
	requests, tokens, usd := 0, 0, 0.0
	var unpriced []string
	for _, r := range results {
		reply := fmt.Sprintf("%.1f s", r.Took)
		if r.Fault != nil {
			reply = string(r.Fault.Kind)
		}
		t.Row(sanitize(r.Model), sanitize(r.Lane), reply, sanitize(orDash(r.Served)),
			orDash(string(r.Calls)), orDash(string(r.State)), count(r.Usage.Total()),
			count(r.Usage.CachedTokens), toldText(r.Limits))
		requests, tokens, usd = requests+r.Turns, tokens+r.Usage.Total(), usd+r.CostUSD
		if r.Usage.UnpricedTokens > 0 && !slices.Contains(unpriced, r.Model) {
			unpriced = append(unpriced, r.Model)
		}
	}
	fmt.Fprintf(p.out, "%s\n\n", t)
	total := fmt.Sprintf("%s, %s, %s", assay.Counted(len(results), "lane"), replies(requests),
		assay.Counted(tokens, "token"))
	if usd > 0 || len(unpriced) > 0 {
		total += ", " + sanitize(assay.CostText(usd, 4, unpriced...))
	}
	p.say("%s.", total)
	var change, know said
	for _, r := range results {
		change.add(r.Lane, r.Changes)
		if f := r.Fault; f != nil && f.Kind != assay.Identity {
			change.add(r.Lane, []string{"the fault: " + f.Detail})
		}
		know.add(r.Lane, r.Notes)
	}
	change.print(p, "To change", len(results))
	know.print(p, "To know", len(results))
}

func replies(n int) string {
	if n == 1 {
		return "1 reply"
	}
	return fmt.Sprintf("%d replies", n)
}

// said holds remarks, in order, each with the names of the lanes or agents that it is about.
type said struct {
	words []string
	about map[string][]string
}

func (s *said) add(name string, words []string) {
	if s.about == nil {
		s.about = make(map[string][]string)
	}
	for _, w := range words {
		if s.about[w] == nil {
			s.words = append(s.words, w)
		}
		s.about[w] = append(s.about[w], name)
	}
}

// print prints a list under a heading, unless it is empty. All is the number of lanes.
func (s *said) print(p *process, head string, all int) {
	for i, w := range s.words {
		if i == 0 {
			fmt.Fprintf(p.out, "\n%s:\n", head)
		}
		text := together(s.about[w], all) + ": " + strings.ReplaceAll(w, "\n", "; ")
		p.item("  ", sanitize(text))
	}
}

// together names some of all lanes.
func together(lanes []string, all int) string {
	const most = 3
	switch n := len(lanes); {
	case n == all && n > 1:
		return "all lanes"
	case n > most:
		return fmt.Sprintf("%s and %d more", strings.Join(lanes[:most-1], ", "), n-most+1)
	}
	return strings.Join(lanes, ", ")
}

func orDash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

func count(n int) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprint(n)
}

// toldText lists the limits that headers reported.
func toldText(l lane.Limits) string {
	var parts []string
	for _, b := range lane.Buckets {
		if n := *l.Of(b); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", b, n))
		}
	}
	return orDash(strings.Join(parts, ", "))
}

// checkCommand returns the command that checks the lanes of a run.
func checkCommand(args []string, c *chosen) string {
	words := append([]string{"assay", "check"}, args...)
	for _, m := range c.models {
		words = append(words, "--model", m)
	}
	if c.providers != "" {
		words = append(words, "--providers", c.providers)
	}
	return strings.Join(words, " ")
}

// offerCheck mentions the check if the store has no attempt on some lane of a provider, unless the
// run is part of continuous integration.
func (p *process) offerCheck(
	ctx context.Context, j *job.Job, db *store.DB, command string,
) error {
	if ci, _ := p.env("CI"); ci != "" || j.Experiment.Providers == "" {
		return nil
	}
	pools, err := j.Pools(p.env, 0)
	if err != nil {
		return err
	}
	defer pools.Close()
	fresh := make(map[string]bool)
	for _, configs := range pools.Configs {
		for _, c := range configs {
			used, err := db.Used(ctx, c.Name)
			if err != nil {
				return err
			}
			if !used && c.Origin != "" { // a built-in model has no origin
				fresh[c.Name] = true
			}
		}
	}
	if len(fresh) > 0 {
		fmt.Fprintf(p.err, "first use of %s; `%s` tries them with two requests each\n",
			assay.Counted(len(fresh), "lane"), command)
	}
	return nil
}
