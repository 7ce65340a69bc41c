package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/engine"
	"github.com/assay-eval/assay/internal/run/terminal"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/child"
)

// An Order asks a run to change or to describe itself. [Send] sends it.
type Order struct {
	// Do is status, flights, strips, pause, resume, set, cancel, requeue or drain.
	Do string `json:"do"`
	// Names are models, lanes, trials or workers. Without names, the order is for all of them.
	Names []string `json:"names,omitempty"`
	// Limits belong to set.
	Limits map[assay.Bucket]int `json:"limits,omitempty"`
	// Preview asks for the effect of the order instead of carrying it out.
	Preview bool `json:"preview,omitempty"`
}

// A Reply is the answer of a run to an Order.
type Reply struct {
	// Text describes the change for people.
	Text  string `json:"text,omitempty"`
	Error string `json:"error,omitempty"`
	// Run is the answer to status.
	Run *terminal.Progress `json:"run,omitempty"`
	// Effect is the answer to an order that was only to be previewed.
	Effect *Effect `json:"effect,omitempty"`
	// Flights and Strips are the answers to flights and strips.
	Flights []Flight    `json:"flights,omitempty"`
	Strips  []LaneStrip `json:"strips,omitempty"`
}

// serveControl takes orders over a local socket until the server is closed. This run holds the
// store's lock, so a socket that exists was left behind by a run that was killed.
func (s *Session) serveControl() (*http.Server, error) {
	server := &http.Server{
		Handler: http.HandlerFunc(s.handle), ReadHeaderTimeout: 5 * time.Second, ConnContext: withSender,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelError),
	}
	listen := s.options.Listen
	if listen == nil {
		listen = s.listenNextToStore
	}
	listener, err := listen()
	if err != nil {
		return server, err
	}
	go func() { _ = server.Serve(listener) }()
	return server, nil
}

// closeControl ends the server after it has answered the orders that it has carried out.
func (s *Session) closeControl(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = errors.Join(server.Shutdown(ctx), server.Close())
}

func (s *Session) listenNextToStore() (net.Listener, error) {
	path, err := socketPath(s.options.Store)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return listenPrivately(path)
}

// listenPrivately creates a socket that only this user can connect to.
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

// senderKey is the key of the process that sends orders, in the context of its requests.
type senderKey struct{}

func withSender(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, senderKey{}, senderOf(conn))
}

// errOwnProgram answers an order of an agent or a tool server, which can find the socket.
var errOwnProgram = errors.New("the order comes from a program that this run has started, which may give none")

func (s *Session) handle(w http.ResponseWriter, r *http.Request) {
	var o Order
	var out Reply
	status := http.StatusOK
	if pid, _ := r.Context().Value(senderKey{}).(int); child.Descends(pid) {
		s.log.Warn(errOwnProgram.Error(), "process", pid)
		status, out.Error = http.StatusForbidden, errOwnProgram.Error()
	} else if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&o); err != nil {
		out.Error = err.Error()
	} else if out, err = s.obey(r.Context(), o); err != nil {
		out = Reply{Error: s.options.Words.Of(err)}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(out) // the client may be gone
}

// obey carries out an order. An order that changes anything is logged in the store first.
func (s *Session) obey(ctx context.Context, o Order) (Reply, error) {
	if o.Preview {
		effect, err := s.effect(ctx, o)
		return Reply{Effect: effect}, err
	}
	switch o.Do {
	case "status":
		progress := s.progress()
		return Reply{Run: &progress}, nil
	case "flights":
		return Reply{Flights: s.flights.oldest()}, nil
	case "strips":
		return Reply{Strips: s.strips.read()}, nil
	}
	do, ok := map[string]func(context.Context, Order) (string, error){
		"pause": s.pause, "resume": s.pause, "set": s.set,
		"cancel": s.command, "requeue": s.command, "drain": s.drain,
	}[o.Do]
	if !ok {
		return Reply{}, fmt.Errorf("unknown order %q", o.Do)
	}
	if err := s.checkNames(o); err != nil {
		return Reply{}, err
	}
	b, err := json.Marshal(o)
	if err == nil {
		err = s.db.Log(ctx, store.Control{Run: s.id, At: time.Now().UTC(), Command: b})
	}
	if err != nil {
		return Reply{}, fmt.Errorf("cannot log the order, so it was not carried out: %w", err)
	}
	text, err := do(ctx, o)
	if err == nil {
		s.note("by order: " + text)
	}
	return Reply{Text: text}, err
}

