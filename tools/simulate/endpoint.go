package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
)

// The prices of all models, in dollars per million tokens.
const (
	priceInput  = 1.25
	priceOutput = 10
)

// An endpoint serves models over a protocol. What happens to a request depends on the seed, on what
// is asked and on how often that was asked before, so that it does not depend on the scheduler.
type endpoint struct {
	*world
	name    string // as in the providers file; its host is name.sim
	dialect gateway.Dialect
	seed    uint64
	median  time.Duration // of the time to a reply
	sigma   float64
	// silent leaves out how long a refused client should wait.
	silent bool
	hidden func() limiter // of a lane, or nil

	mu    sync.Mutex // guards the fields below
	asked map[uint64]int
	lanes map[string]*traffic // by key and deployment
	bill  ledger
}

// A ledger is what an endpoint knows about its requests.
type ledger struct {
	Requests, Refused, Billed int
	// Tokens and USD were billed. Read is the part of Tokens whose usage the client was told in a
	// reply that it can read.
	Tokens, Read int
	USD          float64
	// Replies were sent that a turn can go on with, and Again is how many of them may be asked for again
	// because the client died before they were on its disk.
	Replies, Again replyCount
	// Excused are the tokens that were billed to processes whose disks had failed.
	Excused int
	fresh   []fresh
}

// A replyCount counts replies to bare models, and to agents.
type replyCount struct{ bare, agent int }

func (c *replyCount) add(toAgent bool) {
	if toAgent {
		c.agent++
	} else {
		c.bare++
	}
}

// A fresh is a reply that may not be on the client's disk yet, which waits for others up to flushWait.
type fresh struct {
	at     time.Time
	tokens int
	// usable is true if a turn can go on with it, and agent if it is an agent's.
	usable, agent bool
}

const flushWait = 500 * time.Millisecond

func (b *ledger) charge(u assay.Usage) (usd float64) {
	usd = dollars(u.InputTokens, u.OutputTokens)
	b.Billed++
	b.Tokens += u.InputTokens + u.OutputTokens
	b.USD += usd
	return usd
}

func dollars(input, output int) float64 {
	return (float64(input)*priceInput + float64(output)*priceOutput) / 1e6
}

func (b *ledger) read(f fresh) {
	b.dropOld()
	b.fresh = append(b.fresh, f)
	b.Read += f.tokens
	if f.usable {
		b.Replies.add(f.agent)
	}
}

func (b *ledger) dropOld() {
	b.fresh = slices.DeleteFunc(b.fresh, func(f fresh) bool { return time.Since(f.at) > flushWait })
}

// killed takes back what was read when the client died.
func (b *ledger) killed() {
	b.dropOld()
	for _, f := range b.fresh {
		b.Read -= f.tokens
		if f.usable {
			b.Again.add(f.agent)
		}
	}
	b.fresh = nil
}

// traffic is that of one key on one deployment.
type traffic struct {
	name     string // of the lane
	arrivals []arrival
	replied  []replied
	inFlight map[*life]int
	hidden   limiter
}

// An arrival is that of a request of some process.
type arrival struct {
	at   time.Time
	life int
}

// A replied is a request with a reply, and what that used.
type replied struct {
	at     time.Time // of its arrival
	tokens int
}

// A request is one that has arrived.
type request struct {
	*endpoint
	*known
	life  *life
	ctx   context.Context
	key   string
	hash  uint64
	draws *rand.Rand
	at    time.Time
	to    *traffic
}

// A known is what a model replies to a request.
type known struct {
	model string
	reply assay.Response
	luck  float64 // below 1, and the same over every protocol
}

// replies has what models have replied so far, because most worlds ask what others have asked. Keys
// are sums of paths and bodies.
var replies = struct {
	sync.Mutex
	of map[[sha256.Size]byte]*known
}{of: make(map[[sha256.Size]byte]*known)}

// models are all simulated models, which know the tasks of plans. They are made outside of every bubble.
func models(plan int) assay.Provider {
	if plan == judged {
		return ofNotes()
	}
	return ofBuiltin()
}

var (
	ofBuiltin = sync.OnceValue(func() assay.Provider { return knowing(library.Builtin(context.Background())) })
	ofNotes   = sync.OnceValue(func() assay.Provider { return knowing(openNotes()) })
)

func knowing(l *library.Library, err error) assay.Provider {
	if err != nil {
		panic(err)
	}
	return sim.New(l.Catalog(), sim.Latency{}).Knowing(l.Answer).KnowingTasks(l.Described)
}

