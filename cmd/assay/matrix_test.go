package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
	"github.com/assay-eval/assay/internal/task/library"
)

// A reaction is what the program does about a fault.
type reaction string

const (
	// The same turn is asked again, up to five times, after a backoff. Five
	// faults in a row pause the lane, and one that never worked is closed
	// after three pauses.
	repeats reaction = "repeats the turn"
	// As before, but the lane waits as long as it is asked to and is never
	// closed for it.
	waits reaction = "waits, repeats the turn"
	// The lane is closed for this run. The turn goes to another lane; without
	// one the model's trials are left to the next run.
	closes reaction = "closes the lane"
	// The attempt ends, and its trial goes to the end of the queue. Five in a
	// row close a lane that never worked.
	requeues reaction = "ends the attempt"
	// As before, but the prompt is at fault and not the lane, which stays open.
	filters reaction = "ends the attempt, keeps the lane"
)

// faultMatrix says for each way in which an endpoint can misbehave which fault
// is recorded and what the program does. Nothing in it is ever scored.
//
// A name is a fault of the simulated server, or an address at which there is
// nothing to ask; what is wrong with an address does not pass.
var faultMatrix = []misbehaviour{
	// It does not answer, or not to the end.
	{"hang", assay.Timeout, repeats},
	{"hang-body", assay.Timeout, repeats},
	{"drip", assay.Timeout, repeats},
	{"reset", assay.Network, repeats},
	{"truncate", assay.Network, repeats},

	// It answers something else than a completion.
	{"oversized", assay.Malformed, repeats},
	{"bad-json", assay.Malformed, repeats},
	{"empty", assay.Malformed, repeats},
	{"html", assay.Malformed, repeats},
	{"redirect", assay.Network, repeats},
	{"wrong-model", assay.Identity, requeues},

	// It refuses what was asked.
	{"400", assay.BadRequest, requeues},
	{"413", assay.BadRequest, requeues},
	{"422", assay.BadRequest, requeues},
	{"content-filter", assay.ContentFilter, filters},

	// It refuses who asks.
	{"401", assay.Auth, closes},
	{"403", assay.Auth, closes},
	{"404", assay.NotFound, closes},
	{"quota", assay.Quota, closes},

	// It is in trouble, or says that we are too fast.
	{"408", assay.Timeout, repeats},
	{"409", assay.Server, repeats},
	{"429", assay.RateLimited, waits},
	{"500", assay.Server, repeats},
	{"502", assay.Server, repeats},
	{"503", assay.Overloaded, repeats},
	{"504", assay.Server, repeats},
	{"529", assay.Overloaded, repeats},

	// Nobody is there, or somebody else.
	{noSuchHost, assay.Network, repeats},
	{refused, assay.Network, repeats},
	{plainPort, assay.Network, repeats},
	{selfSigned, assay.Network, repeats},
}

// The addresses at which there is nothing to ask.
const (
	noSuchHost = "no-such-host"
	refused    = "connection-refused"
	plainPort  = "https-to-a-plain-port"
	selfSigned = "self-signed"
)

type misbehaviour struct {
	name string
	kind assay.FaultKind
	does reaction
}

func (m misbehaviour) isAddress() bool {
	return !slices.Contains(simserver.FaultKinds(), m.name)
}

// times is how many requests meet it before it passes.
func (m misbehaviour) times() int {
	if m.does == repeats {
		return 2
	}
	return 1
}

// width is how many requests the row's lane may have in flight while the fault
// passes: one, so that it is known whom the fault meets. But a narrow lane takes
// a refusal for a limit, and keeps to it for a minute; a wide one takes a single
// refusal for chance.
func (m misbehaviour) width() int {
	if m.does == waits {
		return 8
	}
	return 1
}

// orTimeout reports that timeouts may stand for the fault: the nine megabytes of
// an oversized reply can take a machine under load longer than a request may.
func (m misbehaviour) orTimeout(retried map[assay.FaultKind]int) bool {
	return m.name == "oversized" && retried[assay.Timeout] > 0
}

