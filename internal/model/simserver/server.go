// Package simserver is an HTTP server with the APIs of hosted models in front of
// any [assay.Provider]. It lets users rehearse an experiment before they pay for
// it. Like a hosted endpoint, it has keys, deployments, rate limits, latency,
// faults, and models that think.
//
// It owns the limits and the injected faults. It does not own the wire formats, which belong to
// package gateway, nor the models, because a provider writes the replies. It does not open a
// socket. Use the [Server] as the handler of an [http.Server].
package simserver

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
)

// Config configures a [Server].
type Config struct {
	// Provider answers the requests, which carry the names in Models.
	Provider assay.Provider
	// Models are the names of the served models. At least one is required.
	Models []string
	// Keys are the accepted keys. Without keys, every key that is not empty is
	// accepted.
	Keys []string
	// Limits apply to each combination of key and deployment. By default there is no limit. A limit
	// with a model replaces the one without a model.
	Limits []Limit
	// Headers is the style of the limit headers, one of [HeaderStyles]. The default
	// is [HeadersOpenAI]. Headers for requests report the limit per minute if
	// it is set, and otherwise the limit per day.
	Headers string
	// RetryAfter is how a refused client is asked to wait, one of [RetryAfters]. The
	// default is [RetryAfterBoth].
	RetryAfter string
	// Thinking is how the models think, one of [gateway.ThinkingStyles]. The default is
	// [gateway.ThinkingNone]. A request is refused if a reply with calls comes back without
	// its thought.
	Thinking string
	// Tariff has the server's prices. By default, requests are free.
	Tariff Tariff
	// Latency is added to the provider's own time. The default is 0.
	Latency Latency
	// Faults are injected into a share of the requests within their limits. The
	// shares may add up to 1. There are no faults by default.
	Faults []Fault
	// Seed determines latencies and which requests get a fault.
	Seed uint64
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	cfg    Config
	mux    *http.ServeMux
	names  map[string]string // deployment name without suffix → model
	keys   map[string]int    // index in Config.Keys
	limits map[string]Limit  // by canonical deployment or model, "" for all others
	faults picker
	stats  counters
	closed chan struct{} // closed by Close
	close  sync.Once

	mu    sync.Mutex
	lanes map[laneID]*keyTraffic // guarded by mu
	// prefixes has the hashes of the conversations in the cache.
	prefixes map[uint64]struct{} // guarded by mu
}

// laneID is the unit of limits.
type laneID struct{ key, deployment string }

var (
	_ http.Handler = (*Server)(nil)
	_ io.Closer    = (*Server)(nil)
)

// New returns a server.
func New(cfg Config) (*Server, error) {
	if cfg.Provider == nil {
		return nil, errors.New("a simulated server needs a provider")
	}
	if len(cfg.Models) == 0 {
		return nil, errors.New("a simulated server needs a model")
	}
	s := &Server{
		cfg:    cfg,
		mux:    http.NewServeMux(),
		names:  make(map[string]string),
		keys:   make(map[string]int),
		limits: make(map[string]Limit),
		closed: make(chan struct{}),
		lanes:  make(map[laneID]*keyTraffic),

		prefixes: make(map[uint64]struct{}),
	}
	for _, m := range cfg.Models {
		if other, dup := s.names[canonical(m)]; dup {
			return nil, fmt.Errorf("models %q and %q have the same deployment name, %s",
				other, m, canonical(m))
		}
		s.names[canonical(m)] = m
	}
	for i, k := range slices.Backward(cfg.Keys) {
		s.keys[k] = i
	}
	if err := s.setLimits(); err != nil {
		return nil, err
	}
	if err := s.setStyles(); err != nil {
		return nil, err
	}

	var err error
	if s.faults, err = newPicker(cfg.Faults, cfg.Seed); err != nil {
		return nil, err
	}
	if err := cfg.Latency.check(); err != nil {
		return nil, err
	}
	s.routes()
	return s, nil
}

func (s *Server) setLimits() error {
	for _, l := range s.cfg.Limits {
		if _, ok := s.model(l.Model); l.Model != "" && !ok {
			return unknown("model in a limit", l.Model, s.cfg.Models)
		}
		name := canonical(l.Model)
		if _, dup := s.limits[name]; dup {
			return fmt.Errorf("two limits for %q", cmp.Or(l.Model, "all models"))
		}
		s.limits[name] = l
	}
	return nil
}

func (s *Server) setStyles() error {
	s.cfg.Headers = cmp.Or(s.cfg.Headers, HeadersOpenAI)
	if !slices.Contains(HeaderStyles(), s.cfg.Headers) {
		return unknown("header style", s.cfg.Headers, HeaderStyles())
	}
	s.cfg.RetryAfter = cmp.Or(s.cfg.RetryAfter, RetryAfterBoth)
	if !slices.Contains(RetryAfters(), s.cfg.RetryAfter) {
		return unknown("retry-after style", s.cfg.RetryAfter, RetryAfters())
	}
	s.cfg.Thinking = cmp.Or(s.cfg.Thinking, gateway.ThinkingNone)
	if !slices.Contains(gateway.ThinkingStyles(), s.cfg.Thinking) {
		return unknown("thinking style", s.cfg.Thinking, gateway.ThinkingStyles())
	}
	return nil
}

