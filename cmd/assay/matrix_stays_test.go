package main

import (
	"context"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// TestFaultMatrixStays plays every row of faultMatrix with a fault that never passes on its only
// lane. The run ends without a signal: no trial is scored, all are parked with the reason, and no
// goroutine or connection is left. This takes half a minute, because the program keeps trying a
// lane that never worked for that long.
func TestFaultMatrixStays(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: waits most of a minute while lanes are paused")
	}
	t.Parallel()
	rig := newMatrixRig(t, nil)
	slow := func(m misbehaviour) bool { return m.does == waits }
	together := situation{name: "stays", broken: true, request: 3 * time.Second, skip: slow}
	alone := situation{
		name: "stays-waiting", broken: true, request: time.Second, trials: 1,
		skip: func(m misbehaviour) bool { return !slow(m) },
	}
	for _, s := range []situation{together, alone} {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			var r result
			var db string
			pprof.Do(t.Context(), pprof.Labels("test", t.Name()), func(context.Context) {
				r, db = rig.run(t, s)
			})
			faultsStay(t, rig, s, r, attempts(t, db))
			noGoroutines(t)
		})
	}
	t.Cleanup(func() { rig.noConnections(t) })
}

func faultsStay(t *testing.T, rig *matrixRig, s situation, r result, all []assay.Attempt) {
	event := lastEvent(t, r.out)
	if r.code != exitIncomplete || event["done"] != 0.0 || event["pending"] != 0.0 ||
		event["parked"] != event["planned"] || event["stopped"] != false {
		t.Errorf("exit code %d, last event %v; want all trials parked by the run itself",
			r.code, event)
	}
	closed := event["closed"].(map[string]any)
	perModel := byModel(all)
	for _, m := range rig.rows(s) {
		t.Run(m.name, func(t *testing.T) {
			unscored(t, perModel[m.name], m.kind)
			reason, isClosed := closed[m.name].(string)
			if want := m.does != filters; isClosed != want {
				t.Errorf("lane closed: %v, want %v", isClosed, want)
			}
			if isClosed && !strings.Contains(reason, string(m.kind)) {
				t.Errorf("closed because of %q, want %s", reason, m.kind)
			}
			m.allFaulted(t, s, perModel[m.name], isClosed)
			if !m.isAddress() {
				_, retried := faults(perModel[m.name])
				m.boundedRequests(t, s, rig.asked[m.name].Load(), retried)
			}
		})
	}
}

// allFaulted checks that every attempt ended with the fault. If the lane stayed open, each trial
// had its three attempts.
func (m misbehaviour) allFaulted(t *testing.T, s situation, all []assay.Attempt, isClosed bool) {
	t.Helper()
	faulted, _ := faults(all)
	if len(faulted) != len(all) || len(faulted) == 0 {
		t.Errorf("%d of %d attempts ended with the fault, want all", len(faulted), len(all))
	}
	if isClosed {
		return
	}
	parked := len(slices.DeleteFunc(faulted, func(a assay.Attempt) bool { return !a.Parked }))
	if parked != s.count() || len(all) != 3*s.count() {
		t.Errorf("%d attempts, %d of them the last; want three of each trial", len(all), parked)
	}
}

// boundedRequests checks that the number of wasted requests is bounded, however many trials are
// pending.
func (m misbehaviour) boundedRequests(
	t *testing.T, s situation, total int64, retried map[assay.FaultKind]int,
) {
	t.Helper()
	asked := total
	if m.kind != assay.Timeout && !m.orTimeout(retried) {
		asked -= int64(retried[assay.Timeout]) // a machine under load may add some
	}
	if least, most := m.wasted(s); total < least || asked > most {
		t.Errorf("%d wasted requests, %d without those that timed out, want %d to %d",
			total, asked, least, most)
	}
}

// wasted returns the number of requests that an endpoint receives if its fault stays.
func (m misbehaviour) wasted(s situation) (least, most int64) {
	n := int64(s.count())
	switch m.does {
	case repeats:
		// Five in a row and a probe after each pause, or at most one turn of each trial.
		return 5 + 3, 5 * n
	case requeues:
		return 5, n + 5
	case closes:
		// Two in a row pause the lane, and a probe closes it. Others may be in flight at both
		// moments.
		return 3, 2 * n
	case waits:
		// The waits double, which makes 7 requests in 20 s. They begin anew whenever a machine under load
		// takes so long for a refusal that the request seems to be accepted: once, or a few times.
		return 5, 40 + n
	}
	return 3 * n, 3 * n
}
