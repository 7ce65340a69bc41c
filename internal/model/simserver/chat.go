package simserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"time"

	"github.com/assay-eval/assay"
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

	// used is what the request took; nothing without a reply.
	used cost
	// left says that the request no longer counts as in flight.
	left bool
}

func (s *Server) chat(x *exchange) {
	s.stats.arrive(time.Now())
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
	var raw bytes.Buffer
	raw.Grow(int(min(max(x.r.ContentLength, 0), largestBody)) + bytes.MinRead)
	if _, err := raw.ReadFrom(http.MaxBytesReader(x.w, x.r.Body, largestBody)); err != nil {
		return unreadable(err)
	}
	x.hash = hash(raw.Bytes())
	var body chatRequest
	if err := json.Unmarshal(raw.Bytes(), &body); err != nil {
		return badRequest("", "We could not parse the JSON body of your request: %v", err)
	}
	if x.deployment == "" {
		x.deployment = body.Model
	}
	model, ok := x.server.model(x.deployment)
	if !ok {
		message := "The model `" + x.deployment + "` does not exist."
		if hint := assay.NameHint(x.deployment, x.server.cfg.Models); hint != "" {
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
	ticket, denied := x.lane.admit(time.Now(), cost{estimate(x.req), reply})
	if denied == nil {
		x.ticket = ticket
		return nil
	}
	x.server.stats.overLimit()
	x.retryAfter(denied.wait)
	if x.server.cfg.RetryAfter == RetryAfterSilent {
		return &apiError{http.StatusTooManyRequests, "Rate limit reached", "rate_limit_error", "", "rate_limit_exceeded"}
	}
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
		if x.fail(fault) {
			return
		}
	}
	resp, ok := x.reply()
	if !ok {
		return
	}
	x.used = cost{resp.Usage.InputTokens, resp.Usage.OutputTokens}
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
	if d := s.cfg.Latency.of(s.cfg.Seed, x.hash); d > 0 && !x.wait(d) {
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

// wait waits for d, and reports whether nothing came before. If that was Close
// it has answered.
func (x *exchange) wait(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-x.r.Context().Done():
	case <-x.server.closed:
		x.sendError(closing())
	}
	return false
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
		x.retryAfter(max(f.RetryAfter, time.Second))
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
	x.begin(status, contentJSON, len(body))
	_, _ = x.w.Write(body) // a failed write means that the client has left
}

// begin sends the headers of a body that will be length bytes long, or so the
// client is told.
func (x *exchange) begin(status int, contentType string, length int) {
	x.announce(status)
	writeHead(x.w, status, contentType, length)
}

// announce does the books of a response before the client can see it.
func (x *exchange) announce(status int) {
	x.leave()
	now := time.Now()
	x.server.stats.status(status, now)
	if x.lane != nil {
		x.lane.report(x.w.Header(), now)
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
	x.server.stats.leave(time.Now())
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
