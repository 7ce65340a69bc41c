package environment

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
)

// TestTimeOfTheUserDoesNotCount has a session whose server waits an hour for the model behind the user, which may
// have to wait for a limit. Only the rest of the time counts.
func TestTimeOfTheUserDoesNotCount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &Server{config: assay.MCPServer{Timeout: time.Minute}}
		line := new(Line)
		ctx, cancel := s.patient(WithUser(t.Context(), line))
		defer cancel()
		rest := line.Ask()
		time.Sleep(time.Hour)
		rest()
		time.Sleep(59 * time.Second)
		if ctx.Err() != nil {
			t.Errorf("the session ended: %v", context.Cause(ctx))
		}
		time.Sleep(2 * time.Second)
		if !errors.Is(context.Cause(ctx), errSilent) {
			t.Errorf("the session goes on: %v", context.Cause(ctx))
		}
	})
}
