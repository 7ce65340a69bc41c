package main

import (
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// A reaction is the way in which the program handles a fault.
type reaction string

const (
	// The program repeats the turn's request up to five times, with backoff. Five faults in a row
	// pause the lane. A lane that never worked is closed after three pauses.
	repeats reaction = "repeats the turn"
	// The same, but the lane waits as long as the server asks, and is never closed because of it.
	waits reaction = "waits, repeats the turn"
	// The lane is closed for this run. The turn goes to another lane. Without another lane, the
	// model's trials wait for the next run.
	closes reaction = "closes the lane if it repeats"
	// The attempt ends, and its trial goes to the end of the queue. Five in a row close a lane that
	// never worked.
	requeues reaction = "ends the attempt"
	// The same, but the lane stays open because the fault is in the prompt.
	filters reaction = "ends the attempt, keeps the lane"
)

// faultMatrix lists the ways in which an endpoint can misbehave, the fault that the program records
// for each, and its reaction. No fault is ever scored.
//
// A name is a fault of the simulated server, or an address without a usable server. A wrong address
// never recovers.
var faultMatrix = []misbehaviour{
	// The response is missing or incomplete.
	{"hang", assay.Timeout, repeats},
	{"hang-body", assay.Timeout, repeats},
	{"drip", assay.Timeout, repeats},
	{"reset", assay.Network, repeats},
	{"truncate", assay.Network, repeats},

	// The response is not a completion.
	{"oversized", assay.Malformed, repeats},
	{"bad-json", assay.Malformed, repeats},
	{"empty", assay.Malformed, repeats},
	{"html", assay.Malformed, repeats},
	{"redirect", assay.Network, repeats},
	{"wrong-model", assay.Identity, requeues},
	{"error-inside", assay.Server, repeats},

	// The server rejects the request.
	{"400", assay.BadRequest, requeues},
	{"413", assay.BadRequest, requeues},
	{"422", assay.BadRequest, requeues},
	{"content-filter", assay.ContentFilter, filters},

	// The server rejects the client.
	{"401", assay.Auth, closes},
	{"403", assay.Auth, closes},
	{"404", assay.NotFound, closes},
	{"quota", assay.Quota, closes},

	// The server is in trouble, or receives too many requests.
	{"408", assay.Timeout, repeats},
	{"409", assay.Server, repeats},
	{"423", assay.Server, repeats},
	{"425", assay.Server, repeats},
	{"429", assay.RateLimited, waits},
	{"498", assay.Overloaded, repeats},
	{"499", assay.Server, repeats},
	{"500", assay.Server, repeats},
	{"502", assay.Server, repeats},
	{"503", assay.Overloaded, waits},
	{"504", assay.Server, repeats},
	{"529", assay.Overloaded, waits},

	// There is no server at the address, or not the right one.
	{noSuchHost, assay.Network, repeats},
	{refused, assay.Network, repeats},
	{plainPort, assay.Network, repeats},
	{selfSigned, assay.Network, repeats},
}

// Addresses without a usable server.
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

// times returns the number of requests that meet the fault before it passes.
func (m misbehaviour) times() int {
	if m.does == repeats {
		return 2
	}
	return 1
}

// width returns the concurrency of the row's lane while the fault passes. It is 1, so that the test
// knows which request meets the fault. But a refusal of a narrow lane slows it down for a minute.
func (m misbehaviour) width() int {
	if m.does == waits {
		return 8
	}
	return 1
}

// orTimeout reports whether timeouts may stand for the fault, because a machine under load can take
// longer than the request's limit to send the nine megabytes of an oversized reply, or for the
// arithmetic of a TLS handshake.
func (m misbehaviour) orTimeout(retried map[assay.FaultKind]int) bool {
	slow := m.name == "oversized" || m.name == selfSigned
	return slow && retried[assay.Timeout] > 0
}

// matrixTrials is the number of trials in each row.
const matrixTrials = 6

// TestFaultMatrix plays every row of faultMatrix with a separate model, all in one run over HTTP.
// In the end every trial is done with the outcome that it has without faults, and no goroutine or
// connection is left.
func TestFaultMatrix(t *testing.T) {
	// This test does not run in parallel, so all leaked goroutines are its own.
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() { goleak.VerifyNone(t, before) })

	t.Run("coverage", func(t *testing.T) {
		for _, kind := range simserver.FaultKinds() {
			named := func(m misbehaviour) bool { return m.name == kind }
			if !slices.ContainsFunc(faultMatrix, named) {
				t.Errorf("the simulated server's fault %s has no row", kind)
			}
		}
	})
	calm := calmOutcomes(t)
	t.Run("another lane is well", func(t *testing.T) { t.Parallel(); faultsOnOneLane(t, calm) })
	t.Run("it passes", func(t *testing.T) { t.Parallel(); faultsPass(t, calm) })
	t.Run("the server restarts", func(t *testing.T) { t.Parallel(); serverRestarts(t, calm) })
}