// checkNames returns an error if a name of an order for lanes or trials stands for none of them, so that
// a misspelt name is never obeyed in part.
func (s *Session) checkNames(o Order) error {
	switch o.Do {
	case "drain": // it knows the runners
		return nil
	case "cancel", "requeue":
		return checkNames(o.Names, "model or trial", s.Experiment.Models, s.hasTrial,
			assay.HintTrialIDs, s.options.Store)
	}
	lanes := s.lanes()
	return checkNames(o.Names, "lane or model", slices.Concat(lanes, s.Experiment.Asked()),
		func(o Order) bool {
			return slices.ContainsFunc(lanes, func(l string) bool { return Matches(o, "", l) })
		}, assay.HintLanes, s.options.Store)
}

// checkNames returns an error about the first name that is not known and that matches nothing.
func checkNames(
	names []string, what string, known []string, matches func(Order) bool, hint assay.Hint, path string,
) error {
	for _, name := range names {
		if slices.Contains(known, name) || matches(Order{Names: []string{name}}) {
			continue
		}
		err := fmt.Errorf("no %s of this run is called %s", what, name)
		if near := assay.NearestName(name, known); near != "" {
			return fmt.Errorf("%w\nhint: did you mean %s?", err, near)
		}
		return assay.WithHint(err, hint, assay.StorePath(path))
	}
	return nil
}

// lanes returns the names of all lanes.
func (s *Session) lanes() (names []string) {
	for _, owner := range s.pools.Apart(s.Experiment.Asked()) {
		states, _ := s.pools.ByModel[owner].Status()
		for _, l := range states {
			names = append(names, l.Name)
		}
	}
	return names
}

// hasTrial reports whether an order names a planned trial.
func (s *Session) hasTrial(o Order) bool {
	for t := range s.Trials() {
		if o.isFor(t.Model, t.ID) {
			return true
		}
	}
	return false
}

// Matches reports whether an order is for a lane. An order matches if it names the lane, a prefix
// of its name, or its model, or if it has no names.
func Matches(o Order, model, lane string) bool {
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

func (s *Session) pause(_ context.Context, o Order) (string, error) {
	names := s.change(o, func(p *lane.Pool, matches func(string) bool) []string {
		return p.Hold(o.Do == "pause", matches)
	})
	s.outlook.noteHeld(time.Now())
	s.changePace()
	return laneText(o.Do+"d", names), nil // paused or resumed
}

// change changes the lanes that an order names, by the names of the lanes or of their models.
func (s *Session) change(
	o Order, change func(p *lane.Pool, matches func(lane string) bool) []string,
) (names []string) {
	for _, owner := range s.pools.Apart(s.Experiment.Asked()) {
		p := s.pools.ByModel[owner]
		names = append(names, change(p, func(l string) bool {
			return slices.ContainsFunc(s.Experiment.Asked(), func(model string) bool {
				return s.pools.ByModel[model] == p && Matches(o, model, l)
			})
		})...)
	}
	return names
}

func (s *Session) set(_ context.Context, o Order) (string, error) {
	names := s.change(o, func(p *lane.Pool, matches func(string) bool) []string {
		return p.SetLimits(o.Limits, matches)
	})
	s.changePace()
	var words []string
	for _, b := range lane.Buckets {
		if n, ok := o.Limits[b]; ok && n > 0 {
			words = append(words, limitText(b, n))
		} else if ok {
			words = append(words, "no "+string(b)+" limit")
		}
	}
	return laneText("set "+strings.Join(words, ", ")+" on", names), nil
}

// changePace takes the pace of the lanes for unknown, because the user has changed them. The forecast
// that stands in for it takes longer than the user should wait for an answer.
func (s *Session) changePace() {
	s.outlook.changePace()
	select {
	case s.repaced <- struct{}{}:
	default: // the forecast that is asked for will know these lanes
	}
}

// foresee makes a forecast whenever the user has changed lanes, until ctx ends.
func (s *Session) foresee(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.repaced:
			if f := s.reforecast(ctx); f != nil {
				s.outlook.revise(f)
			}
		}
	}
}

