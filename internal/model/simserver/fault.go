package simserver

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// A Fault is a way in which the server misbehaves, and how often.
type Fault struct {
	// Kind is one of [FaultKinds].
	Kind string
	// Share is the part of the requests that it befalls, in [0,1].
	Share float64
}

// FaultKinds lists what a [Fault] can be: a status code (429 asks for one
// second of patience); quota, a 429 that no patience helps; content-filter, a
// 400 for what the prompt says; redirect, to an address where nobody answers;
// html, a page in place of a completion; hang, no answer until the client
// leaves; hang-body, headers and then nothing; drip, the right body at ten
// bytes a second; reset, a TCP reset; truncate, half a body; oversized, a
// right body behind 9 MiB of white space; bad-json; empty, a completion
// without choices; wrong-model, a reply in another model's name.
func FaultKinds() []string {
	return []string{
		"400", "401", "403", "404", "408", "409", "413", "422", "429",
		"500", "502", "503", "504", "529",
		"quota", "content-filter", "redirect", "html",
		"hang", "hang-body", "drip", "reset", "truncate", "oversized",
		"bad-json", "empty", "wrong-model",
	}
}

// ParseFault reads "hang=1%" or "hang=0.01".
func ParseFault(s string) (Fault, error) {
	kind, value, ok := strings.Cut(s, "=")
	kind = strings.TrimSpace(kind)
	if !ok {
		return Fault{}, fmt.Errorf("fault %q has no share\nhint: faults look like hang=1%%", s)
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(value), "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: the share %q is no number\nhint: faults look like hang=1%% or hang=0.01", s, value)
	}
	if percent {
		share /= 100
	}
	f := Fault{kind, share}
	if err := f.check(); err != nil {
		return Fault{}, err
	}
	return f, nil
}

func (f Fault) check() error {
	if !slices.Contains(FaultKinds(), f.Kind) {
		return unknown("fault", f.Kind, FaultKinds())
	}
	if !(f.Share >= 0 && f.Share <= 1) {
		return fmt.Errorf("fault %s: the share %v is not between 0 and 1", f.Kind, f.Share)
	}
	return nil
}

// A picker draws the faults. Each request gets a draw of its own, so that one
// which is repeated has another chance.
type picker struct {
	faults []Fault
	seed   uint64
	drawn  *atomic.Uint64
}

func newPicker(faults []Fault, seed uint64) (picker, error) {
	total := 0.0
	for _, f := range faults {
		if err := f.check(); err != nil {
			return picker{}, err
		}
		total += f.Share
	}
	if total > 1+1e-9 {
		return picker{}, fmt.Errorf("the faults' shares add up to %v, which is more than all requests", total)
	}
	return picker{faults, seed, new(atomic.Uint64)}, nil
}

// pick returns the next request's fault, "" for none.
func (p picker) pick() string {
	if len(p.faults) == 0 {
		return ""
	}
	draw := rand.New(rand.NewPCG(p.seed, p.drawn.Add(1))).Float64()
	for _, f := range p.faults {
		if draw -= f.Share; draw < 0 {
			return f.Kind
		}
	}
	return ""
}

// fail plays a fault that needs no reply from the model, and reports whether
// kind is one.
func (x *exchange) fail(kind string) bool {
	if status, err := strconv.Atoi(kind); err == nil {
		if status == http.StatusTooManyRequests {
			x.retryAfter(time.Second)
		}
		x.sendError(injected(status))
		return true
	}
	switch kind {
	case "quota":
		x.sendError(apiError{http.StatusTooManyRequests, "You exceeded your current quota. This failure is simulated.", "insufficient_quota", "", "insufficient_quota"})
	case "content-filter":
		x.sendError(apiError{http.StatusBadRequest, "The prompt was filtered. This failure is simulated.", "invalid_request_error", "prompt", "content_filter"})
	case "redirect":
		x.w.Header().Set("Location", "http://127.0.0.1:1/")
		x.sendError(injected(http.StatusTemporaryRedirect))
	case "html":
		x.begin(http.StatusOK, "text/html; charset=utf-8", len(page))
		_, _ = io.WriteString(x.w, page)
	case "hang":
		if x.hold() {
			x.sendError(closing())
		}
	case "reset":
		x.reset()
	default:
		return false
	}
	return true
}