// calmOutcomes returns the outcomes of each row's trials without faults.
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

// faultsPass checks rows in which only the first requests meet the fault.
func faultsPass(t *testing.T, calm map[assay.TrialID]outcome) {
	rig := newMatrixRig(t, func(m misbehaviour, n int64) bool { return n <= int64(m.times()) })
	s := situation{
		name: "passes", broken: true, width: misbehaviour.width, skip: misbehaviour.isAddress,
	}
	r, db := rig.run(t, s)
	if r.code != exitOK {
		t.Errorf("exit code %d, want 0 because every fault passed\n%s", r.code, r.err)
	}
	closed := lastEvent(t, r.out)["closed"].(map[string]any)
	first := byModel(attempts(t, db))

	rig.noConnections(t)
	all := byModel(attempts(t, db))
	got := outcomes(t, db)
	for _, m := range rig.rows(s) {
		t.Run(m.name, func(t *testing.T) {
			unscored(t, all[m.name], m.kind)
			sameOutcomes(t, all[m.name], got, calm)
			reason, isClosed := closed[m.name].(string)
			if isClosed {
				t.Errorf("lane closed: %q", reason)
			}
			m.reactedOnce(t, first[m.name])
		})
	}
}

// reactedOnce checks the reaction to a fault that passed, in the attempts of the first run.
func (m misbehaviour) reactedOnce(t *testing.T, first []assay.Attempt) {
	t.Helper()
	faulted, retried := faults(first)
	switch m.does {
	case repeats, waits, closes:
		n := retried[m.kind]
		tooMany := n > m.times() && m.kind != assay.Timeout
		if tooFew := n < m.times() && !m.orTimeout(retried); tooMany || tooFew {
			t.Errorf("repeated %v, want %s %d times", retried, m.kind, m.times())
		}
		if len(faulted) > 0 {
			t.Errorf("an attempt ended with %s, want its turn repeated", faulted[0].FaultDetail)
		}
	case requeues, filters:
		delete(retried, assay.Timeout) // see unscored
		if len(faulted) != 1 || len(retried) > 0 {
			t.Fatalf("%d attempts ended with the fault and %v were repeated, want one to end",
				len(faulted), retried)
		}
		afterAnother(t, first, faulted[0])
	}
}

// faultsOnOneLane checks rows in which every request to one of two lanes meets the fault.
func faultsOnOneLane(t *testing.T, calm map[assay.TrialID]outcome) {
	rig := newMatrixRig(t, nil)
	s := situation{name: "one-lane", broken: true, well: true, skip: func(m misbehaviour) bool {
		return m.does == requeues || m.does == filters // the next attempt may use this lane again
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
				t.Error("no request met the fault: the test is too weak")
			}
			if m.does == closes && len(faulted) > 0 {
				t.Errorf("an attempt ended with %s, want its turn to go to the other lane",
					faulted[0].FaultDetail)
			}
			for _, a := range all[m.name] {
				if a.Settles() && !strings.HasPrefix(a.Lane, "well/KEY/sim/optimal-") {
					t.Errorf("trial %s was settled on %s", a.ID, a.Lane)
				}
			}
		})
	}
}

// serverRestarts stops the server for a second in the middle of a run and starts it again at the
// same address. The program repeats the requests that were in flight, the lane pauses, and every
// trial is done.
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
		t.Errorf("repeated %v: no request met the restart", retried)
	}
}

func byModel(all []assay.Attempt) map[string][]assay.Attempt {
	groups := make(map[string][]assay.Attempt)
	for _, a := range all {
		groups[a.Model] = append(groups[a.Model], a)
	}
	return groups
}

// faults returns the attempts that ended with a fault, and counts the repeated requests by kind.
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

// unscored checks that no fault is scored and that all faults are of this kind. A machine under
// load may add timeouts.
func unscored(t *testing.T, all []assay.Attempt, kind assay.FaultKind) {
	t.Helper()
	for _, a := range all {
		noScore(t, a)
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

// sameOutcomes checks that the trials of these attempts, matrixTrials of each model, are done with
// the outcomes of the calm run.
func sameOutcomes(
	t *testing.T, all []assay.Attempt, got []outcome, calm map[assay.TrialID]outcome,
) {
	t.Helper()
	done := make(map[string]int)
	for _, a := range all {
		if !a.Settles() {
			continue
		}
		done[a.Model]++
		i := slices.IndexFunc(got, func(o outcome) bool { return o.ID == a.ID })
		if diff := cmp.Diff(calm[a.ID], got[i]); diff != "" {
			t.Errorf("trial %s has another outcome than in the calm run:\n%.2000s", a.ID, diff)
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