// matrixTrials is how many trials each row has.
const matrixTrials = 6

// TestFaultMatrix meets each row of faultMatrix with a model of its own, all
// in one run over HTTP. In the end every trial is done, with the outcome that
// it has where nothing misbehaves, and no goroutine or connection is left.
func TestFaultMatrix(t *testing.T) {
	// It is alone, so that what is left is its own.
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })

	t.Run("coverage", func(t *testing.T) {
		for _, kind := range simserver.FaultKinds() {
			if !slices.ContainsFunc(faultMatrix, func(m misbehaviour) bool { return m.name == kind }) {
				t.Errorf("the simulated server's fault %s has no row", kind)
			}
		}
	})
	calm := calmOutcomes(t)
	t.Run("another lane is well", func(t *testing.T) { t.Parallel(); faultsOnOneLane(t, calm) })
	t.Run("it passes", func(t *testing.T) { t.Parallel(); faultsPass(t, calm) })
	t.Run("the server restarts", func(t *testing.T) { t.Parallel(); serverRestarts(t, calm) })
}

// calmOutcomes are those of each row's trials where nothing misbehaves.
func calmOutcomes(t *testing.T) map[assay.TrialID]outcome {
	t.Helper()
	rig := newMatrixRig(t, nil)
	r, db := rig.run(t, situation{name: "calm", well: true})
	if r.code != exitOK {
		t.Fatalf("exit code %d\n%s%s", r.code, r.out, r.err)
	}
	rig.noConnections(t)
	calm := make(map[assay.TrialID]outcome)
	for _, o := range outcomes(t, db) {
		calm[o.ID] = o
	}
	return calm
}

// faultsPass: the first requests meet the fault, the others do not.
func faultsPass(t *testing.T, calm map[assay.TrialID]outcome) {
	rig := newMatrixRig(t, misbehaviour.times)
	s := situation{name: "passes", broken: true, width: misbehaviour.width, skip: misbehaviour.isAddress}
	r, db := rig.run(t, s)
	if r.code != exitIncomplete {
		t.Errorf("exit code %d, want %d because of the lanes that were closed\n%s", r.code, exitIncomplete, r.err)
	}
	closed := lastEvent(t, r.out)["closed"].(map[string]any)
	first := byModel(attempts(t, db))
	again, _ := rig.run(t, s) // a lane that was closed is tried again by the next run
	if again.code != exitOK {
		t.Errorf("exit code %d of the next run, want 0\n%s%s", again.code, again.out, again.err)
	}
	rig.noConnections(t)
	all := byModel(attempts(t, db))
	got := outcomes(t, db)
	for _, m := range rig.rows(s) {
		t.Run(m.name, func(t *testing.T) {
			unscored(t, all[m.name], m.kind)
			sameOutcomes(t, all[m.name], got, calm)
			reason, isClosed := closed[m.name].(string)
			if isClosed != (m.does == closes) || isClosed && !strings.Contains(reason, string(m.kind)) {
				t.Errorf("lane closed: %q", reason)
			}
			faulted, retried := faults(first[m.name])
			switch m.does {
			case repeats, waits:
				if n := retried[m.kind]; n > m.times() && m.kind != assay.Timeout || n < m.times() && !m.orTimeout(retried) {
					t.Errorf("repeated %v, want %s %d times", retried, m.kind, m.times())
				}
				if len(faulted) > 0 {
					t.Errorf("an attempt ended with %s, want its turn repeated", faulted[0].FaultDetail)
				}
			case requeues, filters:
				if len(faulted) != 1 || len(retried) > 0 {
					t.Fatalf("%d attempts ended with the fault and %v were repeated, want one attempt to end", len(faulted), retried)
				}
				atTheEnd(t, first[m.name], faulted[0])
			case closes:
				if len(faulted) != 1 || len(first[m.name]) != 1 || len(retried) > 0 {
					t.Errorf("%d attempts, want one, at whose first request the lane was closed", len(first[m.name]))
				}
			}
		})
	}
}

