package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

func newCtl(p *process) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "Control a run from another terminal",
		Long: `Ctl talks to the run that uses a store, over a socket next to the store that
only you can open. A NAME is a model, a lane (provider/KEY/deployment), the
beginning of a lane's name such as provider/KEY, or the beginning of a trial ID.
"ctl set all" changes every lane.
Every change is logged in the store.`,
		Example: `  assay ctl status
  assay ctl pause gateway/GATEWAY_KEY_1
  assay ctl resume
  assay ctl set gateway/GATEWAY_KEY_1/qwen2.5-7b rpm=300 concurrency=4
  assay ctl cancel 3f2a9c
  assay ctl requeue
  assay ctl drain gpu-3`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&path, "store", defaultStore, "the `file` with the run's results")
	send := func(cmd *cobra.Command, o session.Order) error {
		r, err := sendOrder(cmd.Context(), path, o)
		if err == nil {
			p.say("%s", r.Text)
		}
		return err
	}

	for _, v := range []struct{ do, args, short, example string }{
		{"pause", "[NAME...]", "Pause some lanes, or all", "gateway/GATEWAY_KEY_1"},
		{"resume", "[NAME...]", "Resume paused lanes", "gateway/GATEWAY_KEY_1"},
		{"cancel", "NAME...", "Take trials out of this run; they stay pending", "3f2a9c"},
		{"requeue", "[NAME...]", "Run parked and cancelled trials again", "my-model"},
		{"drain", "WORKER...", "Let workers finish what they have, and go", "gpu-3"},
	} {
		args := cobra.ArbitraryArgs
		if v.do == "cancel" || v.do == "drain" {
			args = cobra.MinimumNArgs(1)
		}
		cmd.AddCommand(&cobra.Command{
			Use: v.do + " " + v.args, Short: v.short, Args: args,
			Example: "  assay ctl " + v.do + " " + v.example,
			RunE: func(cmd *cobra.Command, names []string) error {
				return send(cmd, session.Order{Do: v.do, Names: names})
			},
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use: "set NAME... LIMIT=N...", Short: "Change limits of lanes, or of all; 0 removes one",
		Example: "  assay ctl set my-model concurrency=4 rpm=300 tpm=0",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := parseSet(args)
			if err != nil {
				return err
			}
			return send(cmd, o)
		},
	})
	cmd.AddCommand(newCtlStatus(p, &path))
	return cmd
}

func newCtlStatus(p *process, path *string) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "status", Short: "Show the run's lanes, their limits and what they wait for",
		Example: `  assay ctl status
  assay ctl status --json | jq '.models[].lanes'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := sendOrder(cmd.Context(), *path, session.Order{Do: "status"})
			if err != nil {
				return err
			}
			return p.either(asJSON, r.Run, func() { writeState(p, r.Run) })
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// everyLane names all lanes of a run.
const everyLane = "all"

// parseSet reads "NAME... LIMIT=N...".
func parseSet(args []string) (session.Order, error) {
	o := session.Order{Do: "set", Limits: make(map[assay.Bucket]int)}
	var known []string
	for _, b := range lane.Buckets {
		known = append(known, string(b))
	}
	all := strings.Join(known, ", ")
	for _, arg := range args {
		name, value, isLimit := strings.Cut(arg, "=")
		if !isLimit {
			o.Names = append(o.Names, arg)
			continue
		}
		if new(lane.Limits).Of(assay.Bucket(name)) == nil {
			hint := cmp.Or(assay.NameHint(name, known), "known are "+all)
			return o, usageError("unknown limit %q\nhint: %s", name, hint)
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return o, usageError("%s is %q, not a whole number\nhint: 0 removes the limit",
				name, value)
		}
		o.Limits[assay.Bucket(name)] = n
	}
	switch {
	case slices.Contains(o.Names, everyLane) && len(o.Names) > 1:
		return o, usageError("%s stands for every lane; leave out the other names", everyLane)
	case len(o.Limits) > 0 && len(o.Names) == 0:
		return o, usageError("no lane or model is named\nhint: `assay ctl status` lists them; "+
			"`assay ctl set %s %s` changes every lane", everyLane, strings.Join(args, " "))
	case len(o.Names) == 1 && o.Names[0] == everyLane:
		o.Names = nil
	}
	if len(o.Limits) == 0 {
		return o, usageError("no limit to set\nhint: write LIMIT=N, where LIMIT is one of %s", all)
	}
	return o, nil
}

func sendOrder(ctx context.Context, storePath string, o session.Order) (session.Reply, error) {
	r, err := session.Send(ctx, storePath, o)
	if errors.Is(err, session.ErrNoRun) {
		err = fmt.Errorf("no run is working on %s\n"+
			"hint: --store names the store of the run; `assay status` shows its results", storePath)
	}
	return r, err
}

func workerText(w terminal.Worker) string {
	switch {
	case w.Lost:
		return "lost"
	case w.Leaving:
		return "leaving"
	}
	return "works"
}

func writeState(p *process, s *terminal.Progress) {
	elapsed := time.Duration(s.Elapsed * float64(time.Second)).Round(time.Second)
	p.say("run %s of experiment %s: %d of %d trials done, %d episodes in flight, running for %s",
		s.Run, s.Experiment, s.Done, s.Planned, s.InFlight, elapsed)
	if end := s.EndText(); end != "" {
		p.say("%s", end)
	}
	fmt.Fprintln(p.out)
	t := p.table("model", "lane", "in flight", "limits", "waits for")
	for _, m := range s.Models {
		for _, l := range m.Lanes {
			t.Row(m.Model, l.Lane, fmt.Sprint(l.InFlight), l.LimitsText(),
				cmp.Or(l.Waits, "–"))
		}
	}
	fmt.Fprintln(p.out, t)
	for _, m := range s.Models {
		if agents := terminal.AgentText(m.Agents); agents != "" {
			p.item("agents: ", m.Model+" "+agents)
		}
		for _, l := range m.Lanes {
			if l.Words != "" {
				p.item("endpoint: ", fmt.Sprintf("%s waits for %s: %q", l.Lane, l.Waits, l.Words))
			}
		}
	}
	if len(s.Workers) > 0 {
		t := p.table("worker", "in flight", "slots", "done", "heard", "state")
		for _, w := range s.Workers {
			t.Row(w.Name, fmt.Sprint(w.InFlight), fmt.Sprint(w.Slots), fmt.Sprint(w.Done),
				time.Since(w.Seen).Round(time.Second).String()+" ago", workerText(w))
		}
		fmt.Fprint(p.out, "\n", t, "\n")
	}
	for _, a := range s.Attention {
		p.item("attention: ", a.String())
	}
	for _, n := range s.Notes[max(0, len(s.Notes)-5):] {
		p.item("note: ", n)
	}
}
