package environment

import (
	"context"
	"maps"
	"sync"
	"time"
)

// URLVariable names the environment variable with the base URL of the endpoint that speaks as the
// users of a server's sessions, and tokenArgument the argument of a reset with the session's token.
const (
	URLVariable   = "ASSAY_USER_URL"
	tokenArgument = "user_token"
)

// A Line connects a session with the model behind its user. It is safe for concurrent use.
type Line struct {
	Token string // opens the endpoint for this attempt

	mu     sync.Mutex
	asking int
	rested time.Time // when the latest request ended
}

// Ask notes that the model is asked, until the function that it returns is called. A session does
// not time out meanwhile, because the model may have to wait for a limit.
func (l *Line) Ask() (rest func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asking++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asking--
		l.rested = time.Now()
	}
}

// silence returns how long nothing has been asked since a time.
func (l *Line) silence(since time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.asking > 0:
		return 0
	case l.rested.After(since):
		return time.Since(l.rested)
	}
	return time.Since(since)
}

type lineKey struct{}

// WithUser returns a context whose sessions have a line to the model behind their user.
func WithUser(ctx context.Context, l *Line) context.Context {
	return context.WithValue(ctx, lineKey{}, l)
}

// lineOf returns the line of a context, or nil.
func lineOf(ctx context.Context) *Line {
	l, _ := ctx.Value(lineKey{}).(*Line)
	return l
}

// OfferUser gives the server's program the URL of the models behind its users. It ends a program
// that runs already, which a forecast may have started.
func (s *Server) OfferUser(url string) error {
	s.starting.Lock()
	defer s.starting.Unlock()
	set := map[string]string{URLVariable: url}
	maps.Copy(set, s.config.Set)
	s.config.Set = set
	return s.end()
}

// patient returns a context that ends if the server does not answer in time. The time in which the
// model behind the user is asked does not count.
func (s *Server) patient(ctx context.Context) (context.Context, context.CancelFunc) {
	limit, line := s.config.Timeout, lineOf(ctx)
	if line == nil {
		return context.WithTimeoutCause(ctx, limit, errSilent)
	}
	inner, cancel := context.WithCancelCause(ctx)
	began := time.Now()
	go func() {
		for left := limit; left > 0; left = limit - line.silence(began) {
			if pause(inner, left) != nil {
				return
			}
		}
		cancel(errSilent)
	}()
	return inner, func() { cancel(nil) }
}
