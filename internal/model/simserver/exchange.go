package simserver

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"time"

	"github.com/assay-eval/assay"
)

// largestBody is the maximum size of a request's body in bytes.
const largestBody = 8 << 20

// defaultMaxTokens is reserved for a request without a limit of its own.
const defaultMaxTokens = 256

// closing returns the answer after Close.
func closing() apiError {
	return apiError{
		status:  http.StatusServiceUnavailable,
		message: "The server is closing.", kind: "server_error", code: "closing",
	}
}

// exchange is a request and its response.
type exchange struct {
	server  *Server
	dialect dialect
	w       http.ResponseWriter
	r       *http.Request
	key     string
	// deployment comes from the path or, if it is not there, from the body.
	deployment string

	// Set by read.
	req  assay.Request
	hash uint64 // of the body

	// Set by admit.
	lane   *lane
	ticket ticket

	// used is the request's usage, or zero without a reply.
	used cost
	// left is true if the request no longer counts as in flight.
	left bool
}

func (s *Server) serve(x *exchange) {
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

// read reads and parses the body.
func (x *exchange) read() *apiError {
	var raw bytes.Buffer
	raw.Grow(int(min(max(x.r.ContentLength, 0), largestBody)) + bytes.MinRead)
	if _, err := raw.ReadFrom(http.MaxBytesReader(x.w, x.r.Body, largestBody)); err != nil {
		return unreadable(err)
	}
	x.hash = hash(raw.Bytes())

	p, e := x.dialect.decode(raw.Bytes())
	x.deployment = cmp.Or(x.deployment, p.deployment)
	if e != nil {
		return e
	}
	model, ok := x.server.model(x.deployment)
	if !ok {
		return x.server.noModel(x.deployment)
	}
	x.req = p.Request
	x.req.Model = model
	return x.check()
}

// noModel returns the refusal of a deployment that does not exist.
func (s *Server) noModel(deployment string) *apiError {
	message := "The model `" + deployment + "` does not exist."
	if hint := assay.NameHint(deployment, s.cfg.Models); hint != "" {
		message += " Hint: " + hint
	}
	return &apiError{
		http.StatusNotFound, message, "invalid_request_error", "model", "model_not_found",
	}
}

// check checks the conversation.
func (x *exchange) check() *apiError {
	if e := checkDialogue(x.req.Messages); e != nil {
		return e
	}
	if !x.server.thinks() {
		return nil
	}
	return checkThoughts(x.req.Messages, x.dialect)
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

// admit checks the limits. The request counts with an estimated cost until the
// cost of its reply is known.
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
		return &apiError{
			status:  http.StatusTooManyRequests,
			message: "Rate limit reached", kind: "rate_limit_error", code: "rate_limit_exceeded",
		}
	}
	return &apiError{
		status: http.StatusTooManyRequests,
		message: fmt.Sprintf("Rate limit reached for %s on %s: "+
			"Limit %d, Used %d, Requested %d. Please try again in %dms.",
			x.deployment, denied.name, denied.limit, denied.used, denied.requested,
			milliseconds(denied.wait)),
		kind: denied.unit, code: "rate_limit_exceeded",
	}
}

// answer sends the reply, or the fault if one was drawn for the request.
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
	body := reply{
		id: x.hash, created: time.Now().Unix(), model: x.req.Model,
		nothing: fault == "empty", Response: resp,
	}
	if x.server.thinks() {
		body.thought = think(x.hash, resp.Message.Calls)
		tokens := len(body.thought.text()) / 4
		body.Usage = resp.Usage.Add(assay.Usage{OutputTokens: tokens, ReasoningTokens: tokens})
	}
	body.Usage = x.server.cached(x.req, body.Usage)
	if !reportsCacheWrites(x.dialect) {
		body.Usage.CacheWriteTokens = 0 // so they cost as much as other input
	}
	x.server.stats.charge(x.req.Model, x.server.cfg.Tariff, body.Usage)
	x.used = cost{body.Usage.InputTokens, body.Usage.OutputTokens}
	x.server.stats.tokens(body.Usage.InputTokens, body.Usage.OutputTokens)
	if fault == "wrong-model" {
		body.model = x.server.otherModel(body.model)
	}
	if encoded := encode(x.dialect.encode(body)); !x.spoil(fault, encoded) {
		x.send(http.StatusOK, encoded)
	}
}

// reply waits for the latency and asks the provider. If it returns false, it has
// sent any response that is due.
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

// wait waits for d and returns true. It returns false if the client leaves or the
// server is closed meanwhile. If the server is closed, it sends an answer.
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

// otherModel returns the name of a different model.
func (s *Server) otherModel(model string) string {
	for _, m := range s.cfg.Models {
		if m != model {
			return m
		}
	}
	return model + "-substitute"
}

// sendFault sends a fault of the provider with the corresponding status.
func (x *exchange) sendFault(f *assay.Fault) {
	e := apiError{
		status:  http.StatusInternalServerError,
		message: f.Detail, kind: "server_error", code: string(f.Kind),
	}
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

func (x *exchange) sendError(e apiError) {
	status, body := x.dialect.refuse(e)
	x.send(status, encode(body))
}

func (x *exchange) send(status int, body []byte) {
	x.begin(status, contentJSON, len(body))
	_, _ = x.w.Write(body) // a failed write means that the client has left
}

// begin sends the headers and announces a body of length bytes.
func (x *exchange) begin(status int, contentType string, length int) {
	x.announce(status)
	writeHead(x.w, status, contentType, length)
}

// announce updates the statistics and limit headers before the client can see
// the response.
func (x *exchange) announce(status int) {
	x.leave()
	now := time.Now()
	x.server.stats.status(status, now)
	if x.lane != nil {
		x.lane.report(x.w.Header(), now)
	}
}

// leave removes the request from those in flight. Only the first call has an
// effect. It is called before the response, because the client may send its next
// request as soon as it has read the response and must not find its own slot
// taken. For the same reason, a request that is made to hang leaves at once: the
// server learns late that its client has given up.
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

// hash returns a hash of the body that is the same in every process.
func hash(body []byte) uint64 {
	h := fnv.New64a()
	_, _ = h.Write(body) // never fails
	return h.Sum64()
}
