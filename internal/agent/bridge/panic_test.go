package bridge_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
)

// A bug is a provider that panics.
type bug struct{}

func (bug) Chat(context.Context, *assay.Request) (*assay.Response, error) { panic("a bug") }

// A panic in a request of an agent is a panic of its attempt, which the engine knows how to report. It
// does not reach the terminal, which an HTTP server would write its stack to.
func TestPanicOfARequestIsThatOfItsAttempt(t *testing.T) {
	t.Parallel()
	s := open(t)
	defer func() {
		if v, _ := recover().(string); !strings.HasPrefix(v, "a bug\n") || !strings.Contains(v, "Chat") {
			t.Errorf("the panic is %q, want the bug with its stack", v)
		}
	}()
	trial, task := s.trial(0, assay.Listed)
	s.runner("work", time.Minute).Run(t.Context(), bug{}, trial, task)
	t.Error("the attempt ended without a panic")
}
