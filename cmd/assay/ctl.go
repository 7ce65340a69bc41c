package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/result/document"
)

func newCtl(p *process) *cobra.Command {
	var path string
	cmd := &cobra.Command{
		Use:   "ctl",
		Short: "Change a run while it works, from another terminal",
		Long: `Ctl talks to the run that works on a store, over a socket beside it that only
you can open. Names are models, lanes (provider/KEY/deployment), the beginning
of a lane's name such as provider/KEY, or the beginning of a trial's ID. Every
change is logged in the store.`,
		Example: `  assay ctl status
  assay ctl pause gateway/GATEWAY_KEY_1
  assay ctl resume
  assay ctl set gateway/GATEWAY_KEY_1/qwen2.5-7b rpm=300 concurrency=4
  assay ctl cancel 3f2a9c
  assay ctl requeue`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().StringVar(&path, "store", "assay.db", "the `file` of the run's results")
	send := func(cmd *cobra.Command, o order) error {
		r, err := sendOrder(cmd.Context(), path, o)
		if err == nil {
			fmt.Fprintln(p.out, r.Text)
		}
		return err
	}
	for _, v := range []struct{ do, args, short, example string }{
		{"pause", "[NAME...]", "Start no new request on some lanes, or on all", "gateway/GATEWAY_KEY_1"},
		{"resume", "[NAME...]", "Let paused lanes go on", "gateway/GATEWAY_KEY_1"},
		{"cancel", "NAME...", "Take trials out of this run, in flight or not; they stay pending", "3f2a9c"},
		{"requeue", "[NAME...]", "Run parked and cancelled trials again", "my-model"},
	} {
		args := cobra.ArbitraryArgs
		if v.do == "cancel" {
			args = cobra.MinimumNArgs(1)
		}
		cmd.AddCommand(&cobra.Command{
			Use: v.do + " " + v.args, Short: v.short, Args: args, Example: "  assay ctl " + v.do + " " + v.example,
			RunE: func(cmd *cobra.Command, names []string) error { return send(cmd, order{Do: v.do, Names: names}) },
		})
	}
	cmd.AddCommand(&cobra.Command{
		Use: "set NAME... LIMIT=N...", Short: "State limits anew; 0 for none stated",
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
		Use: "status", Short: "Show the lanes of the run, their limits and what they wait for",
		Example: `  assay ctl status
  assay ctl status --json | jq .lanes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := sendOrder(cmd.Context(), *path, order{Do: "status"})
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(p.out).Encode(r.Run)
			}
			writeControlState(p, r.Run)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// parseSet reads "NAME... LIMIT=N...".
func parseSet(args []string) (order, error) {
	o := order{Do: "set", Limits: make(map[assay.Bucket]int)}
	var known []string
	for _, b := range lane.Buckets {
		known = append(known, string(b))
	}
	for _, arg := range args {
		name, value, isLimit := strings.Cut(arg, "=")
		if !isLimit {
			o.Names = append(o.Names, arg)
			continue
		}
		if new(lane.Limits).Of(assay.Bucket(name)) == nil {
			return o, usageError("unknown limit %q\nhint: %s", name, cmp.Or(assay.NameHint(name, known), "known are "+strings.Join(known, ", ")))
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 0 {
			return o, usageError("%s is %q, not a whole number; 0 states no limit", name, value)
		}
		o.Limits[assay.Bucket(name)] = n
	}
	if len(o.Limits) == 0 {
		return o, usageError("no limit to set\nhint: write LIMIT=N, of %s", strings.Join(known, ", "))
	}
	return o, nil
}

// sendOrder sends an order to the run on a store.
func sendOrder(ctx context.Context, storePath string, o order) (reply, error) {
	path, err := socketPath(storePath)
	if err != nil {
		return reply{}, err
	}
	client := &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}}
	body, err := json.Marshal(o)
	if err != nil {
		return reply{}, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://run/", bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	resp, err := client.Do(req)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return reply{}, fmt.Errorf("no run works on %s\nhint: --store names the store of the run; `assay status` shows its results", storePath)
	case errors.Is(err, fs.ErrPermission):
		return reply{}, fmt.Errorf("the run on %s belongs to another user: %w", storePath, err)
	case err != nil:
		return reply{}, err
	}
	defer resp.Body.Close()
	var r reply
	if err := json.NewDecoder(resp.Body).Decode(&r); err != nil {
		return r, fmt.Errorf("the run's answer cannot be read: %w", err)
	}
	if r.Error != "" {
		return r, errors.New(r.Error)
	}
	return r, nil
}

func writeControlState(p *process, s *runControl) {
	fmt.Fprintf(p.out, "run %s of experiment %s: %d of %d trials done, %d episodes in flight, for %s\n\n",
		s.Run, s.Experiment, s.Done, s.Planned, s.InFlight, time.Duration(s.Elapsed*float64(time.Second)).Round(time.Second))
	t := document.NewTextTable("model", "lane", "in flight", "limits", "waits for")
	for _, m := range s.Models {
		for _, l := range m.Lanes {
			t.Row(m.Model, l.Lane, fmt.Sprint(l.InFlight), limitsText(l.Limits, l.Learned), cmp.Or(l.Waits, "–"))
		}
	}
	fmt.Fprintln(p.out, t)
	for _, n := range s.Notes[max(0, len(s.Notes)-5):] {
		fmt.Fprintln(p.out, "note: "+n)
	}
}

// limitsText lists the limits that hold, and marks those that were learned.
func limitsText(limits, learned lane.Limits) string {
	var words []string
	for _, b := range lane.Buckets {
		n := *limits.Of(b)
		if n == 0 {
			continue
		}
		w := fmt.Sprintf("%s %d", b, n)
		if *learned.Of(b) > 0 {
			w += " (learned)"
		}
		words = append(words, w)
	}
	return strings.Join(words, ", ")
}
