package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"sync"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/dashboard"
	"github.com/assay-eval/assay/internal/store"
)

// viewAddr is where pages are served unless --addr names another place: a free port that only this
// machine can reach.
const viewAddr = "127.0.0.1:0"

func newView(p *process) *cobra.Command {
	var path, addr string
	var control, reveal bool
	cmd := &cobra.Command{
		Use:   "view [EXPERIMENT]",
		Short: "Watch a run, or look at its results, in a browser",
		Long: `View serves pages about an experiment: how its run is going and what needs you,
the lanes, the rates so far, every trial with its conversation, faults, and the
report. They are live while a run works, in whatever terminal, and the same when
it is over. Without EXPERIMENT, they show the one of the latest run.

Open the address that view prints. It has a token, so other users of this machine
cannot read the pages. They only show, unless --control lets you pause and resume
lanes, set limits, requeue and cancel trials.

To look from another machine, forward the port: ssh -L 7000:127.0.0.1:7000 HOST,
with --addr 127.0.0.1:7000.`,
		Example: `  assay view
  assay view flawed-workflows --store results.db
  assay view --control --addr 127.0.0.1:7000
  assay run experiment.yaml --view`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			ctx := cmd.Context()
			db, err := p.openToRead(ctx, path)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, db.Close()) }()
			e, err := latestExperiment(ctx, db, args)
			if err != nil {
				return err
			}
			v, err := listenView(ctx, addr)
			if err != nil {
				return err
			}
			fmt.Fprintln(p.out, v.url)
			fmt.Fprintln(p.err, "Ctrl-C ends the view, not the run")
			err = v.serve(ctx, db, e, dashboard.Options{
				Store: path, Control: control, Reveal: reveal,
			})
			if ctx.Err() != nil {
				return nil // Ctrl-C is how a view ends
			}
			return err
		},
	}
	storeFlag(cmd, &path)
	cmd.Flags().StringVar(&addr, "addr", viewAddr,
		"`address` to listen on; port 0 takes a free one")
	cmd.Flags().BoolVar(&control, "control", false, "let the pages change the run")
	revealFlag(cmd, &reveal)
	cmd.ValidArgsFunction = namesIn(&path, experimentNames)
	return cmd
}

// openView listens, and serves the pages of an experiment once its run has begun.
func (f *runFlags) openView(
	ctx context.Context, d *display, experiment string,
) (*pageAddress, error) {
	v, err := listenView(ctx, f.view)
	if err != nil {
		return nil, err
	}
	d.begun = func() {
		d.warn("pages of this run: %s", v.url)
		v.serveRun(ctx, experiment, dashboard.Options{Store: f.store, Control: f.control},
			func(err error) { d.warn("assay: the pages have ended: %v", err) })
	}
	return v, nil
}

// latestExperiment returns the named experiment, or the one of the latest run.
func latestExperiment(
	ctx context.Context, db *store.DB, args []string,
) (e store.Experiment, err error) {
	all, err := chooseExperiments(ctx, db, args)
	if err != nil {
		return e, err
	}
	if len(all) == 0 {
		return e, errors.New("the store holds no experiment yet\nhint: `assay run` runs one")
	}
	return latest(all), nil
}

// latest returns the experiment of the latest run.
func latest(all []store.Experiment) store.Experiment {
	own := slices.DeleteFunc(slices.Clone(all), func(e store.Experiment) bool {
		_, forks := plan.ForkedFrom(e.Name)
		return forks
	})
	if len(own) > 0 && len(all) > 1 {
		all = own // forks are asked for by their name
	}
	return slices.MaxFunc(all,
		func(a, b store.Experiment) int { return a.UpdatedAt.Compare(b.UpdatedAt) })
}

// A pageAddress is a place where pages are served, or will be.
type pageAddress struct {
	listener net.Listener
	token    string
	url      string // with the token
	end      func()
	served   sync.WaitGroup
}

func listenView(ctx context.Context, addr string) (*pageAddress, error) {
	addr, err := loopback(addr)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("%w\nhint: %s takes a free port", err, viewAddr)
	}
	v := &pageAddress{listener: l, token: rand.Text()}
	u := url.URL{
		Scheme: "http", Host: l.Addr().String(), Path: "/",
		RawQuery: url.Values{"token": {v.token}}.Encode(),
	}
	v.url = u.String()
	return v, nil
}

// serve serves the pages of an experiment until ctx ends.
func (v *pageAddress) serve(
	ctx context.Context, db *store.DB, e store.Experiment, o dashboard.Options,
) error {
	o.Token, o.Program, o.Words = v.token, version(), words
	server, err := dashboard.Open(ctx, db, e, o)
	if err != nil {
		return errors.Join(err, v.listener.Close())
	}
	return errors.Join(server.Serve(ctx, v.listener), server.Close())
}

// serveRun serves the pages of a run that has begun, from the store as other processes see it,
// until close is called. If that fails, the run goes on.
func (v *pageAddress) serveRun(
	ctx context.Context, experiment string, o dashboard.Options, failed func(error),
) {
	ctx, v.end = context.WithCancel(context.WithoutCancel(ctx))
	v.served.Go(func() {
		db, err := store.OpenReadOnly(ctx, o.Store)
		if err != nil {
			failed(err)
			return
		}
		e, err := latestExperiment(ctx, db, []string{experiment})
		if err == nil {
			err = v.serve(ctx, db, e, o)
		}
		if err = errors.Join(err, db.Close()); err != nil && ctx.Err() == nil {
			failed(err)
		}
	})
}

// close ends serveRun.
func (v *pageAddress) close() {
	if v.end != nil {
		v.end()
	}
	v.served.Wait()
	_ = v.listener.Close() // it may be closed already
}

// loopback returns an address that only this machine can reach, because the pages are not
// encrypted. It refuses others.
func loopback(addr string) (string, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return "", usageError("address %q of the pages: %w\nhint: write 127.0.0.1:7000, or :7000", addr, err)
	}
	if host == "" {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	ip, err := netip.ParseAddr(host)
	if host != "localhost" && (err != nil || !ip.IsLoopback()) {
		return "", usageError("address %s: other machines could reach the pages, which are not "+
			"encrypted\nhint: listen on 127.0.0.1 and forward the port with ssh -L", addr)
	}
	return addr, nil
}
