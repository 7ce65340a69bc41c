package fleet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Access describes how to reach a NATS server.
type Access struct {
	// URL is nats://HOST:PORT, or tls://HOST:PORT. Its path, if any, keeps runs apart that share a
	// server.
	URL string
	// Token is the token of the server. It may be empty if Credentials has the path of a file of
	// credentials, or if the server lets everybody in.
	Token       string
	Credentials string
	// CA is the path of a file with certificates to trust, beside the certificates of the system.
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
	// pullTimeout is how long one wait for an assignment takes.
	pullTimeout = 5 * time.Second
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
func (c *connection) stream() string {
	return strings.ReplaceAll(c.prefix, ".", "-") + "-assignments"
}

// tooBig returns why a message cannot be sent, or nil if it is not too big for the server.
func (c *connection) tooBig(body []byte) error {
	if most := c.conn.MaxPayload(); int64(len(body)) > most {
		return fmt.Errorf("a message has %d bytes, and the NATS server takes %d (max_payload)",
			len(body), most)
	}
	return nil
}

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
	if err := r.tooBig(body); err != nil {
		return nil, callError{err}
	}
	reply, err := r.conn.RequestWithContext(ctx, r.subject("call", call), body)
	if errors.Is(err, nats.ErrNoResponders) {
		err = errors.New("no run asks for workers there")
	}
	if err != nil {
		return nil, err
	}
	return reply.Data, nil
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
		ctx, cancel := context.WithTimeout(ctx, pullTimeout)
		defer cancel()
		deliveries, err = fetched(r.queue.Fetch(1, jetstream.FetchContext(ctx)))
		if ctx.Err() != nil {
			err = nil
		}
	}
	if err != nil {
		r.queue = nil // it may have changed when the server is back
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
