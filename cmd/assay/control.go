package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/store"
)

// order is what another terminal asks of a run.
type order struct {
	// Do is one of the verbs of `assay ctl`.
	Do string `json:"do"`
	// Names are of models, lanes or trials; none means all.
	Names []string `json:"names,omitempty"`
	// Limits are for set.
	Limits map[assay.Bucket]int `json:"limits,omitempty"`
}

// reply is the run's answer.
type reply struct {
	// Text says what was done, for people.
	Text  string      `json:"text,omitempty"`
	Error string      `json:"error,omitempty"`
	Run   *runControl `json:"run,omitempty"`
}

// runControl is the state of a run that can be controlled.
type runControl struct {
	Run        assay.RunID  `json:"run"`
	Experiment string       `json:"experiment"`
	Models     []modelLanes `json:"models"`
	Elapsed    float64      `json:"elapsed_s"`
	Done       int          `json:"done"`
	Planned    int          `json:"planned"`
	InFlight   int          `json:"in_flight"`
	Notes      []string     `json:"notes"`
}

type modelLanes struct {
	Model   string      `json:"model"`
	Waiting int         `json:"waiting"`
	Lanes   []laneState `json:"lanes"`
}

type laneState struct {
	Lane     string      `json:"lane"`
	InFlight int         `json:"in_flight"`
	Limits   lane.Limits `json:"limits"`
	Learned  lane.Limits `json:"learned"`
	Waits    string      `json:"waits"`
	Paused   bool        `json:"paused"`
}

// socketPath is where the run on a store listens: beside the store, so that
// whoever may not write there cannot command it. A path that is too long for
// a socket gets a stand-in in the system's directory for temporary files.
func socketPath(storePath string) (string, error) {
	abs, err := filepath.Abs(storePath)
	if err != nil {
		return "", err
	}
	if target, err := filepath.EvalSymlinks(abs); err == nil {
		abs = target
	}
	const longest = 100 // of 104 or 108 bytes, by system
	if path := abs + ".ctl"; len(path) <= longest {
		return path, nil
	}
	sum := sha256.Sum256([]byte(abs))
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("assay-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".ctl"), nil
}

// A controlServer takes orders over a local socket.
type controlServer struct{ server *http.Server }

func (c controlServer) close() {
	if c.server != nil {
		_ = c.server.Close()
	}
}

// serveControl opens the socket. The store's lock is held, so a socket that is
// there was left by a run that was killed.
func (s *session) serveControl() (controlServer, error) {
	path, err := socketPath(s.flags.store)
	if err != nil {
		return controlServer{}, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return controlServer{}, err
	}
	listener, err := listenPrivately(path)
	if err != nil {
		return controlServer{}, err
	}
	server := &http.Server{Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: 5 * time.Second}
	go func() { _ = server.Serve(listener) }() // until close
	return controlServer{server}, nil
}

// listenPrivately makes a socket that only this user can connect to.
func listenPrivately(path string) (net.Listener, error) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return listener, nil
}

func (s *session) handle(w http.ResponseWriter, r *http.Request) {
	var o order
	var out reply
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&o); err != nil {
		out.Error = err.Error()
	} else if out, err = s.obey(r.Context(), o); err != nil {
		out = reply{Error: err.Error()}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out) // whoever asked may be gone
}

// obey carries an order out. What changes anything is logged in the store
// before it is done.
func (s *session) obey(ctx context.Context, o order) (reply, error) {
	if o.Do == "status" {
		state := s.controlState()
		return reply{Run: &state}, nil
	}
	do, ok := map[string]func(context.Context, order) (string, error){
		"pause": s.pause, "resume": s.pause, "set": s.set, "cancel": s.command, "requeue": s.command,
	}[o.Do]
	if !ok {
		return reply{}, fmt.Errorf("unknown order %q", o.Do)
	}
	b, err := json.Marshal(o)
	if err == nil {
		err = s.db.Log(ctx, store.Control{Run: s.id, At: time.Now().UTC(), Command: b})
	}
	if err != nil {
		return reply{}, fmt.Errorf("the order cannot be logged, so it is not carried out: %w", err)
	}
	text, err := do(ctx, o)
	if err == nil {
		s.note("by assay ctl: " + text)
	}
	return reply{Text: text}, err
}

