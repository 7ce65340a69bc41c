package simserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/nearest"
)

// largestBody bounds a request's body, in bytes.
const largestBody = 8 << 20

// defaultMaxTokens is reserved for a request that sets no limit of its own.
const defaultMaxTokens = 256

// closing is the answer after Close.
func closing() apiError {
	return apiError{http.StatusServiceUnavailable, "The server is closing.", "server_error", "", "closing"}
}

// An exchange is a request on its way to its response.
type exchange struct {
	server *Server
	w      http.ResponseWriter
	r      *http.Request
	key    string
	// deployment is from the path, or else from the body.
	deployment string

	// Set by read.
	req  assay.Request
	hash uint64 // of the body

	// Set by admit.
	lane   *lane
	ticket ticket

	// used is how many tokens the reply took; 0 without one.
	used int
	// left says that the request no longer counts as in flight.
	left bool
}

func (s *Server) chat(x *exchange) {
	s.stats.arrive()
	defer x.leave()
	select {
	case <-s.closed:
		x.sendError(closing())
		return
	default:
	}
	for _, step := range []func() *apiError{x.authorize, x.read, x.admit} {
		if e := step(); e != nil {
			x.sendError(*e)
			return
		}
	}
	x.answer()
}

func (x *exchange) authorize() *apiError { return x.server.authorize(x.key) }

// read reads the body and finds out what it wants.
func (x *exchange) read() *apiError {
	raw, err := io.ReadAll(http.MaxBytesReader(x.w, x.r.Body, largestBody))
	if err != nil {
		return unreadable(err)
	}
	x.hash = hash(raw)
	var body chatRequest
	if err := json.Unmarshal(raw, &body); err != nil {
		return badRequest("", "We could not parse the JSON body of your request: %v", err)
	}
	if x.deployment == "" {
		x.deployment = body.Model
	}
	model, ok := x.server.model(x.deployment)
	if !ok {
		message := "The model `" + x.deployment + "` does not exist."
		if hint := nearest.Hint(x.deployment, x.server.cfg.Models); hint != "" {
			message += " Hint: " + hint
		}
		return &apiError{http.StatusNotFound, message, "invalid_request_error", "model", "model_not_found"}
	}
	var e *apiError
	x.req, e = body.request(model)
	return e
}

func unreadable(err error) *apiError {
	e := badRequest("", "We could not read the body of your request.")
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		e = badRequest("", "The body of your request is larger than %d bytes.", tooLarge.Limit)
		e.status = http.StatusRequestEntityTooLarge
	}
	return e
}

// admit checks the limits. Until it is known what the reply costs, the request
// counts with an estimate.
func (x *exchange) admit() *apiError {
	x.lane = x.server.lane(x.key, x.deployment, x.req.Model)
	reply := defaultMaxTokens
	if n := x.req.Sampling.MaxTokens; n != nil {
		reply = min(*n, math.MaxInt32)
	}
	ticket, denied := x.lane.admit(time.Now(), estimate(x.req)+reply)
	if denied == nil {
		x.ticket = ticket
		return nil
	}
	x.server.stats.overLimit()
	x.w.Header().Set("Retry-After", seconds(denied.wait))
	x.w.Header().Set("Retry-After-Ms", strconv.FormatInt(milliseconds(denied.wait), 10))
	return &apiError{
		status: http.StatusTooManyRequests,
		message: fmt.Sprintf("Rate limit reached for %s on %s: Limit %d, Used %d, Requested %d. Please try again in %dms.",
			x.deployment, denied.what, denied.limit, denied.used, denied.asked, milliseconds(denied.wait)),
		kind: denied.unit, code: "rate_limit_exceeded",
	}
}

