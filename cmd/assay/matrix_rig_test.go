package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/simserver"
)

// A situation is a run over models that are named after rows.
type situation struct {
	name    string
	broken  bool                    // each model has a lane at a broken endpoint
	well    bool                    // each model has a lane at a good endpoint
	wellURL string                  // address of the good endpoint; the rig's if empty
	request time.Duration           // request limit; 5 s if 0
	trials  int                     // trials of each model; matrixTrials if 0
	width   func(misbehaviour) int  // concurrency of the lanes; the number of trials if nil
	skip    func(misbehaviour) bool // rows that do not take part
}

func (s situation) count() int { return cmp.Or(s.trials, matrixTrials) }

// A matrixRig is a server with an endpoint for each row.
type matrixRig struct {
	dir   string
	url   string
	tls   string            // address of a server with a self-signed certificate
	well  *simserver.Server // counts all connections too
	mux   *http.ServeMux
	all   []misbehaviour           // the rows that this machine can play
	asked map[string]*atomic.Int64 // requests by row
}

func (r *matrixRig) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.mux.ServeHTTP(w, req) }

// newMatrixRig returns a rig. Fails reports whether the n-th request to an endpoint meets the
// fault. If it is nil, all of them do.
func newMatrixRig(t *testing.T, fails func(m misbehaviour, n int64) bool) *matrixRig {
	t.Helper()
	lib := builtinLibrary(t)
	provider := sim.New(lib.Catalog(), sim.Latency{})
	newServer := func(faults ...simserver.Fault) *simserver.Server {
		config := simserver.Config{Provider: provider, Models: sim.Names, Faults: faults}
		s, err := simserver.New(config)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	r := &matrixRig{
		dir: t.TempDir(), well: newServer(), asked: make(map[string]*atomic.Int64),
		mux: http.NewServeMux(),
	}
	r.url = r.listen(t, (*httptest.Server).Start)
	r.tls = r.listen(t, (*httptest.Server).StartTLS)
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
		t.Cleanup(func() { _ = bad.Close() })
		asked := new(atomic.Int64)
		r.asked[m.name] = asked
		endpoint := func(w http.ResponseWriter, req *http.Request) {
			if n := asked.Add(1); fails != nil && !fails(m, n) {
				r.well.ServeHTTP(w, req)
				return
			}
			bad.ServeHTTP(w, req)
		}
		path := "/" + m.name
		r.mux.Handle(path+"/", http.StripPrefix(path, http.HandlerFunc(endpoint)))
	}
	return r
}

// listen starts a server for the rig's endpoints and returns its address.
func (r *matrixRig) listen(t *testing.T, start func(*httptest.Server)) string {
	t.Helper()
	server := httptest.NewUnstartedServer(r)
	server.Config.ConnState = r.well.ConnState
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	start(server)
	t.Cleanup(server.Close)
	return server.URL
}

// resolves reports whether this machine's resolver reports a missing name as missing.
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

// base returns the address of a row's endpoint.
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

// rows returns the rows of a situation.
func (r *matrixRig) rows(s situation) []misbehaviour {
	return slices.DeleteFunc(slices.Clone(r.all), func(m misbehaviour) bool {
		return s.skip != nil && s.skip(m)
	})
}

// run runs a situation and returns its store. Running a situation again continues it.
func (r *matrixRig) run(t *testing.T, s situation) (result, string) {
	t.Helper()
	file(t, r.dir, s.name+"-providers.yaml", r.providers(s))
	var models []string
	for _, m := range r.rows(s) {
		models = append(models, strconv.Quote(m.name))
	}
	experiment := file(t, r.dir, s.name+".yaml", fmt.Sprintf(`
name: matrix
models: [%s]
variants: [optimal]
reliabilities: [0.8]
task_types: [basic_task]
tasks_per_type: %d
limits: {request: %s, trial: 80s}
providers: %s-providers.yaml
`, strings.Join(models, ", "), s.count(), cmp.Or(s.request, 10*time.Second), s.name))
	db := filepath.Join(r.dir, s.name+".db")
	env := map[string]string{"KEY": "k"}
	return call(t, env, "run", experiment, "--store", db, "--display", "json"), db
}

// providers returns the providers file of a situation.
func (r *matrixRig) providers(s situation) string {
	provider := func(name, url, models string) string {
		return fmt.Sprintf("  %q:\n    base_url: %s/v1\n    keys: [KEY]\n    models:\n%s",
			name, url, models)
	}
	text, well := "providers:\n", ""
	for i, m := range r.rows(s) {
		width := s.count()
		if s.width != nil {
			width = s.width(m)
		}
		model := fmt.Sprintf("      %q: {deployments: [sim/optimal-%d], serves: [sim/optimal], "+
			"first_reply: 20s, limits: {concurrency: %d}}\n", m.name, i, width)
		well += model
		if s.broken {
			text += provider("broken-"+m.name, r.base(m), model)
		}
	}
	if s.well {
		text += provider("well", cmp.Or(s.wellURL, r.url)+"/well", well)
	}
	return text
}

// noConnections waits until the server has no connection.
func (r *matrixRig) noConnections(t *testing.T) {
	t.Helper()
	for range 3000 {
		if r.well.Stats().Connections == 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("%d connections are open after the run", r.well.Stats().Connections)
}

// noGoroutines waits until all goroutines that the test's run started have ended. They inherit its
// label.
func noGoroutines(t *testing.T) {
	t.Helper()
	label := fmt.Sprintf("{%q:%q}", "test", t.Name())
	var profile bytes.Buffer
	for range 3000 {
		profile.Reset()
		if err := pprof.Lookup("goroutine").WriteTo(&profile, 1); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(profile.String(), label) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("goroutines are left after the run:\n%s", profile.String())
}

// afterAnother checks that another trial began before the next attempt at a trial. The engine's tests
// check how many trials are settled in between, which depends on how many are in flight.
func afterAnother(t *testing.T, all []assay.Attempt, faulted assay.Attempt) {
	t.Helper()
	i := slices.IndexFunc(all, func(a assay.Attempt) bool {
		return a.ID == faulted.ID && a.Settles()
	})
	if i < 0 {
		t.Errorf("trial %s was not settled in the same run", faulted.ID)
		return
	}
	if !slices.ContainsFunc(all, func(a assay.Attempt) bool {
		return a.ID != faulted.ID && a.StartedAt.Before(all[i].StartedAt)
	}) {
		t.Errorf("trial %s was tried again before any other began", faulted.ID)
	}
}
