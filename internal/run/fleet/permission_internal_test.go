package fleet

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/assay-eval/assay"
)

const workersToken = "token-of-the-workers"

// listen starts the server of a run.
func listen(t *testing.T) *Exchange {
	t.Helper()
	x, err := Listen("127.0.0.1:0", workersToken, nil, filepath.Join(t.TempDir(), "nats"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x
}

// join connects a worker to it.
func join(t *testing.T, x *Exchange) *Remote {
	t.Helper()
	r, err := Dial(t.Context(), Access{URL: "nats://" + x.Addr(), Token: workersToken}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// TestWorkersTokenAllowsNoMore tries operations that workers do not need, with their token.
func TestWorkersTokenAllowsNoMore(t *testing.T) {
	t.Parallel()
	x := listen(t)
	for _, id := range []string{"", "*", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"} {
		name := workerName + id
		conn, err := nats.Connect("nats://"+x.Addr(), nats.Token(workersToken), nats.Name(name),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(conn.Close)
		for _, subject := range []string{
			"$JS.API.STREAM.DELETE.assay-assignments", "$JS.API.STREAM.PURGE.assay-assignments",
			"$JS.API.STREAM.UPDATE.assay-assignments", "$JS.API.STREAM.CREATE.mine",
			"$JS.API.STREAM.MSG.GET.assay-assignments", "$JS.API.STREAM.NAMES",
			"$JS.API.CONSUMER.CREATE.assay-assignments", "$JS.API.CONSUMER.DELETE.assay-assignments.workers",
			"assay.assignment.mine", "_INBOX.of-another.answer", "elsewhere",
		} {
			if !denied(conn, func() error { return conn.Publish(subject, nil) }) {
				t.Errorf("%q may publish to %s (%v)", name, subject, conn.LastError())
			}
		}
		for _, subject := range []string{">", "_INBOX.>", "_INBOX.*.>", "assay.call.*", "assay.assignment.*"} {
			if !denied(conn, func() error { _, err := conn.SubscribeSync(subject); return err }) {
				t.Errorf("%q may listen to %s (%v)", name, subject, conn.LastError())
			}
		}
	}
}

// denied reports whether an operation of a connection is denied, which the server may report later.
func denied(conn *nats.Conn, do func() error) bool {
	before := conn.LastError()
	if do() != nil {
		return false
	}
	for range 500 {
		if conn.Flush() != nil {
			return false
		}
		after := conn.LastError()
		if after != before {
			return errors.Is(after, nats.ErrPermissionViolation)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// TestResultOfAnotherLease sends the result of an attempt that another worker has begun.
func TestResultOfAnotherLease(t *testing.T) {
	t.Parallel()
	x := listen(t)
	coordinator := coordinate(t, x)
	call := func(r *Remote, name string, in, out any) {
		t.Helper()
		b, err := encode(in)
		if err == nil {
			b, err = r.Call(t.Context(), name, b)
		}
		if err == nil {
			err = decode(b, out)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan *assay.Attempt, 1)
	go func() {
		a, _ := coordinator.Run(t.Context(), nil, &assay.Trial{ID: "t"}, &assay.Task{})
		ended <- a
	}()
	honest, intruder := join(t, x), join(t, x)
	for r, id := range map[*Remote]string{honest: "honest", intruder: "intruder"} {
		call(r, callHello, &hello{Worker: id, Name: id, Slots: 1}, new(welcome))
	}
	deliveries, err := honest.Take(t.Context(), 1)
	for len(deliveries) == 0 && err == nil {
		deliveries, err = honest.Take(t.Context(), 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	var b beginning
	call(honest, callBegin, &begin{Worker: "honest", Assignment: deliveries[0].Assignment(), Try: "1"}, &b)
	if err := deliveries[0].Done(); err != nil {
		t.Fatal(err)
	}
	attempt := func(level assay.Level) assay.Attempt {
		return assay.Attempt{Outcome: assay.Outcome{Level: level}}
	}
	for _, token := range []string{"", "1"} {
		var r receipt
		call(intruder, callResult, &attemptResult{
			held: held{deliveries[0].Assignment(), token}, Attempt: attempt(assay.FullSuccess),
		}, &r)
		if !r.Over {
			t.Errorf("a result with the token %q is accepted", token)
		}
	}
	body, err := encode(&attemptResult{
		held: held{deliveries[0].Assignment(), b.Token}, Attempt: attempt(assay.Failure),
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = honest.Call(t.Context(), callResult, body) }()
	if a := <-ended; a.Level != assay.Failure || a.Worker != "honest" {
		t.Errorf("the result is %s of %s", a.Level, a.Worker)
	}
	coordinator.Conclude("t")
	coordinator.Close()
}

// TestBigMessages sends 20 MB in both directions, and a message that is too big for the server.
func TestBigMessages(t *testing.T) {
	t.Parallel()
	x := listen(t)
	body := bytes.Repeat([]byte("0123456789"), 2<<20)
	stop, err := x.Serve(func(_ context.Context, _ string, b []byte) []byte { return b })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	r := join(t, x)
	got, err := r.Call(t.Context(), callChat, body)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d bytes came back of %d: %v", len(got), len(body), err)
	}
	_, err = r.Call(t.Context(), callChat, make([]byte, payload+1))
	if !isHopeless(err) || !strings.Contains(err.Error(), "max_payload") {
		t.Errorf("too big a message: %v", err)
	}
}
