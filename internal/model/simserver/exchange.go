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
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
)

// largestBody is the maximum size of a request's body in bytes.
const largestBody = 8 << 20

// defaultMaxTokens is reserved for a request without its own limit.
const defaultMaxTokens = 256

// closing returns the answer after Close.
func closing() gateway.Refusal {
	return gateway.Refusal{
		Status:  http.StatusServiceUnavailable,
		Message: "The server is closing.", Kind: "server_error", Code: "closing",
	}
}

// exchange is a request and its response.
type exchange struct {
	server  *Server
	dialect gateway.Dialect
	w       http.ResponseWriter
	r       *http.Request
	key     string
	// deployment comes from the path or, if it is not there, from the body.
	deployment string

	// Set by read.
	req  assay.Request
	hash uint64 // of the body

	// Set by admit.
	lane   *keyTraffic
	ticket ticket

	// used is the request's usage, or zero without a reply.
	used tokenCost
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
	for _, step := range []func() *gateway.Refusal{x.authorize, x.read, x.admit} {
		if e := step(); e != nil {
			x.sendError(*e)
			return
		}
	}
	x.answer()
}

func (x *exchange) authorize() *gateway.Refusal { return x.server.authorize(x.key) }

// read reads and parses the body.
func (x *exchange) read() *gateway.Refusal {
	var raw bytes.Buffer
	raw.Grow(int(min(max(x.r.ContentLength, 0), largestBody)) + bytes.MinRead)
	if _, err := raw.ReadFrom(http.MaxBytesReader(x.w, x.r.Body, largestBody)); err != nil {
		return unreadable(err)
	}
	x.hash = hash(raw.Bytes())

	named, stream, wrong := gateway.Target(x.r)
	if wrong = cmp.Or(wrong, gateway.Beyond(stream)); wrong != nil {
		return wrong
	}
	p, e := x.dialect.Decode(raw.Bytes())
	x.deployment = cmp.Or(named, p.Deployment)
	if e = cmp.Or(e, p.Beyond); e != nil {
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
func (s *Server) noModel(deployment string) *gateway.Refusal {
	message := "The model `" + deployment + "` does not exist."
	if hint := assay.NameHint(deployment, s.cfg.Models); hint != "" {
		message += " Hint: " + hint
	}
	return &gateway.Refusal{
		Status: http.StatusNotFound, Message: message, Kind: "invalid_request_error",
		Param: "model", Code: "model_not_found",
	}
}

// check checks the conversation.
func (x *exchange) check() *gateway.Refusal {
	if e := gateway.CheckDialogue(x.req.Messages); e != nil {
		return e
	}
	if !x.server.thinks() {
		return nil
	}
	return gateway.CheckThoughts(x.req.Messages, x.dialect)
}

func unreadable(err error) *gateway.Refusal {
	e := gateway.BadRequest("", "We could not read the body of your request.")
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		e = gateway.BadRequest("", "The body of your request is larger than %d bytes.", tooLarge.Limit)
		e.Status = http.StatusRequestEntityTooLarge
	}
	return e
}

// admit checks the limits. The request counts with an estimated cost until the
// cost of its reply is known.
func (x *exchange) admit() *gateway.Refusal {
	x.lane = x.server.lane(x.key, x.deployment, x.req.Model)
	reply := defaultMaxTokens
	if n := x.req.Sampling.MaxTokens; n != nil {
		reply = min(*n, math.MaxInt32)
	}
	ticket, denied := x.lane.admit(time.Now(), tokenCost{estimate(x.req), reply})
	if denied == nil {
		x.ticket = ticket
		return nil
	}
	x.server.stats.overLimit()
	x.retryAfter(denied.wait)
	if x.server.cfg.RetryAfter == RetryAfterSilent {
		return &gateway.Refusal{
			Status:  http.StatusTooManyRequests,
			Message: "Rate limit reached", Kind: "rate_limit_error", Code: "rate_limit_exceeded",
		}
	}
	return &gateway.Refusal{
		Status: http.StatusTooManyRequests,
		Message: fmt.Sprintf("Rate limit reached for %s on %s: "+
			"Limit %d, Used %d, Requested %d. Please try again in %dms.",
			x.deployment, denied.name, denied.limit, denied.used, denied.requested,
			milliseconds(denied.wait)),
		Kind: denied.unit, Code: "rate_limit_exceeded",
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
	body := gateway.Reply{
		ID: x.hash, Created: time.Now().Unix(), Model: x.req.Model,
		Nothing: fault == "empty", Response: *resp,
	}
	if x.server.thinks() {
		body.Thought = gateway.Think(x.hash, resp.Message.Calls)
		tokens := len(body.Thought.Text()) / 4
		body.Usage = resp.Usage.Add(assay.Usage{OutputTokens: tokens, ReasoningTokens: tokens})
	}
	body.Usage = x.server.cached(x.req, body.Usage)
	if !protocol.ReportsCacheWrites(x.dialect) {
		body.Usage.CacheWriteTokens = 0 // so they cost as much as other input
	}
	x.server.stats.charge(x.req.Model, x.server.cfg.Tariff, body.Usage)
	x.used = tokenCost{body.Usage.InputTokens, body.Usage.OutputTokens}
	x.server.stats.tokens(body.Usage.InputTokens, body.Usage.OutputTokens)
	if fault == "wrong-model" {
		body.Model = x.server.otherModel(body.Model)
	}
	if encoded := gateway.Encode(x.dialect.Encode(body)); !x.spoil(fault, encoded) {
		x.send(http.StatusOK, encoded)
	}
}

// reply waits for the latency and asks the provider. If it returns false, it has
// sent any response that is due.
func (x *exchange) reply() (*assay.Response, bool) {
	s := x.server
	if d := s.cfg.Latency.of(s.cfg.Seed, x.hash); d > 0 && !x.wait(d) {
		return nil, false
	}
	resp, err := s.cfg.Provider.Chat(x.r.Context(), &x.req)
	if err == nil {
		return resp, true
	}
	if x.r.Context().Err() == nil {
		x.sendFault(assay.AsFault(err))
	}
	return nil, false
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
	e := gateway.Refusal{
		Status:  http.StatusInternalServerError,
		Message: f.Detail, Kind: "server_error", Code: string(f.Kind),
	}
	switch f.Kind {
	case assay.RateLimited:
		e.Status = http.StatusTooManyRequests
		x.retryAfter(max(f.RetryAfter, time.Second))
	case assay.Overloaded:
		e.Status = http.StatusServiceUnavailable
	case assay.Auth:
		e.Status = http.StatusUnauthorized
	case assay.Quota:
		e.Status, e.Code = http.StatusTooManyRequests, "insufficient_quota"
	case assay.NotFound:
		e.Status = http.StatusNotFound
	case assay.BadRequest, assay.ContentFilter:
		e.Status = http.StatusBadRequest
	}
	x.sendError(e)
}

func (x *exchange) sendError(e gateway.Refusal) {
	status, body := x.dialect.Refuse(e)
	x.send(status, gateway.Encode(body))
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

// leave removes the request from the requests in flight. Only the first call has an effect. It is
// called before the response, because the client may send its next request as soon as it has read
// the response and must not find its own slot taken. For the same reason, a request that is made to
// hang leaves at once: the server learns late that its client has given up.
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