// maxReplies bounds the memory for replies.
const maxReplies = 100_000

// think returns what the model replies to a request.
func (e *endpoint) think(sum [sha256.Size]byte, url string, body []byte) (*known, error) {
	replies.Lock()
	defer replies.Unlock()
	if k := replies.of[sum]; k != nil {
		return k, nil
	}
	p, wrong := e.dialect.Decode(body)
	if wrong != nil {
		return nil, fmt.Errorf("cannot read a request: %s", wrong.Message)
	}
	k := &known{model: p.Deployment}
	if k.model == "" {
		k.model, _, _ = strings.Cut(path.Base(url), ":")
	}
	p.Request.Model = strings.Replace(k.model, "-", "/", 1)
	resp, err := models(e.plan).Chat(context.Background(), &p.Request)
	if err != nil {
		return nil, err
	}
	k.reply = *resp
	told, err := json.Marshal(resp)
	if err != nil {
		return nil, err
	}
	same := sha256.Sum256(append(told, k.model...))
	k.luck = float64(binary.LittleEndian.Uint32(same[:])) / (1 << 32)
	if len(replies.of) == maxReplies {
		clear(replies.of)
	}
	replies.of[sum] = k
	return k, nil
}

// serve answers a request of a run.
func (e *endpoint) serve(l *life, r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Method != http.MethodPost {
		return e.refuse(http.StatusNotFound, "", 0), nil
	}
	q := &request{endpoint: e, life: l, ctx: r.Context(), key: e.dialect.Key(r.Header)}
	sum := sha256.Sum256(append([]byte(r.URL.Path), body...))
	q.hash = binary.LittleEndian.Uint64(sum[:])
	if q.known, err = e.think(sum, r.URL.Path, body); err != nil {
		e.violated("endpoint %s: %v", e.name, err)
		return e.refuse(http.StatusBadRequest, err.Error(), 0), nil
	}
	t, refusal := q.arrive()
	defer q.leave(t)
	if refusal != nil {
		return refusal.response, refusal.err
	}
	return q.answer()
}

// A refused is the result of a request that gets no reply.
type refused struct {
	response *http.Response
	err      error
}

// arrive counts a request against the limits.
func (q *request) arrive() (*traffic, *refused) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	q.bill.Requests++
	q.asked[q.hash]++
	q.draws = rand.New(rand.NewPCG(q.seed^q.hash, uint64(q.asked[q.hash])))
	id := q.name + "/" + strings.TrimPrefix(q.key, "secret-") + "/" + q.model
	t := q.lanes[id]
	if t == nil {
		t = &traffic{name: id, inFlight: make(map[*life]int)}
		if q.hidden != nil {
			t.hidden = q.hidden()
		}
		q.lanes[id] = t
	}
	q.at, q.to = now, t
	t.inFlight[q.life]++
	t.arrivals = append(t.arrivals, arrival{now, q.life.number})
	q.checkStated(t, now)
	if o := q.trouble(q.endpoint, q.key, now); o != nil {
		q.bill.Refused++
		return t, q.inOutage(o)
	}
	if r := q.inRow(now); r != nil {
		q.bill.Refused++
		return t, r
	}
	if t.hidden != nil {
		if ok, wait := t.hidden.admit(now, t.inFlight[q.life]); !ok {
			q.bill.Refused++
			if q.silent {
				wait = 0
			}
			return t, &refused{response: q.refuse(http.StatusTooManyRequests, "Rate limit reached", wait)}
		}
	}
	return t, nil
}

func (q *request) leave(t *traffic) {
	q.mu.Lock()
	defer q.mu.Unlock()
	t.inFlight[q.life]--
}

// inOutage returns what happens to a request in an outage.
func (q *request) inOutage(o *item) *refused {
	switch o.Style {
	case "unreachable":
		return &refused{err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}}
	case "revoked":
		return &refused{response: q.refuse(http.StatusUnauthorized, "Incorrect API key provided: "+q.key, 0)}
	case "quota": // of a day, without a word about its end
		return &refused{response: q.refuse(http.StatusTooManyRequests, "Rate limit reached for requests per day", 0)}
	case "busy": // with an announced wait that is far too short
		return &refused{response: q.refuse(http.StatusTooManyRequests, "Too many requests", time.Second)}
	}
	return &refused{response: q.refuse(http.StatusServiceUnavailable, "The server is overloaded", 0)}
}

