package main

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/fleet"
)

// tokenVariable names the environment variable with the token that admits workers.
const tokenVariable = "ASSAY_WORKER_TOKEN"

type workerFlags struct {
	url         string
	tokenFile   string
	credentials string
	ca          string
	name        string
	slots       int
	once        bool
	dir         string
}

func newWorker(p *process) *cobra.Command {
	var f workerFlags
	cmd := &cobra.Command{
		Use:   "worker --connect URL",
		Short: "Carry out attempts for a run on another machine",
		Long: `Worker takes attempts from a run that was started with --serve, carries them out
here, and sends the results back. Agents, their tools and their files are on this
machine. Keys, limits and results stay with the run: every request to a model goes
through it, so a worker needs no key of a provider.

The token is in the environment variable ` + tokenVariable + `, or in the file that
--token-file names. Agents get the variables that the providers file passes on from
the worker's own environment.

A worker that is lost loses nothing: after 30 s without a word of it, others get its
attempts. It waits for the next run when one ends, unless --once is set. The first
Ctrl-C lets attempts in flight finish; the second gives them back.`,
		Example: `  assay run experiment.yaml --serve :4222
  assay worker --connect nats://127.0.0.1:4222 --token-file assay.db.token
  assay worker --connect tls://coordinator.example.com:4222 --ca ca.pem --slots 100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.work(cmd.Context(), p) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.url, "connect", "", "the `URL` of the run, or of its NATS server")
	flags.StringVar(&f.tokenFile, "token-file", "", "a `file` with the token")
	flags.StringVar(&f.credentials, "nats-creds", "",
		"a `file` of NATS credentials, for a server of one's own")
	flags.StringVar(&f.ca, "ca", "", "a `file` with certificates to trust, for tls://")
	flags.StringVar(&f.name, "name", hostName(), "the worker's `name` in results and lists")
	flags.IntVar(&f.slots, "slots", 8*runtime.NumCPU(), "attempts at a time")
	flags.BoolVar(&f.once, "once", false, "go when the run ends")
	flags.StringVar(&f.dir, "dir", "",
		"the `directory` of agents and tools, if it is another one than on the run's machine")
	_ = cmd.MarkFlagFilename("token-file")
	_ = cmd.MarkFlagFilename("ca", "pem", "crt")
	_ = cmd.MarkFlagDirname("dir")
	return cmd
}

// work works until the worker is no longer needed.
func (f *workerFlags) work(ctx context.Context, p *process) error {
	if f.url == "" {
		return usageError("--connect is missing\n" +
			"hint: `assay run --serve` prints the command of a worker")
	}
	if f.slots < 1 {
		return usageError("--slots %d: a worker needs at least one", f.slots)
	}
	if f.dir != "" {
		if err := readable(f.dir); err != nil {
			return err
		}
	}
	if err := checkNATS("--connect", f.url, f.credentials, f.ca); err != nil {
		return err
	}
	token, err := workerToken(p, f.tokenFile)
	if err != nil {
		return err
	}
	say := func(text string) {
		fmt.Fprintf(p.err, "%s %s: %s\n", time.Now().Format(time.TimeOnly), f.name, text)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	drain := make(chan struct{})
	go f.leave(ctx, p, cancel, drain, say)
	wanted := until(ctx, drain)
	link, err := fleet.Dial(wanted, fleet.Access{
		URL: f.url, Token: token, Credentials: f.credentials, CA: f.ca,
		Lost: func(err error) { say("lost the connection: " + err.Error()) },
		Back: func() { say("connected again") },
	}, func(err error) { say("waiting for " + f.url + ": " + err.Error()) })
	if wanted.Err() != nil && err != nil {
		return nil // it went before there was a run
	}
	if err != nil {
		return fmt.Errorf("connect to %s: %w\nhint: %s", f.url, err, connectHint(err, token))
	}
	defer link.Close()
	return fleet.NewWorker(link, fleet.WorkerOptions{
		Name: f.name, Program: version(), Slots: f.slots, Drain: drain, Once: f.once, Say: say,
		Dir: f.dir,
	}).Run(ctx)
}

// until returns a context that ends with ctx or when a channel is closed.
func until(ctx context.Context, closed <-chan struct{}) context.Context {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		select {
		case <-closed:
		case <-ctx.Done():
		}
	}()
	return ctx
}

// leave closes drain at the first signal, and ends the worker at the second.
func (f *workerFlags) leave(
	ctx context.Context, p *process, end func(), drain chan<- struct{}, say func(text string),
) {
	select {
	case <-p.signals:
		say("finishes its attempts, and goes; Ctrl-C again gives them back")
		close(drain)
	case <-ctx.Done():
		return
	}
	select {
	case <-p.signals:
		end()
	case <-ctx.Done():
	}
}

// connectHint advises on a connection that failed.
func connectHint(err error, token string) string {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "authorization") && token == "":
		return tokenVariable + " has the token, or --token-file names the file that the run wrote"
	case strings.Contains(text, "authorization"):
		return "the token is not that of the run"
	case strings.Contains(text, "certificate"):
		return "--ca names a file with the certificate of the run"
	case strings.Contains(text, "no such host"):
		return "no machine has this name"
	case strings.Contains(text, "timeout"):
		return "it may not be a run or a NATS server that listens there"
	}
	return "`assay run --serve` says how to connect"
}

// checkNATS checks the address of a NATS server, and that the files for it are there.
func checkNATS(flag, address string, files ...string) error {
	scheme, _, ok := strings.Cut(address, "://")
	if !ok && !strings.Contains(address, ":") {
		return usageError("%s %s: want an address with a port\nhint: write nats://HOST:PORT or tls://HOST:PORT", flag, address)
	}
	if ok && scheme != "nats" && scheme != "tls" {
		return usageError("%s %s: the scheme is %s\nhint: write nats://HOST:PORT or tls://HOST:PORT",
			flag, address, scheme)
	}
	for _, path := range files {
		if path == "" {
			continue
		}
		if err := readable(path); err != nil {
			return err
		}
	}
	return nil
}

// readable checks that a file or a directory can be read.
func readable(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return usageError("%w", err)
	}
	return f.Close()
}

// workerToken returns the token of a file, or else the token in the environment.
func workerToken(p *process, file string) (string, error) {
	if file == "" {
		token, _ := p.env(tokenVariable)
		return token, nil
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("%w\nhint: the run writes it when it starts", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// checkWorkers checks the settings of an experiment for workers, before anything runs.
func checkWorkers(e *plan.Experiment) error {
	s := &e.Workers
	switch {
	case s.NATS != "":
		return checkNATS("workers.nats", s.NATS, s.Credentials, s.CA)
	case s.Address != "":
		if _, err := listenAddress(s); err != nil {
			return err
		}
		_, err := certificateOf(s)
		return err
	}
	return nil
}

// certificateOf returns the certificate for workers, or nil if the experiment names no certificate.
func certificateOf(s *plan.Workers) (*tls.Certificate, error) {
	if s.Cert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(s.Cert, s.Key)
	if err != nil {
		return nil, usageError("workers.cert: %w", err)
	}
	return &pair, nil
}

// openExchange opens the place where workers ask for attempts, and prints how they find it.
func openExchange(p *process, d *display, s *plan.Workers, store string) (*fleet.Exchange, error) {
	token, _ := p.env(tokenVariable)
	if s.NATS != "" {
		x, err := fleet.Connect(fleet.Access{
			URL: s.NATS, Token: token, Credentials: s.Credentials, CA: s.CA,
			Lost: func(err error) { d.warn("assay: lost the NATS server: %v", err) },
			Back: func() { d.warn("assay: the NATS server is back") },
		})
		if err != nil {
			return nil, fmt.Errorf("workers.nats %s: %w%s", s.NATS, err, natsHint(err, token))
		}
		d.warn("workers: %s worker --connect %s", p.name, s.NATS)
		return x, nil
	}
	addr, err := listenAddress(s)
	if err != nil {
		return nil, err
	}
	cert, err := certificateOf(s)
	if err != nil {
		return nil, err
	}
	scheme := "nats"
	if cert != nil {
		scheme = "tls"
	}
	how := ""
	if token == "" {
		file := store + ".token"
		if token, err = privateToken(file); err != nil {
			return nil, err
		}
		how = " --token-file " + assay.ShellWord(file)
	}
	x, err := fleet.Listen(addr, token, cert, store+".nats")
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w\nhint: :0 takes any port that is free", s.Address, err)
	}
	host, port, _ := net.SplitHostPort(x.Addr())
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = hostName()
	}
	d.warn("workers: %s worker --connect %s://%s%s", p.name, scheme, net.JoinHostPort(host, port), how)
	return x, nil
}

// natsHint advises on a server of NATS that cannot be used, after a line break.
func natsHint(err error, token string) string {
	text := strings.ToLower(err.Error())
	switch {
	case strings.Contains(text, "hint:"):
		return ""
	case strings.Contains(text, "no servers"):
		return "\nhint: nobody listens there; `nats-server -js` starts a server, " +
			"and --serve has one inside"
	case strings.Contains(text, "authorization"):
		return "\nhint: " + tokenVariable +
			" has the token of the server, or workers.credentials names a file"
	}
	return "\nhint: " + connectHint(err, token)
}

// privateToken returns the token of a file that only this user can read. It is the same when the
// run is started again, because workers wait for it. Another file is replaced.
func privateToken(file string) (string, error) {
	if info, err := os.Lstat(file); err == nil && info.Mode() == 0o600 {
		b, err := os.ReadFile(file)
		if token := strings.TrimSpace(string(b)); err != nil || len(token) >= len(rand.Text()) {
			return token, err
		}
	}
	token := rand.Text()
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return token, os.WriteFile(file, []byte(token+"\n"), 0o600)
}

// listenAddress returns where to listen. Other machines can reach it only over TLS.
func listenAddress(s *plan.Workers) (string, error) {
	host, port, err := net.SplitHostPort(s.Address)
	if err != nil {
		return "", usageError("serve %q: %w\nhint: write :4222, or 0.0.0.0:4222 with a certificate",
			s.Address, err)
	}
	if host == "" {
		return net.JoinHostPort("127.0.0.1", port), nil
	}
	ip, err := netip.ParseAddr(host)
	if host == "localhost" || err == nil && ip.IsLoopback() || s.Cert != "" {
		return s.Address, nil
	}
	return "", usageError("serve %s: other machines could read the token and everything that models "+
		"write\nhint: write workers: {cert: FILE, key: FILE} in the experiment file, or listen on :%s "+
		"and forward the port with ssh -L", s.Address, port)
}

// workers returns a function that opens the place where workers ask for attempts, or nil.
func (f *runFlags) workers(p *process, d *display, s *plan.Workers) func() (fleet.Hub, error) {
	if !s.On() {
		return nil
	}
	return func() (fleet.Hub, error) { return openExchange(p, d, s, f.store) }
}