// page is what a gateway may say for itself.
const page = "<!doctype html><title>Sign in</title><p>This failure is simulated.</p>\n"

func injected(status int) apiError {
	e := apiError{status: status, message: "This failure is simulated.", kind: "server_error", code: "simulated"}
	switch status {
	case http.StatusBadRequest:
		e.kind, e.code = "invalid_request_error", ""
	case http.StatusUnauthorized:
		e.kind, e.code = "invalid_request_error", "invalid_api_key"
	case http.StatusForbidden:
		e.kind, e.code = "permission_error", "permission_denied"
	case http.StatusNotFound:
		e.kind, e.code = "invalid_request_error", "model_not_found"
	case http.StatusRequestTimeout:
		e.kind, e.code = "timeout_error", "request_timeout"
	case http.StatusConflict:
		e.kind, e.code = "conflict_error", "conflict"
	case http.StatusRequestEntityTooLarge:
		e.kind, e.code = "invalid_request_error", "request_too_large"
	case http.StatusUnprocessableEntity:
		e.kind, e.code = "invalid_request_error", "unprocessable_entity"
	case http.StatusTooManyRequests:
		e.kind, e.code = "requests", "rate_limit_exceeded"
	case http.StatusBadGateway:
		e.code = "bad_gateway"
	case http.StatusGatewayTimeout:
		e.code = "gateway_timeout"
	}
	return e
}

// hold waits until the client leaves, and reports whether Close came first.
func (x *exchange) hold() (closed bool) {
	x.leave()
	select {
	case <-x.r.Context().Done():
		return false
	case <-x.server.closed:
		return true
	}
}

// reset closes the connection so that the client's system reports a reset.
func (x *exchange) reset() {
	x.leave()
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2 has no connection of the request's own
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the close is merely a polite one
	}
}

// spoil sends a right body in a wrong way, and reports whether kind is one.
func (x *exchange) spoil(kind string, body []byte) bool {
	switch kind {
	case "bad-json":
		x.send(http.StatusOK, append(slices.Clone(body[:len(body)/2]), "<!-- internal error -->"...))
	case "truncate":
		// net/http closes the connection after a handler that wrote less
		// than it had announced.
		x.begin(http.StatusOK, contentJSON, len(body))
		_, _ = x.w.Write(body[:len(body)/2])
	case "hang-body":
		x.begin(http.StatusOK, contentJSON, len(body))
		_, _ = x.w.Write(body[:1])
		_ = http.NewResponseController(x.w).Flush()
		x.hold()
	case "drip":
		x.begin(http.StatusOK, contentJSON, len(body))
		x.drip(body)
	case "oversized":
		x.pad(body)
	default:
		return false
	}
	return true
}

func (x *exchange) drip(body []byte) {
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for i := range body {
		select {
		case <-tick.C:
		case <-x.r.Context().Done():
			return
		case <-x.server.closed:
			return
		}
		if _, err := x.w.Write(body[i : i+1]); err != nil {
			return
		}
		_ = http.NewResponseController(x.w).Flush()
	}
}

// pad sends body behind so much white space that a client which bounds what it
// reads finds no completion.
func (x *exchange) pad(body []byte) {
	const chunks, size = 9 * 16, 64 << 10
	x.begin(http.StatusOK, contentJSON, chunks*size+len(body))
	space := bytes.Repeat([]byte(" "), size)
	for range chunks {
		if _, err := x.w.Write(space); err != nil {
			return
		}
	}
	_, _ = x.w.Write(body)
}