// faultsOnOneLane: every request to one of two lanes meets the fault.
func faultsOnOneLane(t *testing.T, calm map[assay.TrialID]outcome) {
	rig := newMatrixRig(t, nil)
	s := situation{name: "one-lane", broken: true, well: true, skip: func(m misbehaviour) bool {
		return m.does == requeues || m.does == filters // the next attempt may well begin here again
	}}
	r, db := rig.run(t, s)
	if r.code != exitOK {
		t.Errorf("exit code %d, want 0: the other lane can do it all\n%s%s", r.code, r.out, r.err)
	}
	rig.noConnections(t)
	all := byModel(attempts(t, db))
	got := outcomes(t, db)
	for _, m := range rig.rows(s) {
		t.Run(m.name, func(t *testing.T) {
			unscored(t, all[m.name], m.kind)
			sameOutcomes(t, all[m.name], got, calm)
			faulted, retried := faults(all[m.name])
			if len(faulted) == 0 && retried[m.kind] == 0 && !m.orTimeout(retried) {
				t.Error("nothing met the fault: the test is too weak")
			}
			if m.does == closes && len(faulted) > 0 {
				t.Errorf("an attempt ended with %s, want its turn to go to the other lane", faulted[0].FaultDetail)
			}
			for _, a := range all[m.name] {
				if a.Settles() && a.Lane != "well/KEY/sim/optimal" {
					t.Errorf("trial %s was settled on %s", a.ID, a.Lane)
				}
			}
		})
	}
}

// TestFaultMatrixStays meets each row of faultMatrix with a lane where it
// never passes. The run ends by itself: nothing is scored, all is parked with
// the reason, and no goroutine or connection is left. That takes the half
// minute for which a lane that never worked is tried.
func TestFaultMatrixStays(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it waits out the pauses of lanes that are down, for most of a minute")
	}
	t.Parallel()
	rig := newMatrixRig(t, nil)
	slow := func(m misbehaviour) bool { return m.does == waits }
	together := situation{name: "stays", broken: true, request: 3 * time.Second, skip: slow}
	alone := situation{ // fifteen requests, each after a wait
		name: "stays-waiting", broken: true, request: time.Second, trials: 1, skip: func(m misbehaviour) bool { return !slow(m) },
	}
	for _, s := range []situation{together, alone} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var r result
			var db string
			pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) { r, db = rig.run(t, s) })
			faultsStay(t, rig, s, r, attempts(t, db))
			noGoroutines(t)
		})
	}
	t.Cleanup(func() { rig.noConnections(t) })
}

func faultsStay(t *testing.T, rig *matrixRig, s situation, r result, all []assay.Attempt) {
	event := lastEvent(t, r.out)
	if r.code != exitIncomplete || event["done"] != 0.0 || event["pending"] != 0.0 || event["parked"] != event["planned"] || event["stopped"] != false {
		t.Errorf("exit code %d, last event %v; want everything parked by the run itself", r.code, event)
	}
	closed := event["closed"].(map[string]any)
	perModel := byModel(all)
	for _, m := range rig.rows(s) {
		t.Run(m.name, func(t *testing.T) {
			unscored(t, perModel[m.name], m.kind)
			faulted, retried := faults(perModel[m.name])
			if len(faulted) != len(perModel[m.name]) || len(faulted) == 0 {
				t.Errorf("%d of %d attempts ended with the fault, want all", len(faulted), len(perModel[m.name]))
			}
			reason, isClosed := closed[m.name].(string)
			if !isClosed { // then each trial had its three attempts
				parked := len(slices.DeleteFunc(faulted, func(a assay.Attempt) bool { return !a.Parked }))
				if parked != s.count() || len(perModel[m.name]) != 3*s.count() {
					t.Errorf("%d attempts, %d of them the last; want three of each trial", len(perModel[m.name]), parked)
				}
			} else if !strings.Contains(reason, string(m.kind)) {
				t.Errorf("closed because of %q, want %s", reason, m.kind)
			}
			if want := m.does != waits && m.does != filters; isClosed != want {
				t.Errorf("lane closed: %v, want %v", isClosed, want)
			}
			if m.isAddress() {
				return
			}
			// What is paid for in vain is bounded, however many trials wait.
			asked := rig.asked[m.name].Load()
			total := asked
			if m.kind != assay.Timeout && !m.orTimeout(retried) {
				asked -= int64(retried[assay.Timeout]) // a machine under load may add some
			}
			if least, most := m.inVain(s); total < least || asked > most {
				t.Errorf("%d requests in vain, %d without those that timed out, want %d to %d", total, asked, least, most)
			}
		})
	}
}

