package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/bench"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
)

type benchFlags struct {
	only  []string
	quick bool
	json  bool
}

func newBench(p *process) *cobra.Command {
	var f benchFlags
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure this program beside what the machine allows",
		Long: `Bench measures the program from outside: it starts the simulated server and runs
against it as processes of their own, and beside them a bare HTTP client that
sends the same requests. It takes about 25 minutes; leave the machine alone.

` + numberList() + `
A missed aim is a figure, not an error: the exit code is 0.`,
		Example: `  assay bench
  assay bench --only 1,2a
  assay bench --quick --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runBench(cmd.Context(), p, f) },
	}
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "measure these `numbers` only, such as 1,2a")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "measure all in small: it shows that the measurement works, and no figure")
	cmd.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	cmd.AddCommand(newBenchLimit(p))
	return cmd
}

// A number is one of those that are measured.
type number struct {
	id      string
	what    string
	seconds int // about, in full
	measure func(*yardstick, context.Context) ([]bench.Row, error)
}

func numbers() []number {
	return []number{
		{"1", "calls a second and CPU a call, without latency", 30, (*yardstick).speed},
		{"2a", "5,000 calls of 100 ms, 200 at once", 10, (*yardstick).shortCalls},
		{"2b", "10,000 calls of 1 s, 1,000 at once", 30, (*yardstick).longCalls},
		{"2c", "10,000 episodes in flight, calls of 10 s", 210, (*yardstick).wide},
		{"2d", "six lanes whose limits are stated", 250, (*yardstick).statedLimits},
		{"2e", "six lanes whose limits are to be learned, twice", 500, (*yardstick).learnedLimits},
		{"2f", "5,000 calls of 100 ms, with hangs and refusals", 15, (*yardstick).faults},
		{"3", "a million trials, done and pending", 150, (*yardstick).million},
		{"4", "bytes on disk", 10, (*yardstick).disk},
		{"5", "a hundred kills", 100, (*yardstick).kills},
	}
}

func numberList() string {
	var b strings.Builder
	for _, n := range numbers() {
		fmt.Fprintf(&b, "  %-4s %s\n", n.id, n.what)
	}
	return b.String()
}

// chosen returns the numbers that --only names: 2 means 2a to 2f.
func (f benchFlags) chosen() ([]number, error) {
	all := numbers()
	if len(f.only) == 0 {
		return all, nil
	}
	var ids []string
	for _, n := range all {
		ids = append(ids, n.id)
	}
	for _, name := range f.only {
		if !slices.ContainsFunc(ids, func(id string) bool { return name != "" && strings.HasPrefix(id, name) }) {
			return nil, usageError("--only %s: no such number\nhint: %s", name, assay.NameHint(name, ids))
		}
	}
	return slices.DeleteFunc(all, func(n number) bool {
		return !slices.ContainsFunc(f.only, func(name string) bool { return strings.HasPrefix(n.id, name) })
	}), nil
}

func runBench(ctx context.Context, p *process, f benchFlags) (err error) {
	chosen, err := f.chosen()
	if err != nil {
		return err
	}
	y := &yardstick{&bench.Rig{}, f.quick}
	if y.Program, err = os.Executable(); err != nil {
		return err
	}
	if y.Dir, err = os.MkdirTemp("", "assay-bench"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(y.Dir)) }()
	var listener sync.WaitGroup
	defer listener.Wait()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	listener.Go(func() {
		select {
		case <-p.signals:
			cancel(&codedError{code: exitInterrupted})
		case <-ctx.Done():
		}
	})
	report := bench.Report{Program: version(), System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Quick: f.quick}
	report.Rows, err = y.measure(ctx, chosen, p.err)
	if len(report.Rows) == 0 {
		return err
	}
	if f.json { // what was measured before an error is shown too
		return errors.Join(err, json.NewEncoder(p.out).Encode(report))
	}
	return errors.Join(err, report.WriteText(p.out))
}

// newBenchLimit is the bare client, which bench starts as a process of its own.
func newBenchLimit(p *process) *cobra.Command {
	var c bench.Client
	var n int
	cmd := &cobra.Command{
		Use:    "limit BODIES.json",
		Short:  "Send recorded requests as fast as a bare client can",
		Hidden: true,
		Args:   cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if err := json.Unmarshal(text, &c.Bodies); err != nil {
				return err
			}
			done, err := c.Replay(cmd.Context(), n)
			if err != nil {
				return err
			}
			return json.NewEncoder(p.out).Encode(done)
		},
	}
	cmd.Flags().StringVar(&c.URL, "url", "", "where to send them")
	cmd.Flags().IntVar(&c.Connections, "connections", 1, "how many at once")
	cmd.Flags().IntVar(&n, "requests", 1, "how many in all")
	c.Key = "bench"
	return cmd
}

// A yardstick measures, much or little.
type yardstick struct {
	*bench.Rig
	quick bool
}

// size is how much is measured.
func (y *yardstick) size(full, quick int) int {
	if y.quick {
		return quick
	}
	return full
}

// measure returns the rows of all numbers up to the first error.
func (y *yardstick) measure(ctx context.Context, chosen []number, progress io.Writer) (all []bench.Row, err error) {
	for _, n := range chosen {
		about := fmt.Sprintf("about %d s", n.seconds)
		if y.quick {
			about = "in small"
		}
		fmt.Fprintf(progress, "%-3s %s: %s\n", n.id, n.what, about)
		rows, err := n.measure(y, ctx)
		if cause := context.Cause(ctx); cause != nil {
			return all, cause
		}
		if err != nil {
			return all, fmt.Errorf("%s: %w", n.id, err)
		}
		for _, r := range rows {
			r.Number = n.id
			all = append(all, r)
		}
	}
	return all, nil
}

func row(what string, unit bench.Unit, value float64) bench.Row {
	return bench.Row{What: what, Unit: unit, Value: value}
}

func count(what string, n int) bench.Row { return row(what, bench.Count, float64(n)) }

// speed is number 1.
func (y *yardstick) speed(ctx context.Context) ([]bench.Row, error) {
	const connections = 32
	s := bench.Scenario{Model: sim.Optimal, Trials: y.size(2000, 100), Limits: fmt.Sprintf("concurrency: %d", connections)}
	bodies, err := y.Record(ctx, s)
	if err != nil {
		return nil, err
	}
	var calls, cpu, bareCalls, bareCPU, shares []float64
	for range y.size(3, 1) {
		m, err := y.Run(ctx, s)
		if err != nil {
			return nil, err
		}
		bare, err := y.Limit(ctx, s, bodies, int(m.Stats.Requests), connections)
		if err != nil {
			return nil, err
		}
		calls, cpu = append(calls, m.PerSecond()), append(cpu, m.PerCall())
		bareCalls, bareCPU = append(bareCalls, bare.PerSecond()), append(bareCPU, bare.PerCall())
		shares = append(shares, bench.Quotient(m.PerSecond(), bare.PerSecond()))
	}
	return []bench.Row{
		row("calls a second", bench.PerSecond, bench.Median(calls...)).Beside(bench.Median(bareCalls...)).
			Because("from the first request to the last response, as the server saw them; median of %d rounds. Server and client share the machine", len(shares)),
		row("of the bare client's calls a second", bench.Share, bench.Median(shares...)).AtLeast(0.5),
		row("CPU a call", bench.Micros, bench.Median(cpu...)).Beside(bench.Median(bareCPU...)).
			Because("of the whole process, start and planning included"),
	}, nil
}

const oneTurn = "limits: {turns: 1}"

// shortCalls is number 2a.
func (y *yardstick) shortCalls(ctx context.Context) ([]bench.Row, error) {
	return y.singles(ctx, y.size(5000, 500), y.size(200, 50), 100*time.Millisecond, 0.85)
}

// longCalls is number 2b.
func (y *yardstick) longCalls(ctx context.Context) ([]bench.Row, error) {
	return y.singles(ctx, y.size(10_000, 1000), y.size(1000, 500), time.Second, 0.95)
}

// singles measures single-turn trials that all take equally long.
func (y *yardstick) singles(ctx context.Context, trials, slots int, latency time.Duration, aim float64) ([]bench.Row, error) {
	s := bench.Scenario{
		Server: []string{"--latency", latency.String(), "--latency-sigma", "0"},
		Model:  sim.Mute, Trials: trials, Text: oneTurn, Limits: fmt.Sprintf("concurrency: %d", slots),
	}
	bodies, err := y.Record(ctx, s)
	if err != nil {
		return nil, err
	}
	bare, err := y.Limit(ctx, s, bodies, trials, slots)
	if err != nil {
		return nil, err
	}
	m, err := y.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	ideal := bench.Ideal(slices.Repeat([]time.Duration{latency}, trials), slots)
	return []bench.Row{
		row("ideal of the wall time", bench.Share, bench.Quotient(ideal.Seconds(), m.Wall.Seconds())).
			Beside(bench.Quotient(ideal.Seconds(), bare.Wall.Seconds())).AtLeast(aim).
			Because("ideal %v; %s; bare client %.2f s", ideal, m.Phases(), bare.Wall.Seconds()),
		row("occupancy", bench.Share, m.Occupancy()),
		count("trials not done", m.Undone()).None(),
	}, nil
}

// wide is number 2c.
func (y *yardstick) wide(ctx context.Context) ([]bench.Row, error) {
	slots := y.size(10_000, 500)
	if most := bench.OpenFiles(); most > 0 && most < slots+100 {
		return nil, fmt.Errorf("%d connections need %d open files in a process, and the hard limit is %d\nhint: `ulimit -Hn %d` as root, in the shell that starts this",
			slots, slots+100, most, slots+100)
	}
	latency := time.Duration(y.size(10_000, 1000)) * time.Millisecond
	m, err := y.Run(ctx, bench.Scenario{
		Server: []string{"--latency", latency.String()}, Model: sim.Optimal, Trials: y.size(25_000, 1000),
		Text: "limits: {turns: 5}", Limits: fmt.Sprintf("concurrency: %d", slots),
	})
	if err != nil {
		return nil, err
	}
	return []bench.Row{
		row("occupancy", bench.Share, m.Occupancy()).AtLeast(0.97).
			Because("while trials waited to start; %d requests at once at most, %.0f/s in the mean, %.0f µs CPU a call", m.Stats.MaxInFlight, m.PerSecond(), m.PerCall()),
		row("resident memory at most", bench.Megabytes, m.PeakMB).Below(1000),
		count("trials not done", m.Undone()).None(),
	}, nil
}

// sixLanes are three whose requests bind and three whose tokens do.
func (y *yardstick) sixLanes() []bench.Lane {
	return []bench.Lane{
		{Deployment: "sim-optimal-1", RPM: 120},
		{Deployment: "sim-optimal-2", RPM: 240},
		{Deployment: "sim-optimal-3", RPM: 400},
		{Deployment: "sim-optimal-4", TPM: 100_000},
		{Deployment: "sim-optimal-5", TPM: 200_000},
		{Deployment: "sim-optimal-6", TPM: 400_000},
	}
}

// limited is a run of several turns on six lanes, which is stopped while
// trials still wait, at the end of a window.
func (y *yardstick) limited(flags ...string) bench.Scenario {
	s := bench.Scenario{
		Server: append([]string{"--latency", "300ms"}, flags...), Model: sim.Optimal, Trials: 4000,
		Lanes: y.sixLanes(), Stop: 4*time.Minute - 20*time.Millisecond,
	}
	if y.quick {
		s.Stop = 5 * time.Second
	}
	return s
}

// windows says how much of the limits a run used from s.From on, and how often
// it was refused.
func windows(m bench.Measured, s bench.Scenario, name string) (used, over, refused bench.Row) {
	span, traffic := s.Stop-s.From, m.Traffic()
	used = row("used of what the limits permit"+name, bench.Share, bench.Used(s.Lanes, traffic, span))
	var lanes []string
	for _, l := range s.Lanes {
		one := map[string]bench.Traffic{l.Deployment: traffic[l.Deployment]}
		lanes = append(lanes, fmt.Sprintf("%.1f %%", 100*bench.Used([]bench.Lane{l}, one, span)))
	}
	used = used.Because("from %v to %v after the first request, while trials waited; lane by lane %s",
		s.From.Round(time.Second), s.Stop.Round(time.Second), strings.Join(lanes, ", "))
	over = count("requests over a limit"+name, int(m.Stats.OverLimit-m.Before.OverLimit))
	const tooMany = http.StatusTooManyRequests
	refused = row("requests answered 429"+name, bench.Share,
		bench.Quotient(float64(m.Stats.Statuses[tooMany]-m.Before.Statuses[tooMany]), float64(m.Stats.Requests-m.Before.Requests)))
	return used, over, refused.Because("%.2f %% from the first request on", 100*bench.Quotient(float64(m.Stats.Statuses[tooMany]), float64(m.Stats.Requests)))
}

// statedLimits is number 2d.
func (y *yardstick) statedLimits(ctx context.Context) ([]bench.Row, error) {
	s := y.limited()
	s.Stated = true
	m, err := y.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	used, over, refused := windows(m, s, "")
	return []bench.Row{used.AtLeast(0.97), over.None(), refused.Below(0.005)}, nil
}

// learnedLimits is number 2e. The first minute, in which limits are found, does
// not count.
func (y *yardstick) learnedLimits(ctx context.Context) ([]bench.Row, error) {
	var rows []bench.Row
	for _, style := range []struct {
		name  string
		flags []string
	}{
		{"", nil},
		{", no headers", []string{"--limit-headers", simserver.HeadersNone, "--retry-after", simserver.RetryAfterSeconds}},
	} {
		s := y.limited(style.flags...)
		s.From = s.Stop / 4
		m, err := y.Run(ctx, s)
		if err != nil {
			return nil, err
		}
		used, _, refused := windows(m, s, style.name)
		rows = append(rows, used.AtLeast(0.9), refused.Below(0.02))
	}
	return rows, nil
}

// faults is number 2f.
func (y *yardstick) faults(ctx context.Context) ([]bench.Row, error) {
	const latency, patience = 100 * time.Millisecond, 2 * time.Second
	slots := y.size(200, 50)
	path := y.Path("faults.db")
	m, err := y.Run(ctx, bench.Scenario{
		Server: []string{"--latency", latency.String(), "--latency-sigma", "0", "--fault", "hang=1%", "--fault", "500=5%", "--fault", "429=5%"},
		Model:  sim.Mute, Trials: y.size(5000, 500), Limits: fmt.Sprintf("concurrency: %d", slots),
		Text:  fmt.Sprintf("limits: {turns: 1, request: %v}", patience),
		Store: path,
	})
	if err != nil {
		return nil, err
	}
	took, err := endpointTimes(ctx, path, latency, patience)
	if err != nil {
		return nil, err
	}
	ideal := bench.Ideal(took, slots)
	return []bench.Row{
		row("ideal of the wall time", bench.Share, bench.Quotient(ideal.Seconds(), m.Wall.Seconds())).AtLeast(0.85).
			Because("ideal %v: the same trials in the same order, each as long as its endpoint took, with %d hangs of %v, some twice in a trial; %s",
				ideal.Round(time.Millisecond), m.Stats.Faults["hang"], patience, m.Phases()),
		row("occupancy", bench.Share, m.Occupancy()),
		count("trials not done", m.Undone()).None(),
	}, nil
}

// endpointTimes are how long the endpoint took for each attempt in a store, in
// their order: a latency for its reply, and the client's patience for each
// request that hung. Refusals and errors come at once.
func endpointTimes(ctx context.Context, path string, latency, patience time.Duration) (took []time.Duration, err error) {
	db, err := store.OpenReadOnly(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	type one struct {
		began time.Time
		took  time.Duration
	}
	var all []one
	for a, err := range db.Attempts(ctx, store.Filter{}) {
		if err != nil {
			return nil, err
		}
		d := time.Duration(a.Retried[assay.Timeout]) * patience
		switch {
		case a.Settles():
			d += latency
		case a.FaultKind == assay.Timeout:
			d += patience
		}
		all = append(all, one{a.StartedAt, d})
	}
	slices.SortFunc(all, func(a, b one) int { return a.began.Compare(b.began) })
	for _, x := range all {
		took = append(took, x.took)
	}
	return took, nil
}

// million is number 3.
func (y *yardstick) million(ctx context.Context) ([]bench.Row, error) {
	n := y.size(1_000_000, 5000)
	s := bench.Scenario{
		Server: []string{"--latency", "1s"}, Model: sim.Mute, Trials: n, Text: oneTurn, Limits: "concurrency: 8",
		Stop: time.Nanosecond,
	}
	planned, err := y.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	s.Store, s.Trials = y.Path("million.db"), n+500
	began := time.Now()
	if err := y.fill(ctx, s, n); err != nil {
		return nil, err
	}
	filled := time.Since(began)
	stored, err := y.Run(ctx, s)
	if err != nil {
		return nil, err
	}
	return []bench.Row{
		row("until the first request, trials stored before it", bench.Seconds, stored.UntilFirst().Seconds()).Below(5).
			Because("%d results without transcripts, which took %.0f s to store, and 500 pending trials behind them; %.0f MB resident at most", n, filled.Seconds(), stored.PeakMB),
		row("until the first request, trials pending", bench.Seconds, planned.UntilFirst().Seconds()).Below(5).Because("%d pending trials", n),
		row("resident memory at most, trials pending", bench.Megabytes, planned.PeakMB).Below(500),
	}, nil
}

// fill stores an outcome for the first n trials of a scenario.
func (y *yardstick) fill(ctx context.Context, s bench.Scenario, n int) (err error) {
	path, err := y.Files(s, "http://127.0.0.1:1")
	if err != nil {
		return err
	}
	e, err := plan.Load(path)
	if err != nil {
		return err
	}
	j, err := job.Open(ctx, e, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return save(ctx, s.Store, func(yield func(assay.Attempt, error) bool) {
		left := n
		for t := range j.Trials() {
			if left--; left < 0 || !yield(settledAttempt(t), nil) {
				return
			}
		}
	})
}

// settledAttempt is an outcome as a run would store it.
func settledAttempt(t assay.Trial) assay.Attempt {
	now := time.Now().UTC()
	tools := []string{"file_operations_reader", "data_processing_parser", "file_operations_writer"}
	return assay.Attempt{
		Trial: t, Program: version(), Lane: "lane/SIM_KEY/sim-mute", ServedModel: t.Model,
		Outcome: assay.Outcome{
			Level: assay.Failure, Ended: assay.TurnLimit, ErrorCategory: "bench", Turns: 1,
			RequiredTools: tools, ScoreVersion: "bench",
		},
		Requests: 1, InputTokens: 1000, OutputTokens: 50, WorkingMS: 1000, StartedAt: now, FinishedAt: now,
	}
}

// save stores attempts of a run of its own, without transcripts.
func save(ctx context.Context, path string, attempts iter.Seq2[assay.Attempt, error]) (err error) {
	db, err := store.Open(ctx, path, store.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const run = assay.RunID("bench")
	if err := db.BeginRun(ctx, store.Experiment{Name: "bench", Spec: []byte("{}")}, store.Run{ID: run, StartedAt: time.Now().UTC()}); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	queue := make(chan assay.Attempt)
	var savers sync.WaitGroup
	for range 512 { // they share each flush
		savers.Go(func() {
			for a := range queue {
				if err := db.Save(ctx, &a, nil); err != nil {
					cancel(err)
				}
			}
		})
	}
	for a, err := range attempts {
		if err != nil {
			cancel(err)
		}
		if ctx.Err() != nil {
			break
		}
		a.Run, a.Experiment = run, "bench"
		queue <- a
	}
	close(queue)
	savers.Wait()
	return context.Cause(ctx)
}

// disk is number 4. What a row takes alone is seen in a copy of the store that
// has no transcripts.
func (y *yardstick) disk(ctx context.Context) ([]bench.Row, error) {
	s := bench.Scenario{Model: sim.Optimal, Trials: y.size(5000, 200), Limits: "concurrency: 32", Store: y.Path("full.db")}
	if _, err := y.Run(ctx, s); err != nil {
		return nil, err
	}
	db, err := store.OpenReadOnly(ctx, s.Store)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	written := 0.0 // bytes of the transcripts' JSON
	rows := y.Path("rows.db")
	err = save(ctx, rows, func(yield func(assay.Attempt, error) bool) {
		for a, err := range db.Attempts(ctx, store.Filter{}) {
			if err == nil {
				var size int
				size, err = jsonSize(ctx, db, a)
				written += float64(size)
			}
			if !yield(a, err) {
				return
			}
		}
	})
	if err != nil {
		return nil, err
	}
	all, err := os.Stat(s.Store)
	if err != nil {
		return nil, err
	}
	alone, err := os.Stat(rows)
	if err != nil {
		return nil, err
	}
	trials, transcripts := float64(s.Trials), float64(all.Size()-alone.Size())
	return []bench.Row{
		row("a row on disk", bench.Bytes, float64(alone.Size())/trials).Below(1500),
		row("a transcript on disk", bench.Bytes, transcripts/trials),
		row("of the transcript's JSON", bench.Share, bench.Quotient(transcripts, written)).Below(0.25).
			Because("%.0f bytes of JSON in the mean, %d trials", written/trials, s.Trials),
	}, nil
}

func jsonSize(ctx context.Context, db *store.DB, a assay.Attempt) (int, error) {
	t, err := db.Transcript(ctx, a.ID, a.Number)
	if err != nil {
		return 0, err
	}
	text, err := json.Marshal(t)
	return len(text), err
}

// kills is number 5.
func (y *yardstick) kills(ctx context.Context) ([]bench.Row, error) {
	s := bench.Scenario{
		Server: []string{"--latency", "100ms"}, Model: sim.Optimal, Trials: y.size(4000, 500),
		Limits: "concurrency: 32", Store: y.Path("killed.db"),
	}
	server, err := y.Serve(ctx, s)
	if err != nil {
		return nil, err
	}
	defer server.Stop()
	kills := y.size(100, 5)
	seen := make(map[assay.TrialID]bool)
	lost, doubled, atLast := 0, 0, 0
	for i := range kills + 1 {
		var m bench.Measured
		if i < kills { // the display shows a snapshot each second: some come after it
			m, err = y.KillAt(ctx, s, server.URL, 50*time.Millisecond+rand.N(1350*time.Millisecond))
		} else {
			s.Limits = "concurrency: 300"
			m, err = y.RunAt(ctx, s, server.URL)
		}
		if err != nil {
			return nil, err
		}
		now, err := settledTrials(ctx, s.Store)
		if err != nil {
			return nil, err
		}
		lost += max(0, m.Shown-len(now))
		for id := range seen {
			if now[id] == 0 {
				lost++
			}
		}
		doubled = 0
		for id, n := range now {
			seen[id] = true
			doubled += n - 1
		}
		if i < kills {
			atLast = len(now)
		}
	}
	return []bench.Row{
		count("results lost", lost).None().
			Because("%d kills; a result is lost that was shown as done, or was in the store after an earlier kill, and is not there", kills),
		count("results doubled", doubled).None(),
		count("trials not done in the end", s.Trials-len(seen)).None().
			Because("%d of %d were done at the last kill", atLast, s.Trials),
	}, nil
}

// settledTrials counts the outcomes of each trial in a store; a store that
// does not exist yet has none.
func settledTrials(ctx context.Context, path string) (map[assay.TrialID]int, error) {
	settled := make(map[assay.TrialID]int)
	db, err := store.OpenReadOnly(ctx, path)
	if errors.Is(err, store.ErrNoStore) {
		return settled, nil
	}
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for a, err := range db.Attempts(ctx, store.Filter{OnlySettled: true}) {
		if err != nil {
			return nil, err
		}
		settled[a.ID]++
	}
	return settled, nil
}
