package session

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// busy is an endpoint that refuses every request and asks to wait for a minute.
type busy struct{}

func (busy) Chat(context.Context, *assay.Request) (*assay.Response, error) {
	return &assay.Response{}, &assay.Fault{
		Kind: assay.RateLimited, RetryAfter: time.Minute, Detail: "come back in a minute",
	}
}

// TestViewsQuoteTheEndpoint checks that the state of a run and its live and plain views have the
// words of an endpoint that a lane waits for.
func TestViewsQuoteTheEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := troubled(t, busy{}, silent{}, plan.Budgets{}, plan.StopRules{})
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, _ = s.pools.ByModel["m"].Chat(ctx, &assay.Request{}) }()
		time.Sleep(10 * time.Second)
		progress := s.progress()
		cancel()
		synctest.Wait()

		const words = "come back in a minute"
		if got := progress.Models[0].Lanes[0].Words; got != words {
			t.Errorf("the state has the words %q", got)
		}
		if got := progress.Models[0].Waits; !strings.Contains(got, words) {
			t.Errorf("the live view has the wait %q", got)
		}
		var plain strings.Builder
		(&terminal.Plain{W: &plain}).Show(progress)
		if !strings.Contains(plain.String(), words) {
			t.Errorf("the plain view lacks %q: %s", words, plain.String())
		}
	})
}

// TestWaitTextQuotesTheEndpoint checks that the live view has the endpoint's words about a wait,
// also the end of a long sentence.
func TestWaitTextQuotesTheEndpoint(t *testing.T) {
	t.Parallel()
	for _, words := range []string{"slow\x1b down", strings.Repeat("this minute is full, ", 9)} {
		text := waitText([]lane.Status{{Name: "l", Waits: "rate_limited", Words: words}})
		if !strings.HasSuffix(text, fmt.Sprintf("(%q)", words)) {
			t.Errorf("waitText() = %q", text)
		}
	}
}