// inVain is how many requests an endpoint gets at which the fault stays.
func (m misbehaviour) inVain(s situation) (least, most int64) {
	n := int64(s.count())
	switch m.does {
	case repeats:
		return 5 + 3, 5 * n // five in a row and a probe after each pause; a turn of each
	case requeues:
		return 5, n + 5
	case closes:
		return 1, n
	case waits:
		return 3 * 5 * n, 3 * 5 * n // attempts, requests of a turn
	}
	return 3 * n, 3 * n
}

// serverRestarts: the server goes away for a second in the middle of a run and
// comes back at the same address. What was in flight is repeated, the lane
// pauses, and every trial is done.
func serverRestarts(t *testing.T, calm map[assay.TrialID]outcome) {
	rig := newMatrixRig(t, nil)
	server := httptest.NewUnstartedServer(rig)
	server.Config.ConnState = rig.well.ConnState
	server.Start()
	address := server.Listener.Addr().String()
	var asked atomic.Int64
	middle := make(chan struct{})
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 20 {
			close(middle)
		}
		rig.ServeHTTP(w, r)
	})
	var wg sync.WaitGroup
	var r result
	var db string
	s := situation{name: "restart", well: true, wellURL: server.URL}
	wg.Go(func() { r, db = rig.run(t, s) })
	<-middle
	server.CloseClientConnections()
	server.Close()
	time.Sleep(time.Second)
	server = httptest.NewUnstartedServer(rig)
	server.Config.ConnState = rig.well.ConnState
	server.Listener.Close()
	waitFor(t, func() bool {
		var err error
		server.Listener, err = net.Listen("tcp", address)
		return err == nil
	})
	server.Start()
	defer server.Close()
	wg.Wait()
	if r.code != exitOK {
		t.Errorf("exit code %d, want 0\n%s%s", r.code, r.out, r.err)
	}
	all := attempts(t, db)
	unscored(t, all, assay.Network)
	sameOutcomes(t, all, outcomes(t, db), calm)
	if _, retried := faults(all); retried[assay.Network] == 0 {
		t.Errorf("repeated %v: nothing met the restart", retried)
	}
}

// A situation is a run over models that are called as the rows are.
type situation struct {
	name    string
	broken  bool // each model has a lane at the endpoint that misbehaves
	well    bool // each model has a lane where nothing does
	wellURL string
	request time.Duration          // limit; 2 s if 0
	trials  int                    // of each model; matrixTrials if 0
	width   func(misbehaviour) int // of its lanes; as many as there are trials if nil
	skip    func(misbehaviour) bool
}

func (s situation) count() int { return cmp.Or(s.trials, matrixTrials) }

// matrixRig is a server with an endpoint for each row.
type matrixRig struct {
	dir   string
	url   string
	tls   string            // of a server that nobody has reason to trust
	well  *simserver.Server // also counts all connections
	mux   *http.ServeMux
	all   []misbehaviour           // those that can be had on this machine
	asked map[string]*atomic.Int64 // requests, by row
}