// answer plays the fault that the request draws, if any, and else the reply.
func (x *exchange) answer() {
	fault := x.server.faults.pick()
	if fault != "" {
		x.server.stats.fault(fault)
	}
	if x.fail(fault) {
		return
	}
	resp, ok := x.reply()
	if !ok {
		return
	}
	x.used = resp.Usage.Total()
	x.server.stats.tokens(resp.Usage.InputTokens, resp.Usage.OutputTokens)
	model := x.req.Model
	if fault == "wrong-model" {
		model = x.server.otherModel(model)
	}
	body := newCompletion(x.hash, time.Now().Unix(), model, resp)
	if fault == "empty" {
		body.Choices = []choice{}
	}
	if encoded := encode(body); !x.spoil(fault, encoded) {
		x.send(http.StatusOK, encoded)
	}
}

// reply asks the provider, after the latency. Where there is no reply it has
// sent what there is to send.
func (x *exchange) reply() (assay.Response, bool) {
	s := x.server
	timer := time.NewTimer(s.cfg.Latency.of(s.cfg.Seed, x.hash))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-x.r.Context().Done():
		return assay.Response{}, false
	case <-s.closed:
		x.sendError(closing())
		return assay.Response{}, false
	}
	resp, err := s.cfg.Provider.Chat(x.r.Context(), x.req)
	if err == nil {
		return resp, true
	}
	if x.r.Context().Err() == nil {
		x.sendFault(assay.AsFault(err))
	}
	return assay.Response{}, false
}

// otherModel is another model's name than the given one.
func (s *Server) otherModel(model string) string {
	for _, m := range s.cfg.Models {
		if m != model {
			return m
		}
	}
	return model + "-substitute"
}

// sendFault passes a fault of the provider on, by the status that has its
// meaning.
func (x *exchange) sendFault(f *assay.Fault) {
	e := apiError{status: http.StatusInternalServerError, message: f.Detail, kind: "server_error", code: string(f.Kind)}
	switch f.Kind {
	case assay.RateLimited:
		e.status = http.StatusTooManyRequests
		x.w.Header().Set("Retry-After", seconds(max(f.RetryAfter, time.Second)))
	case assay.Overloaded:
		e.status = http.StatusServiceUnavailable
	case assay.Auth:
		e.status = http.StatusUnauthorized
	case assay.Quota:
		e.status, e.code = http.StatusTooManyRequests, "insufficient_quota"
	case assay.NotFound:
		e.status = http.StatusNotFound
	case assay.BadRequest, assay.ContentFilter:
		e.status = http.StatusBadRequest
	}
	x.sendError(e)
}

func (x *exchange) sendError(e apiError) { x.send(e.status, e.body()) }

func (x *exchange) send(status int, body []byte) {
	x.announce(status)
	writeBody(x.w, status, body)
}

// begin sends the headers of a body that will be length bytes long, or so the
// client is told.
func (x *exchange) begin(status, length int) {
	x.announce(status)
	x.w.Header().Set("Content-Type", "application/json")
	x.w.Header().Set("Content-Length", strconv.Itoa(length))
	x.w.WriteHeader(status)
}

// announce does the books of a response before the client can see it.
func (x *exchange) announce(status int) {
	x.leave()
	x.server.stats.status(status)
	if x.lane != nil {
		x.lane.report(x.w.Header(), time.Now())
	}
}

// leave takes the request out of those in flight, once. That comes before the
// response: its client may send the next request as soon as it has read it,
// and would else find its own slot taken. For the same reason a request that
// is made to hang leaves at once, for the server learns late that its client
// has given up.
func (x *exchange) leave() {
	if x.left {
		return
	}
	x.left = true
	x.server.stats.leave()
	if x.ticket.lane != nil {
		x.ticket.done(x.used)
	}
}

// hash is the same for the same body in every process.
func hash(body []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(body) // never fails
	return h.Sum64()
}

// seconds and milliseconds round up: a client that waits as long as it is told
// must not come too early.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}

func milliseconds(d time.Duration) int64 { return int64((d + time.Millisecond - 1) / time.Millisecond) }