// matchLane reports whether an order names a lane or its model, or nothing.
func matchLane(o order, model, lane string) bool {
	if len(o.Names) == 0 {
		return true
	}
	for _, n := range o.Names {
		if n == model || n == lane || strings.HasPrefix(lane, n+"/") {
			return true
		}
	}
	return false
}

func (s *session) pause(_ context.Context, o order) (string, error) {
	var names []string
	for model, p := range s.pools.ByModel {
		names = append(names, p.Hold(o.Do == "pause", func(l string) bool { return matchLane(o, model, l) })...)
	}
	return s.said(map[string]string{"pause": "paused", "resume": "resumed"}[o.Do], names, o)
}

func (s *session) set(_ context.Context, o order) (string, error) {
	var names []string
	for model, p := range s.pools.ByModel {
		names = append(names, p.SetLimits(o.Limits, func(l string) bool { return matchLane(o, model, l) })...)
	}
	var words []string
	for _, b := range lane.Buckets {
		if n, ok := o.Limits[b]; ok && n > 0 {
			words = append(words, limitText(b, n))
		} else if ok {
			words = append(words, "no stated "+string(b))
		}
	}
	return s.said("set "+strings.Join(words, ", ")+" on", names, o)
}

func (s *session) said(what string, lanes []string, o order) (string, error) {
	if len(lanes) == 0 {
		return "", fmt.Errorf("no lane or model is called %s\nhint: `assay ctl status` names them", strings.Join(o.Names, ", "))
	}
	slices.Sort(lanes)
	return fmt.Sprintf("%s %s", what, strings.Join(lanes, ", ")), nil
}

// command cancels or requeues trials by model or by the beginning of their ID.
func (s *session) command(ctx context.Context, o order) (string, error) {
	done := make(chan int, 1)
	c := engine.Command{Cancel: o.Do == "cancel", Done: done, Match: func(t *assay.Trial) bool { return matchTrial(o, t) }}
	select {
	case s.commands <- c:
	case <-s.ended:
		return "", errors.New("the run is about to end")
	case <-ctx.Done():
		return "", ctx.Err()
	}
	n := <-done
	which := strings.Join(o.Names, ", ")
	if o.Do == "cancel" {
		return fmt.Sprintf("cancelled %s: %d were in flight; they stay pending and do not start in this run", which, n), nil
	}
	if which == "" {
		which = "what was parked or cancelled"
	}
	return fmt.Sprintf("requeued %s: %d trials are back", which, n), nil
}

func matchTrial(o order, t *assay.Trial) bool {
	if len(o.Names) == 0 {
		return true
	}
	for _, n := range o.Names {
		if n == t.Model || len(n) >= 4 && strings.HasPrefix(string(t.ID), strings.ToLower(n)) {
			return true
		}
	}
	return false
}

func (s *session) controlState() runControl {
	snapshot := s.meter.Snapshot()
	total := snapshot.Total()
	out := runControl{
		Run: s.id, Experiment: s.Experiment.Name, Elapsed: snapshot.Elapsed.Seconds(), Done: total.Done, Planned: total.Planned,
		InFlight: total.InFlight, Notes: snapshot.Notes, Models: []modelLanes{},
	}
	for _, model := range s.Experiment.Models {
		lanes, waiting := s.pools.ByModel[model].Status()
		m := modelLanes{Model: model, Waiting: waiting.Requests, Lanes: []laneState{}}
		for _, l := range lanes {
			m.Lanes = append(m.Lanes, laneState{l.Name, l.InFlight, l.Limits, l.Learned, l.Waits, l.Held})
		}
		out.Models = append(out.Models, m)
	}
	return out
}
