package wire

import (
	"context"
	"crypto/tls"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxConnecting is how many requests to a host may look for a connection at a time.
	maxConnecting = 8
	// slotTimeout is how long a request waits while no other request releases its slot. Then it
	// goes on without one, because the host may be dead, or the slots held by requests whose
	// connections will never be opened.
	slotTimeout = 10 * time.Second
)

// connectLimits limits how many requests to each host with TLS look for a connection at a time.
// net/http opens one for each request without one, although one HTTP/2 connection carries a hundred
// or more. Without the limit, 1,000 requests that start together open 2,400 connections, and
// handshakes take 8 % of the CPU. It is safe for concurrent use.
type connectLimits struct {
	mu     sync.Mutex
	byHost map[string]*connectLimit
}

// A connectLimit is the limit of a host. It ends when the host turns out not to speak HTTP/2,
// because then each request needs its own connection.
type connectLimit struct {
	slots    chan struct{} // holds a value for each request that looks for a connection
	ended    chan struct{} // closed when the limit ends
	once     sync.Once
	made     time.Time
	released atomic.Int64 // when a slot was released last, in nanoseconds since made
}

func (l *connectLimits) of(host string) *connectLimit {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.byHost == nil {
		l.byHost = make(map[string]*connectLimit)
	}
	if l.byHost[host] == nil {
		l.byHost[host] = &connectLimit{
			slots: make(chan struct{}, maxConnecting), ended: make(chan struct{}), made: time.Now(),
		}
	}
	return l.byHost[host]
}

// acquire waits for a slot. The context that it returns releases the slot when the request has a
// connection and does not open one, because the next request may use a connection that this one
// began to open. release does so in any case.
func (l *connectLimit) acquire(
	ctx context.Context,
) (traced context.Context, release func(), err error) {
	if slot, err := l.wait(ctx); !slot {
		return ctx, func() {}, err
	}
	release = sync.OnceFunc(func() {
		l.released.Store(int64(time.Since(l.made)))
		<-l.slots
	})
	var got, opening, opened atomic.Bool
	over := func() {
		if opened.Store(true); got.Load() {
			release()
		}
	}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		DNSStart:     func(httptrace.DNSStartInfo) { opening.Store(true) },
		ConnectStart: func(string, string) { opening.Store(true) },
		ConnectDone: func(_, _ string, err error) {
			if err != nil {
				over()
			}
		},
		TLSHandshakeDone: func(state tls.ConnectionState, err error) {
			if err == nil && state.NegotiatedProtocol != "h2" {
				l.once.Do(func() { close(l.ended) })
			}
			over()
		},
		GotConn: func(httptrace.GotConnInfo) {
			if got.Store(true); !opening.Load() || opened.Load() {
				release()
			}
		},
	}), release, nil
}

// wait waits for a slot and reports whether the request got one. Without a slot, the request may
// go on if there is no error.
func (l *connectLimit) wait(ctx context.Context) (slot bool, err error) {
	select {
	case <-l.ended:
		return false, nil
	case l.slots <- struct{}{}: // the usual case, without a timer
		return true, nil
	default:
	}
	limit := time.NewTimer(slotTimeout)
	defer limit.Stop()
	for {
		select {
		case l.slots <- struct{}{}:
			return true, nil
		case <-l.ended:
			return false, nil
		case <-limit.C:
			still := time.Since(l.made) - time.Duration(l.released.Load())
			if still >= slotTimeout {
				return false, nil
			}
			limit.Reset(slotTimeout - still)
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
