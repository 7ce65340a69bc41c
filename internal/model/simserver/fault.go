package simserver

import (
	"bytes"
	"cmp"
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

	"github.com/assay-eval/assay/internal/model/gateway"
)

// Fault is a way in which the server misbehaves, and how often.
type Fault struct {
	// Kind is one of [FaultKinds].
	Kind string
	// Share is the share of requests with this fault, in [0,1].
	Share float64
}

// FaultKinds lists the kinds of a [Fault]:
//
//   - a status code; 429 asks for a wait of one second
//   - quota: a 429 for which waiting does not help
//   - content-filter: a 400 because of the prompt's content
//   - redirect: a redirect to an address where no server answers
//   - html: a page instead of a completion
//   - hang: no answer until the client leaves
//   - hang-body: headers without a body
//   - drip: a correct body at ten bytes per second
//   - reset: a TCP reset
//   - truncate: half a body
//   - oversized: a correct body after 9 MiB of white space
//   - bad-json: a body that is not valid JSON
//   - empty: a completion without choices
//   - wrong-model: a reply with another model's name
//   - error-inside: a reply with status 200 that has an error, too
func FaultKinds() []string {
	return []string{
		"400", "401", "403", "404", "408", "409", "413", "422", "423", "425", "429", "498", "499",
		"500", "502", "503", "504", "529",
		"quota", "content-filter", "redirect", "html",
		"hang", "hang-body", "drip", "reset", "truncate", "oversized",
		"bad-json", "empty", "wrong-model", "error-inside",
	}
}

// ParseFault parses a fault such as "hang=1%" or "hang=0.01".
func ParseFault(s string) (Fault, error) {
	kind, value, ok := strings.Cut(s, "=")
	kind = strings.TrimSpace(kind)
	if !ok {
		err := Fault{Kind: kind}.check() // an unknown kind says more
		return Fault{}, cmp.Or(err, fmt.Errorf("fault %q has no share\nhint: faults look like %s=1%%", s, kind))
	}
	number, percent := strings.CutSuffix(strings.TrimSpace(value), "%")
	share, err := strconv.ParseFloat(number, 64)
	if err != nil {
		return Fault{}, fmt.Errorf("fault %q: the share %q is not a number\n"+
			"hint: faults look like hang=1%% or hang=0.01", s, value)
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

// picker draws the faults. Each request gets its own draw, so a repeated request
// may have another result.
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
		return picker{}, fmt.Errorf("the shares of the faults add up to %v, more than 1", total)
	}
	return picker{faults, seed, new(atomic.Uint64)}, nil
}

// pick returns the next request's fault, or "".
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

// fail sends a fault that does not need a reply of the model. It returns false if
// kind is not such a fault.
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
		x.sendError(gateway.Refusal{
			Status:  http.StatusTooManyRequests,
			Message: "You exceeded your current quota. This failure is simulated.",
			Kind:    "insufficient_quota", Code: "insufficient_quota",
		})
	case "content-filter":
		x.sendError(gateway.Refusal{
			Status:  http.StatusBadRequest,
			Message: "The prompt was filtered. This failure is simulated.",
			Kind:    "invalid_request_error", Param: "prompt", Code: "content_filter",
		})
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

// page is a page that a gateway may send.
const page = "<!doctype html><title>Sign in</title><p>This failure is simulated.</p>\n"

// injectedErrors has the type and the code of the errors with a status. Others are server_error and
// simulated.
var injectedErrors = map[int][2]string{
	http.StatusBadRequest:            {"invalid_request_error", ""},
	http.StatusUnauthorized:          {"invalid_request_error", "invalid_api_key"},
	http.StatusForbidden:             {"permission_error", "permission_denied"},
	http.StatusNotFound:              {"invalid_request_error", "model_not_found"},
	http.StatusRequestTimeout:        {"timeout_error", "request_timeout"},
	http.StatusConflict:              {"conflict_error", "conflict"},
	http.StatusRequestEntityTooLarge: {"invalid_request_error", "request_too_large"},
	http.StatusUnprocessableEntity:   {"invalid_request_error", "unprocessable_entity"},
	http.StatusTooManyRequests:       {"requests", "rate_limit_exceeded"},
	http.StatusBadGateway:            {"server_error", "bad_gateway"},
	http.StatusGatewayTimeout:        {"server_error", "gateway_timeout"},
}

func injected(status int) gateway.Refusal {
	names, ok := injectedErrors[status]
	if !ok {
		names = [2]string{"server_error", "simulated"}
	}
	return gateway.Refusal{
		Status: status, Message: "This failure is simulated.", Kind: names[0], Code: names[1],
	}
}

// hold waits until the client leaves or the server is closed. It returns true if
// the server was closed.
func (x *exchange) hold() (closed bool) {
	x.leave()
	select {
	case <-x.r.Context().Done():
		return false
	case <-x.server.closed:
		return true
	}
}

// reset closes the connection with a TCP reset.
func (x *exchange) reset() {
	x.leave()
	conn, _, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // in HTTP/2 a request does not own its connection
	}
	defer conn.Close()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // makes Close send a reset
	}
}

// spoil sends a correct body in a wrong way. It returns false if kind is not a
// fault of the body.
func (x *exchange) spoil(kind string, body []byte) bool {
	switch kind {
	case "bad-json":
		half := slices.Clone(body[:len(body)/2])
		x.send(http.StatusOK, append(half, "<!-- internal error -->"...))
	case "truncate":
		// net/http closes the connection if a handler writes less than it has
		// announced.
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
	case "error-inside":
		x.send(http.StatusOK, append(body[:len(body)-1:len(body)-1],
			`,"error":{"message":"This failure is simulated.","code":502}}`...))
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

// pad sends body after so much white space that a client with a size limit does
// not reach the completion.
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
