package fleet

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	// payload is the largest message of the server in this process, in bytes. NATS permits no more
	// without a higher limit on the bytes that wait for one client.
	payload = 64 << 20
	// setUp is the time to prepare a server.
	setUp = 10 * time.Second
)

// An Exchange is the run's end of a NATS server. It must be closed.
type Exchange struct {
	connection
	server    *server.Server // nil if somebody else runs it
	dir       string
	rejoining sync.Mutex // of a queue that the server has lost
}

// Listen starts a NATS server in this process. It listens on an address, for workers with the token
// and, if there is a certificate, over TLS alone. The server owns the directory, which it empties
// at the start and removes in the end.
func Listen(addr, token string, cert *tls.Certificate, dir string) (*Exchange, error) {
	free, err := freeAddr(addr)
	if err != nil {
		return nil, err
	}
	if err := os.RemoveAll(dir); err != nil { // of a run that was killed
		return nil, err
	}
	own := rand.Text()
	o := &server.Options{
		ServerName: "assay", Host: free.IP.String(), Port: free.Port, NoLog: true, NoSigs: true,
		CustomClientAuthentication: tokens{run: own, worker: token}, JetStream: true,
		StoreDir: dir, MaxPayload: payload,
		JetStreamMaxMemory: 4 << 30, JetStreamMaxStore: 1 << 30,
	}
	if cert != nil {
		o.TLS, o.TLSTimeout = true, 5
		o.TLSConfig = &tls.Config{
			Certificates: []tls.Certificate{*cert}, MinVersion: tls.VersionTLS12,
		}
	}
	x := &Exchange{dir: dir}
	if x.server, err = start(o); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	w, err := dial(Access{URL: "nats://in-process", Token: own}, nats.InProcessServer(x.server))
	if err == nil {
		x.connection = *w
		err = x.prepare()
	}
	if err != nil {
		return nil, errors.Join(err, x.Close())
	}
	return x, nil
}

// freeAddr returns an address at which a server can listen. NATS would try for ten seconds.
func freeAddr(addr string) (*net.TCPAddr, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return l.Addr().(*net.TCPAddr), l.Close()
}

// start starts a server and waits until it listens.
func start(o *server.Options) (*server.Server, error) {
	s, err := server.NewServer(o)
	if err != nil {
		return nil, err
	}
	log := new(lastError)
	s.SetLogger(log, false, false)
	s.Start()
	if !s.ReadyForConnections(setUp) {
		s.Shutdown()
		if err := log.get(); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("the server at %s:%d did not start", o.Host, o.Port)
	}
	return s, nil
}

// Connect uses a NATS server that somebody else runs. It needs JetStream.
func Connect(a Access) (*Exchange, error) {
	w, err := dial(a, nats.Name("assay run"))
	if err != nil {
		return nil, err
	}
	x := &Exchange{connection: *w}
	if x.isTaken() {
		err = errors.New("another run asks for workers there\nhint: give each its own path, " +
			"such as nats://HOST:4222/NAME, and the same one to its workers")
	} else {
		err = x.prepare()
	}
	if err != nil {
		x.conn.Close()
		return nil, err
	}
	return x, nil
}

// isTaken reports whether a run answers. Other programs may listen, but they do not answer.
func (x *Exchange) isTaken() bool {
	b, err := encode(&beat{})
	if err != nil {
		return false
	}
	_, err = x.conn.Request(x.subject("call", callBeat), b, 2*time.Second)
	return err == nil
}

// Addr returns the address of the server in this process.
func (x *Exchange) Addr() string { return x.server.Addr().String() }

// prepare makes the queue anew. Its old messages were of another run.
func (x *Exchange) prepare() error {
	ctx, cancel := context.WithTimeout(context.Background(), setUp)
	defer cancel()
	if err := x.clear(ctx); err != nil {
		return err
	}
	stream, err := x.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: x.stream(), Subjects: []string{x.subject("assignment", "*")},
		Retention: jetstream.WorkQueuePolicy, Storage: jetstream.MemoryStorage,
		MaxMsgsPerSubject: 1, // an assignment that is offered again
	})
	if err != nil {
		return fmt.Errorf("make the queue: %w", err)
	}
	_, err = stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		Durable: consumerName, AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait,
		MaxAckPending: -1,
	})
	if err != nil {
		return fmt.Errorf("make the queue: %w", err)
	}
	return nil
}

func (x *Exchange) clear(ctx context.Context) error {
	err := x.js.DeleteStream(ctx, x.stream())
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("reach JetStream: %w\nhint: the server needs jetstream in its settings", err)
	}
	return nil
}

// Close ends the server, or leaves a server of somebody else as it was.
func (x *Exchange) Close() error {
	var err error
	if x.server == nil {
		ctx, cancel := context.WithTimeout(context.Background(), setUp)
		defer cancel()
		if x.conn.IsConnected() {
			err = x.clear(ctx)
		}
	}
	if x.conn != nil {
		x.conn.Close()
	}
	if x.server != nil {
		x.server.Shutdown()
		x.server.WaitForShutdown()
		err = os.RemoveAll(x.dir)
	}
	return err
}

// Offer puts an assignment into the queue. It makes a queue anew that the server has lost.
func (x *Exchange) Offer(ctx context.Context, assignment string) error {
	err := x.publish(ctx, assignment)
	if !errors.Is(err, jetstream.ErrNoStreamResponse) {
		return err
	}
	x.rejoining.Lock()
	defer x.rejoining.Unlock()
	if err = x.publish(ctx, assignment); errors.Is(err, jetstream.ErrNoStreamResponse) {
		if err = x.prepare(); err == nil {
			err = x.publish(ctx, assignment)
		}
	}
	return err
}

func (x *Exchange) publish(ctx context.Context, assignment string) error {
	_, err := x.js.Publish(ctx, x.subject("assignment", assignment), []byte(assignment))
	return err
}

// Serve answers calls.
func (x *Exchange) Serve(
	answer func(ctx context.Context, call string, body []byte) []byte,
) (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var answers sync.WaitGroup
	var subs []*nats.Subscription
	for _, call := range calls {
		sub, err := x.conn.Subscribe(x.subject("call", call), func(m *nats.Msg) {
			answers.Go(func() { x.reply(m, answer(ctx, call, m.Data)) })
		})
		if err != nil {
			cancel()
			return nil, err
		}
		subs = append(subs, sub)
	}
	return func() {
		for _, s := range subs {
			_ = s.Unsubscribe()
		}
		cancel()
		answers.Wait()
	}, x.conn.Flush()
}

// reply sends the answer to a message. If it gets lost, the worker asks again.
func (x *Exchange) reply(m *nats.Msg, answer []byte) {
	if err := x.tooBig(answer); err != nil {
		answer = refusal(err)
	}
	_ = m.Respond(answer)
}

// lastError keeps the last thing that a server complained about.
type lastError struct {
	mu  sync.Mutex
	err error
}

func (l *lastError) get() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

func (l *lastError) Errorf(format string, v ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = fmt.Errorf(format, v...)
}

// The rest of the server's log is not for people.

func (l *lastError) Fatalf(format string, v ...any) { l.Errorf(format, v...) }
func (l *lastError) Noticef(string, ...any)         {}
func (l *lastError) Warnf(string, ...any)           {}
func (l *lastError) Debugf(string, ...any)          {}
func (l *lastError) Tracef(string, ...any)          {}