func (r *matrixRig) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// newMatrixRig returns a rig whose endpoints misbehave for as many requests as
// until says, or without end where it is nil.
func newMatrixRig(t *testing.T, until func(misbehaviour) int) *matrixRig {
	t.Helper()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	provider := sim.New(lib.Catalog(), sim.Latency{})
	if err := lib.Close(); err != nil {
		t.Fatal(err)
	}
	newServer := func(faults ...simserver.Fault) *simserver.Server {
		s, err := simserver.New(simserver.Config{Provider: provider, Models: sim.Names, Faults: faults})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := &matrixRig{dir: t.TempDir(), well: newServer(), asked: make(map[string]*atomic.Int64), mux: http.NewServeMux()}
	var held []io.Closer
	r.mux.Handle("/well/", http.StripPrefix("/well", r.well))
	for _, m := range faultMatrix {
		if m.name == noSuchHost && !resolves(t, m) {
			continue
		}
		r.all = append(r.all, m)
		if m.isAddress() {
			continue
		}
		bad := newServer(simserver.Fault{Kind: m.name, Share: 1})
		held = append(held, bad)
		asked := new(atomic.Int64)
		r.asked[m.name] = asked
		r.mux.Handle("/"+m.name+"/", http.StripPrefix("/"+m.name, http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if n := asked.Add(1); until != nil && n > int64(until(m)) {
				r.well.ServeHTTP(w, req)
				return
			}
			bad.ServeHTTP(w, req)
		})))
	}
	for _, start := range []func(*httptest.Server){(*httptest.Server).Start, (*httptest.Server).StartTLS} {
		server := httptest.NewUnstartedServer(r)
		server.Config.ConnState = r.well.ConnState
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		start(server)
		t.Cleanup(server.Close)
		if server.TLS == nil {
			r.url = server.URL
		} else {
			r.tls = server.URL
		}
	}
	t.Cleanup(func() {
		for _, h := range held {
			_ = h.Close()
		}
	})
	return r
}

// resolves reports whether this machine says of a name that does not exist
// that it does not.
func resolves(t *testing.T, m misbehaviour) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := net.DefaultResolver.LookupHost(ctx, "nobody.invalid")
	var dns *net.DNSError
	if errors.As(err, &dns) && !dns.IsTimeout {
		return true
	}
	t.Logf("%s is left out: looking up a name that does not exist gives %v here", m.name, err)
	return false
}

// base is where a row's models are asked for.
func (r *matrixRig) base(m misbehaviour) string {
	switch m.name {
	case noSuchHost:
		return "http://nobody.invalid"
	case refused:
		return "http://127.0.0.1:1"
	case plainPort:
		return strings.Replace(r.url, "http:", "https:", 1)
	case selfSigned:
		return r.tls
	}
	return r.url + "/" + m.name
}

// rows are those that a situation has.
func (r *matrixRig) rows(s situation) []misbehaviour {
	return slices.DeleteFunc(slices.Clone(r.all), func(m misbehaviour) bool { return s.skip != nil && s.skip(m) })
}

// run runs a situation and returns its store. Running it again goes on.
func (r *matrixRig) run(t *testing.T, s situation) (result, string) {
	t.Helper()
	serve := func(m misbehaviour) string {
		width := s.count()
		if s.width != nil {
			width = s.width(m)
		}
		return fmt.Sprintf("      %q: {deployments: [sim/optimal], limits: {concurrency: %d}}\n", m.name, width)
	}
	wellURL := r.url + "/well/v1"
	if s.wellURL != "" {
		wellURL = s.wellURL + "/well/v1"
	}
	providers := "providers:\n"
	well := "  well:\n    base_url: " + wellURL + "\n    keys: [KEY]\n    models:\n"
	var models []string
	for _, m := range r.rows(s) {
		models = append(models, strconv.Quote(m.name))
		well += serve(m)
		if s.broken {
			providers += fmt.Sprintf("  %q:\n    base_url: %s/v1\n    keys: [KEY]\n    models:\n%s", "broken-"+m.name, r.base(m), serve(m))
		}
	}
	if s.well {
		providers += well
	}
	file(t, r.dir, s.name+"-providers.yaml", providers)
	experiment := file(t, r.dir, s.name+".yaml", fmt.Sprintf(`
name: matrix
models: [%s]
variants: [optimal]
reliabilities: [0.8]
task_types: [basic_task]
tasks_per_type: %d
limits: {request: %s, trial: 20s}
providers: %s-providers.yaml
`, strings.Join(models, ", "), s.count(), cmp.Or(s.request, 2*time.Second), s.name))
	db := filepath.Join(r.dir, s.name+".db")
	return call(t, map[string]string{"KEY": "k"}, "run", experiment, "--store", db, "--display", "json"), db
}

