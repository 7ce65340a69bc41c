package session_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// TestHangAtTheEndIsHedged runs trials against an endpoint that never answers one of the requests.
// A second request answers its trial, and the record shows both.
func TestHangAtTheEndIsHedged(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if n.Add(1) == 35 {
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"model": "m", "choices": [{"finish_reason": "stop",
			"message": {"content": "TASK_COMPLETED"}}],
			"usage": {"prompt_tokens": 9, "completion_tokens": 2}}`)
	}))
	defer web.Close()

	dir := t.TempDir()
	sum := play(t, dir, 0, &recorder{}, map[string]string{
		"p.yaml": "providers: {local: {base_url: '" + web.URL + "/v1', keys: none, " +
			"models: {m: {limits: {concurrency: 4}}}}}\n",
		"e.yaml": "providers: p.yaml\nmodels: [m]\nvariants: [optimal]\ntasks_per_type: 8\n",
	})
	if sum.Done != 40 || sum.SecondRequests == 0 || sum.SecondReplies == 0 ||
		sum.Requests != 40+sum.SecondRequests || len(sum.RequestFaults) > 0 || sum.Faulted > 0 {
		t.Errorf("%+v", sum)
	}

	db, err := store.OpenReadOnly(t.Context(), filepath.Join(dir, "s.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	requests := 0
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		requests += a.Requests
		// A request that was not waited for may have used more.
		known := assay.Usage{InputTokens: 9, OutputTokens: 2, UnpricedTokens: a.UnpricedTokens}
		if a.Outcome.Turns != 1 || len(a.Retried) > 0 || a.Usage() != known ||
			a.UnpricedTokens < 11 || (a.UnpricedTokens > 11) != (a.Requests > 1) {
			t.Errorf("attempt %+v", a)
		}
	}
	if requests != sum.Requests {
		t.Errorf("attempts have %d requests, want %d", requests, sum.Requests)
	}
}