// thinks reports whether the models think.
func (s *Server) thinks() bool { return s.cfg.Thinking != gateway.ThinkingNone }

// unknown returns an error for a name that is not one of known.
func unknown(noun, name string, known []string) error {
	err := fmt.Errorf("unknown %s %q", noun, name)
	if hint := assay.NameHint(name, known); hint != "" {
		err = fmt.Errorf("%w\nhint: %s", err, hint)
	}
	return err
}

func (s *Server) routes() {
	for _, d := range protocol.Dialects(s.cfg.Thinking) {
		for _, pattern := range d.Routes() {
			s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
				s.serve(&exchange{
					server: s, dialect: d, w: w, r: r,
					key: cmp.Or(d.Key(r.Header), gateway.Bearer(r.Header)),
				})
			})
		}
	}
	for _, pattern := range gateway.CatalogRoutes {
		s.mux.HandleFunc(pattern, s.listModels)
	}
	s.mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, map[string]string{"status": "ok"})
	})
	s.mux.HandleFunc("GET /stats", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusOK, s.Stats())
	})
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, gateway.Refusal{
			Status:  http.StatusNotFound,
			Message: "Unknown request URL: " + r.Method + " " + r.URL.Path,
			Kind:    "invalid_request_error", Code: "unknown_url",
		})
	})
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// Close ends all requests that the server delays because of latency or a fault,
// and refuses new ones. It does not wait for them and does not interrupt the
// provider. Use [http.Server.Shutdown] or [http.Server.Close] for that. It always
// returns nil.
func (s *Server) Close() error {
	s.close.Do(func() { close(s.closed) })
	return nil
}

// ConnState counts open connections if it is the ConnState of an [http.Server].
func (s *Server) ConnState(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		s.stats.connections(1)
	case http.StateClosed, http.StateHijacked:
		s.stats.connections(-1)
	}
}

// model returns the model that a deployment serves, with the deployment's parameters.
func (s *Server) model(deployment string) (string, bool) {
	plain, more := parameters(deployment)
	name := canonical(plain)
	if m, ok := s.names[name]; ok {
		return m + more, true
	}
	first, numbered := strings.CutSuffix(strings.TrimRight(name, "0123456789"), "-")
	if !numbered || strings.HasSuffix(name, "-") {
		return "", false
	}
	m, ok := s.names[first] // a numbered deployment of this model
	return m + more, ok
}

// parameters splits a deployment's name from what follows a colon, which the model understands.
func parameters(deployment string) (name, more string) {
	if i := strings.IndexByte(deployment, ':'); i >= 0 {
		return deployment[:i], deployment[i:]
	}
	return deployment, ""
}

// canonical returns the canonical spelling of a deployment's name. It has dashes
// because names on Azure cannot contain slashes.
func canonical(name string) string { return strings.ReplaceAll(name, "/", "-") }

// lane returns the lane of a deployment of model under key.
func (s *Server) lane(key, deployment, model string) *keyTraffic {
	id := laneID{key, canonical(deployment)}
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lanes[id]
	if l == nil {
		limit := s.limits[""]
		own, _ := parameters(id.deployment)
		of, _ := parameters(canonical(model))
		for _, name := range []string{own, of} {
			if own, ok := s.limits[name]; ok {
				limit = own
				break
			}
		}
		l = newLane(limit, s.cfg.Headers)
		s.lanes[id] = l
	}
	return l
}

// authorize returns nil if the key is accepted.
func (s *Server) authorize(key string) *gateway.Refusal {
	switch {
	case key == "":
		return &gateway.Refusal{
			Status:  http.StatusUnauthorized,
			Message: "You didn't provide an API key.",
			Kind:    "invalid_request_error", Code: "missing_api_key",
		}
	case !s.accepts(key):
		// Real endpoints echo the key, so clients have to cope with that.
		return &gateway.Refusal{
			Status:  http.StatusUnauthorized,
			Message: "Incorrect API key provided: " + key + ".",
			Kind:    "invalid_request_error", Code: "invalid_api_key",
		}
	}
	return nil
}

func (s *Server) accepts(key string) bool {
	_, ok := s.keys[key]
	return ok || len(s.keys) == 0
}

func (s *Server) listModels(w http.ResponseWriter, r *http.Request) {
	if e := s.authorize(gateway.CatalogKey(r.Header)); e != nil {
		writeError(w, *e)
		return
	}
	if name := r.PathValue("model"); name != "" {
		if _, ok := s.model(name); !ok {
			writeError(w, *s.noModel(name))
			return
		}
	}
	writeJSON(w, http.StatusOK, gateway.Catalog(r, slices.Sorted(slices.Values(s.cfg.Models))))
}
