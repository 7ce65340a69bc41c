package session

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/model/lane"
)

// TestWaitTextQuotesTheEndpoint checks that the live view has the endpoint's words about a wait.
func TestWaitTextQuotesTheEndpoint(t *testing.T) {
	t.Parallel()
	text := waitText([]lane.Status{{Name: "l", Waits: "rate_limited", Words: "slow\x1b down"}})
	if !strings.HasSuffix(text, `("slow\x1b down")`) {
		t.Errorf("waitText() = %q", text)
	}
}