// noConnections waits until nobody is connected to the server.
func (r *matrixRig) noConnections(t *testing.T) {
	t.Helper()
	for range 200 {
		if r.well.Stats().Connections == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections are open after the run", r.well.Stats().Connections)
}

// noGoroutines waits until no goroutine is left that the test's run began,
// directly or not: they inherit its label.
func noGoroutines(t *testing.T) {
	t.Helper()
	var profile bytes.Buffer
	for range 200 {
		profile.Reset()
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(profile.String(), fmt.Sprintf("{%q:%q}", "test", t.Name())) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines are left after the run:\n%s", profile.String())
}

func byModel(all []assay.Attempt) map[string][]assay.Attempt {
	groups := make(map[string][]assay.Attempt)
	for _, a := range all {
		groups[a.Model] = append(groups[a.Model], a)
	}
	return groups
}

// faults returns the attempts that ended with a fault, and what was repeated.
func faults(all []assay.Attempt) (ended []assay.Attempt, retried map[assay.FaultKind]int) {
	retried = make(map[assay.FaultKind]int)
	for _, a := range all {
		if !a.Settles() {
			ended = append(ended, a)
		}
		for kind, n := range a.Retried {
			retried[kind] += n
		}
	}
	return ended, retried
}

// unscored checks that no fault is a score, and that each is of the kind. A
// machine under load may add timeouts.
func unscored(t *testing.T, all []assay.Attempt, kind assay.FaultKind) {
	t.Helper()
	for _, a := range all {
		if a.FaultKind != "" && (a.Level != "" || a.Ended != "" || a.ErrorCategory != "") {
			t.Errorf("trial %s has the fault %s and the level %q", a.ID, a.FaultKind, a.Level)
		}
		kinds := slices.Collect(maps.Keys(a.Retried))
		if !a.Settles() {
			kinds = append(kinds, a.FaultKind)
		}
		for _, k := range kinds {
			if k != kind && k != assay.Timeout {
				t.Errorf("trial %s met %s, want %s: %s", a.ID, k, kind, a.FaultDetail)
			}
		}
	}
}

// sameOutcomes checks that the trials of these attempts, matrixTrials of each
// model, are done with the outcomes of the calm run.
func sameOutcomes(t *testing.T, all []assay.Attempt, got []outcome, calm map[assay.TrialID]outcome) {
	t.Helper()
	done := make(map[string]int)
	for _, a := range all {
		if !a.Settles() {
			continue
		}
		done[a.Model]++
		i := slices.IndexFunc(got, func(o outcome) bool { return o.ID == a.ID })
		if diff := gocmp.Diff(calm[a.ID], got[i]); diff != "" {
			t.Errorf("outcome of trial %s differs from the calm run's:\n%.2000s", a.ID, diff)
		}
	}
	for model, n := range done {
		if n != matrixTrials {
			t.Errorf("%d trials of %s are done, want %d", n, model, matrixTrials)
		}
	}
	if len(done) == 0 {
		t.Error("no trial is done")
	}
}

// atTheEnd checks that a trial was tried again when all others had begun.
func atTheEnd(t *testing.T, all []assay.Attempt, faulted assay.Attempt) {
	t.Helper()
	i := slices.IndexFunc(all, func(a assay.Attempt) bool { return a.ID == faulted.ID && a.Settles() })
	if i < 0 {
		t.Errorf("trial %s was not settled in the same run", faulted.ID)
		return
	}
	for _, a := range all {
		if a.StartedAt.After(all[i].StartedAt) {
			t.Errorf("trial %s began again before %s", faulted.ID, a.ID)
		}
	}
}
