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
	// atDoor is how many requests to a host may look for a connection at a time.
	atDoor = 8
	// doorLimit is how long a request waits at a door that nobody leaves. Then it goes in, because
	// the host may be dead, or the door held by requests whose connections will never be opened.
	doorLimit = 10 * time.Second
)

// doors let only some requests to a host at a time look for a connection. net/http opens one for
// each request that finds none, although one HTTP/2 connection carries a hundred or more: requests
// that start together would each pay for a handshake, and leave connections that nobody needs. It
// is safe for concurrent use.
type doors struct {
	mu     sync.Mutex
	byHost map[string]*door
}

// A door is that of a host with TLS. It stands open once the host turns out not to speak HTTP/2,
// where each request needs a connection of its own.
type door struct {
	places chan struct{} // holds a value for each request at the door
	open   chan struct{} // closed if the door stands open
	once   sync.Once
	made   time.Time
	left   atomic.Int64 // when a request left the door last, in nanoseconds since it was made
}

func (d *doors) of(host string) *door {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.byHost == nil {
		d.byHost = make(map[string]*door)
	}
	if d.byHost[host] == nil {
		d.byHost[host] = &door{
			places: make(chan struct{}, atDoor), open: make(chan struct{}), made: time.Now(),
		}
	}
	return d.byHost[host]
}

// pass waits at the door. The context that it returns lets the next request in when this one has a
// connection and opens none: that which it began to open may be of use to the next. leave does so
// in any case.
func (d *door) pass(ctx context.Context) (inside context.Context, leave func(), err error) {
	if place, err := d.wait(ctx); !place {
		return ctx, func() {}, err
	}
	leave = sync.OnceFunc(func() {
		d.left.Store(int64(time.Since(d.made)))
		<-d.places
	})
	var got, opening, opened atomic.Bool
	over := func() {
		if opened.Store(true); got.Load() {
			leave()
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
				d.once.Do(func() { close(d.open) })
			}
			over()
		},
		GotConn: func(httptrace.GotConnInfo) {
			if got.Store(true); !opening.Load() || opened.Load() {
				leave()
			}
		},
	}), leave, nil
}

// wait waits for a place, and reports whether the request got one. Without one it may go in, too,
// if there is no error.
func (d *door) wait(ctx context.Context) (place bool, err error) {
	select {
	case <-d.open:
		return false, nil
	case d.places <- struct{}{}: // the usual case, without a timer
		return true, nil
	default:
	}
	limit := time.NewTimer(doorLimit)
	defer limit.Stop()
	for {
		select {
		case d.places <- struct{}{}:
			return true, nil
		case <-d.open:
			return false, nil
		case <-limit.C:
			still := time.Since(d.made) - time.Duration(d.left.Load())
			if still >= doorLimit {
				return false, nil
			}
			limit.Reset(doorLimit - still)
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}