// inRow returns what happens to a request that has no luck: it is refused again and again, and then fails.
func (q *request) inRow(now time.Time) *refused {
	row := q.row(q.endpoint, now)
	if row == nil || q.luck >= row.Share || q.asked[q.hash] > row.N+1 {
		return nil
	}
	if q.asked[q.hash] <= row.N {
		return &refused{response: q.refuse(http.StatusTooManyRequests, "Too many requests", time.Second)}
	}
	return &refused{response: q.refuse(http.StatusInternalServerError, "This failure is simulated.", 0)}
}

// answer replies to a request that was accepted.
func (q *request) answer() (*http.Response, error) {
	fault := q.fault(q.endpoint, q.draws.Float64())
	switch fault {
	case "":
	case "hang":
		select {
		case <-q.sleep():
			return nil, reset()
		case <-q.ctx.Done():
		}
		return nil, context.Cause(q.ctx)
	case "reset":
		return nil, reset()
	default:
		if status, err := strconv.Atoi(fault); err == nil {
			wait := time.Duration(0)
			if status == http.StatusTooManyRequests {
				wait = time.Second
			}
			return q.refuse(status, "This failure is simulated.", wait), nil
		}
	}
	d := time.Duration(float64(q.median) * math.Exp(q.sigma*q.draws.NormFloat64()))
	if q.draws.IntN(300) == 0 {
		d *= 20
	}
	billed := q.draws.IntN(2) == 0 // also if the client does not wait for the reply
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-q.sleep(): // the reply waits, or has found nobody
		if q.draws.IntN(2) == 0 {
			if billed {
				q.charge(true)
			}
			return nil, reset()
		}
	case <-q.ctx.Done():
		if billed {
			q.charge(true)
		}
		return nil, context.Cause(q.ctx)
	}
	return q.send(fault)
}

// reset is the error of a connection that the other side has dropped.
func reset() error { return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET} }

// charge bills the reply. It is lost if nobody can read it.
func (q *request) charge(lost bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.life.billed(q.bill.charge(q.reply.Usage), lost)
	if q.life.isSick() {
		q.bill.Excused += q.reply.Usage.InputTokens + q.reply.Usage.OutputTokens
	}
}

// send sends the reply, which is billed, perhaps in a wrong way.
func (q *request) send(fault string) (*http.Response, error) {
	name := q.model
	if q.renamed(q.endpoint, q.now()) {
		name = "another-model"
	}
	body := gateway.Encode(q.dialect.Encode(gateway.Reply{
		ID: q.hash, Created: time.Now().Unix(), Model: name, Nothing: fault == "empty", Response: q.reply,
	}))
	q.charge(fault != "")
	if fault == "" {
		q.mu.Lock()
		q.bill.read(fresh{
			time.Now(), q.reply.Usage.InputTokens + q.reply.Usage.OutputTokens, name == q.model, q.isAgents(q.model),
		})
		q.to.replied = append(q.to.replied, replied{q.at, q.reply.Usage.Total()})
		if q.life.isSick() {
			q.bill.killed()
		}
		q.mu.Unlock()
	}
	switch fault {
	case "truncate": // the connection breaks
		return respond(http.StatusOK, io.MultiReader(bytes.NewReader(body[:len(body)/2]), broken{}), int64(len(body))), nil
	case "hang-body":
		return respond(http.StatusOK, io.MultiReader(bytes.NewReader(body[:1]), silent{q.ctx}), int64(len(body))), nil
	case "bad-json":
		body = append(body[:len(body)/2:len(body)/2], "<!-- internal error -->"...)
	}
	return respond(http.StatusOK, bytes.NewReader(body), int64(len(body))), nil
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

type silent struct{ ctx context.Context }

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, context.Cause(s.ctx)
}

func respond(status int, body io.Reader, length int64) *http.Response {
	return &http.Response{
		Status: http.StatusText(status), StatusCode: status, ContentLength: length,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(body),
	}
}

// refuse returns an error in the words of the protocol.
func (e *endpoint) refuse(status int, message string, wait time.Duration) *http.Response {
	kind := "server_error"
	if status == http.StatusTooManyRequests {
		kind = "rate_limit_error"
	}
	code, doc := e.dialect.Refuse(gateway.Refusal{Status: status, Message: message, Kind: kind, Code: kind})
	body, err := json.Marshal(doc)
	if err != nil {
		panic(fmt.Sprint("encode a refusal: ", err))
	}
	r := respond(code, bytes.NewReader(body), int64(len(body)))
	if wait > 0 {
		r.Header.Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	}
	return r
}
