package telemetry

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/assay-eval/assay/internal/run/session"
)

const (
	// maxApart is the longest time between scrapes for which the end of a run waits. Prometheus has
	// 15 seconds in its example, and a minute by default.
	maxApart = 20 * time.Second
	// goodbye is how long scrapes in flight may take to end.
	goodbye = 2 * time.Second
)

// scrapes notes when metrics were read, so that the last counts of a run can be read, too.
type scrapes struct {
	mu    sync.Mutex
	last  time.Time
	apart time.Duration // between the latest two; 0 before the second one
	final bool          // the run has ended
	read  chan struct{} // closed when a scrape has read the final counts
	once  sync.Once
}

func (s *scrapes) watch(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		final := s.begin()
		next.ServeHTTP(w, r)
		if final {
			s.once.Do(func() { close(s.read) })
		}
	})
}

// begin notes that a scrape begins, and reports whether it reads the final counts.
func (s *scrapes) begin() (final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		s.apart = now.Sub(s.last)
	}
	s.last = now
	return s.final
}

// end notes that the counts are final, and returns when the next scrape is due, a second late.
// It returns 0 if nobody scrapes regularly.
func (s *scrapes) end() (wait time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final = true
	if s.apart == 0 || s.apart > maxApart {
		return 0
	}
	return max(0, time.Until(s.last.Add(s.apart+time.Second)))
}

// End implements [session.Observer]. Unless the user stopped the run, it waits for the scrape that
// reads the final counts, if scrapes have come regularly.
func (m *Metrics) End(sum *session.Summary) {
	if wait := m.scrapes.end(); !sum.Stopped && wait > 0 {
		select {
		case <-m.scrapes.read:
		case <-time.After(wait):
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), goodbye)
	defer cancel()
	if m.server.Shutdown(ctx) != nil {
		_ = m.Close()
	}
}