// reforecast returns a forecast of the pending trials with the open lanes as they are now, or nil if
// that is unknown.
func (s *Session) reforecast(ctx context.Context) *job.Forecast {
	now, pending := *s.pools, make(map[string]int)
	now.Configs = make(map[string][]lane.Config)
	for _, model := range s.Experiment.Asked() {
		states, _ := s.pools.ByModel[model].Status()
		for i, c := range s.pools.Configs[model] {
			if l := states[i]; l.Closed == nil && !l.Held {
				c.Limits, c.Spent = presentLimits(l), nil
				now.Configs[model] = append(now.Configs[model], c)
			}
		}
	}
	for _, model := range s.Experiment.Models {
		if len(now.Configs[model]) > 0 { // else it would take for ever
			pending[model] = s.tally.Standing(model).Pending
		}
	}
	f, err := s.Forecast(ctx, s.db, &now, pending, s.options.SimLatency)
	if err != nil && ctx.Err() == nil {
		s.log.Error("no forecast of the changed lanes", "error", err.Error())
	}
	if err != nil {
		return nil
	}
	return &f
}

// laneText describes a change of lanes, and counts several.
func laneText(done string, lanes []string) string {
	slices.Sort(lanes)
	if len(lanes) > 1 {
		done += fmt.Sprintf(" %d lanes:", len(lanes))
	}
	return done + " " + strings.Join(lanes, ", ")
}

// command cancels or requeues trials by model or by the beginning of their ID.
func (s *Session) command(ctx context.Context, o Order) (string, error) {
	done := make(chan int, 1)
	c := engine.Command{
		Cancel: o.Do == "cancel", Done: done,
		Match: func(t *assay.Trial) bool { return o.isFor(t.Model, t.ID) },
	}
	select {
	case s.commands <- c:
	case <-s.ended:
		return "", errors.New("the run is about to end")
	case <-ctx.Done():
		return "", ctx.Err()
	}

	n := <-done
	if err := s.logRequeued(ctx); err != nil {
		return "", err
	}
	names := strings.Join(o.Names, ", ")
	switch {
	case o.Do == "cancel":
		return fmt.Sprintf("cancelled %s: %d were in flight; cancelled trials stay pending "+
			"and do not start again in this run", names, n), nil
	case names == "":
		return fmt.Sprintf("requeued %d parked or cancelled trials", n), nil
	}
	return fmt.Sprintf("requeued %d trials of %s", n, names), nil
}

// A requeuedRecord says which trials a run took back that it had parked, with the numbers of the attempts that
// parked them, as [job.Tally.Requeue] reads them.
type requeuedRecord struct {
	Do     string                `json:"do"` // doneRequeue
	Parked map[assay.TrialID]int `json:"parked"`
}

const doneRequeue = "requeued"

// requeuing has the trials that the engine took back and that no record has yet.
type requeuing struct {
	mu     sync.Mutex
	parked map[assay.TrialID]int
}

func (r *requeuing) add(id assay.TrialID, number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parked == nil {
		r.parked = make(map[assay.TrialID]int)
	}
	r.parked[id] = number
}

func (r *requeuing) take() map[assay.TrialID]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	parked := r.parked
	r.parked = nil
	return parked
}

// logRequeued stores which trials an order took back, so that other processes count them like this one.
func (s *Session) logRequeued(ctx context.Context) error {
	parked := s.requeued.take()
	if parked == nil {
		return nil
	}
	b, err := json.Marshal(requeuedRecord{doneRequeue, parked})
	if err == nil {
		err = s.db.Log(context.WithoutCancel(ctx), store.Control{Run: s.id, At: time.Now().UTC(), Command: b})
	}
	if err != nil {
		return fmt.Errorf("the order was carried out, but status will not count its trials: %w", err)
	}
	return nil
}

// isFor reports whether an order is for a trial of a model.
func (o Order) isFor(model string, id assay.TrialID) bool {
	if len(o.Names) == 0 {
		return true
	}
	for _, n := range o.Names {
		if n == model || len(n) >= 4 && strings.HasPrefix(string(id), strings.ToLower(n)) {
			return true
		}
	}
	return false
}

// limitText describes a limit in words, such as "3 requests at once".
func limitText(b assay.Bucket, n int) string {
	return fmt.Sprintf("%d %s", n, lane.Unit(b))
}
