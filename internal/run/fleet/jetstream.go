package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Access says how to reach a NATS server.
type Access struct {
	// URL is nats://HOST:PORT, or tls://HOST:PORT. Its path, if any, keeps runs apart that share a
	// server.
	URL string
	// Token is that of the server. It may be empty if Credentials has the path of a file of
	// credentials, or if the server lets everybody in.
	Token       string
	Credentials string
	// CA is the path of a file with certificates to trust, beside those of the system.
	CA string
	// Lost and Back, if set, are called when the connection is lost and when it is back.
	Lost func(err error)
	Back func()
}

// A connection to a NATS server has the names that both sides use.
type connection struct {
	conn   *nats.Conn
	js     jetstream.JetStream
	prefix string
}

const (
	consumerName = "workers"
	// ackWait is how long an assignment that was delivered may stay without a word of its worker
	// before it is delivered again.
	ackWait = 5 * time.Second
	// patience is how long one wait for an assignment takes.
	patience = 5 * time.Second
	// bigHeader names a message that is too big for the server, and sizeHeader has its size. It
	// goes in parts; see [parts].
	bigHeader  = "Assay-Message"
	sizeHeader = "Assay-Size"
	// headroom is what a message may have beside its body, in bytes.
	headroom = 1 << 10
)

// dial connects to a server. It fails if the server cannot be reached or does not let us in.
func dial(a Access, more ...nats.Option) (*connection, error) {
	u, err := url.Parse(a.URL)
	if err != nil {
		return nil, fmt.Errorf("the address of a NATS server: %w", err)
	}
	prefix := strings.Join(append([]string{"assay"}, strings.FieldsFunc(u.Path, func(r rune) bool {
		return strings.ContainsRune("/.*> \t", r)
	})...), ".")
	u.Path = ""
	options := []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(500 * time.Millisecond), nats.Token(a.Token),
		nats.PingInterval(10 * time.Second), nats.IgnoreAuthErrorAbort(),
		nats.ReconnectBufSize(-1), // a call fails at once while the server is away
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if a.Lost != nil && err != nil {
				a.Lost(err)
			}
		}),
		nats.ReconnectHandler(func(*nats.Conn) {
			if a.Back != nil {
				a.Back()
			}
		}),
	}
	if a.Credentials != "" {
		options = append(options, nats.UserCredentials(a.Credentials))
	}
	if a.CA != "" {
		options = append(options, nats.RootCAs(a.CA))
	}
	conn, err := nats.Connect(u.String(), append(options, more...)...)
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &connection{conn, js, prefix}, nil
}

func (c *connection) subject(parts ...string) string {
	return c.prefix + "." + strings.Join(parts, ".")
}

// stream is the name of the queue.
func (c *connection) stream() string { return strings.ReplaceAll(c.prefix, ".", "-") + "-assignments" }

// message returns a message, without its body if that has to go in parts.
func (c *connection) message(subject string, body []byte) (m *nats.Msg, inParts bool) {
	m = nats.NewMsg(subject)
	if len(body) <= c.mostBody() {
		m.Data = body
		return m, false
	}
	m.Header.Set(bigHeader, rand.Text())
	m.Header.Set(sizeHeader, strconv.Itoa(len(body)))
	return m, true
}

func (c *connection) mostBody() int { return int(c.conn.MaxPayload() - headroom) }

// A Remote is the link of a worker to a NATS server.
type Remote struct {
	connection
	queue jetstream.Consumer
}

// Dial connects a worker to a run's server. It waits until there is one, and calls waits before it
// does. It fails if the server does not let the worker in, or if ctx ends. The link must be closed.
func Dial(ctx context.Context, a Access, waits func(err error)) (*Remote, error) {
	waiting := false
	for {
		id := rand.Text()
		w, err := dial(a, nats.Name(workerName+id), nats.CustomInboxPrefix(inboxes+id))
		if err == nil {
			return &Remote{connection: *w}, nil
		}
		if !errors.Is(err, nats.ErrNoServers) {
			return nil, err
		}
		if !waiting {
			waits(err)
		}
		waiting = true
		if sleep(ctx, beatEvery); ctx.Err() != nil {
			return nil, err
		}
	}
}

// Close closes the connection.
func (r *Remote) Close() { r.conn.Close() }

// Call makes a call.
func (r *Remote) Call(ctx context.Context, call string, body []byte) ([]byte, error) {
	m, inParts := r.message(r.subject("call", call), body)
	if inParts {
		for part := range slices.Chunk(body, r.mostBody()) {
			if _, err := r.part(ctx, callPut, m, part); err != nil {
				return nil, err
			}
		}
	}
	reply, err := r.conn.RequestMsgWithContext(ctx, m)
	if errors.Is(err, nats.ErrNoResponders) {
		err = errors.New("no run asks for workers there")
	}
	if err != nil {
		return nil, err
	}
	if reply.Header.Get(bigHeader) == "" {
		return reply.Data, nil
	}
	for {
		part, err := r.part(ctx, callGet, reply, nil)
		if err != nil {
			return nil, err
		}
		if len(part) == 0 {
			return reply.Data, complete(reply)
		}
		reply.Data = append(reply.Data, part...)
	}
}

// part sends a part of a message to the run, or gets the next one.
func (r *Remote) part(
	ctx context.Context, call string, of *nats.Msg, body []byte,
) ([]byte, error) {
	m := nats.NewMsg(r.subject("call", call))
	m.Header.Set(bigHeader, of.Header.Get(bigHeader))
	m.Data = body
	reply, err := r.conn.RequestMsgWithContext(ctx, m)
	if err != nil {
		return nil, fmt.Errorf("a part of a big message: %w", err)
	}
	return reply.Data, nil
}

// complete returns an error if a message that came in parts lacks some.
func complete(m *nats.Msg) error {
	if size := m.Header.Get(sizeHeader); size != strconv.Itoa(len(m.Data)) {
		return fmt.Errorf("a big message has %d of %s bytes", len(m.Data), size)
	}
	return nil
}

// Take takes up to n assignments.
func (r *Remote) Take(ctx context.Context, n int) ([]Delivery, error) {
	if r.queue == nil {
		c, err := r.js.Consumer(ctx, r.stream(), consumerName)
		if err != nil {
			return nil, err
		}
		r.queue = c
	}
	deliveries, err := fetched(r.queue.FetchNoWait(n))
	if len(deliveries) == 0 && err == nil {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		deliveries, err = fetched(r.queue.Fetch(1, jetstream.FetchContext(ctx)))
		if ctx.Err() != nil {
			err = nil
		}
	}
	if err != nil {
		r.queue = nil // it may be another one when the server is back
	}
	return deliveries, err
}

// fetched collects the assignments of a batch.
func fetched(batch jetstream.MessageBatch, err error) (deliveries []Delivery, _ error) {
	if err != nil {
		return nil, err
	}
	for m := range batch.Messages() {
		deliveries = append(deliveries, delivery{m})
	}
	err = batch.Error()
	if errors.Is(err, nats.ErrTimeout) || errors.Is(err, jetstream.ErrNoMessages) {
		err = nil
	}
	return deliveries, err
}

type delivery struct{ jetstream.Msg }

func (t delivery) Assignment() string { return string(t.Data()) }
func (t delivery) Done() error        { return t.Ack() }
