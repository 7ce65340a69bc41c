package simserver_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/model/simserver"
)

// TestStatsOverTime runs in virtual time, which begins at midnight of 2000-01-01, UTC.
func TestStatsOverTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newServer(t, simserver.Config{
			Keys: []string{"k0", goodKey}, Limits: []simserver.Limit{{RPM: 2}},
			Latency: simserver.Latency{Median: 2 * time.Second},
		})
		time.Sleep(time.Second)
		var running sync.WaitGroup
		running.Go(func() { say(s, "sim/listed", "x") }) // from 1 s to 3 s
		time.Sleep(time.Second)
		running.Go(func() { say(s, "sim/listed", "x") }) // from 2 s to 4 s
		time.Sleep(1500 * time.Millisecond)
		if got := s.Stats(); got.BusySeconds != 3.5 || got.InFlight != 1 {
			t.Errorf("at 3.5 s: %v slot-seconds with %d in flight, want 3.5 with 1",
				got.BusySeconds, got.InFlight)
		}
		running.Wait()
		time.Sleep(6500 * time.Millisecond)
		say(s, "sim/listed", "x") // denied
		req := httptest.NewRequest(http.MethodGet, "/stats", nil)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, req)
		const want = `{"requests":3,"faults":{},"statuses":{"200":2,"429":1},"over_limit":1,` +
			`"prompt_tokens":20,"completion_tokens":10,"in_flight":0,"max_in_flight":2,` +
			`"busy_seconds":4,"first_request":"2000-01-01T00:00:01Z",` +
			`"last_response":"2000-01-01T00:00:10.5Z","connections":0,"per_lane":[` +
			`{"key":"key 1","deployment":"sim-listed","requests":2,"denied":1,"tokens":30}]}`
		if got := w.Body.String(); got != want {
			t.Errorf("stats = %s, want %s", got, want)
		}
	})
}

func TestStatsPerLane(t *testing.T) {
	t.Parallel()
	keys := make([]string, 11)
	for i := range keys {
		keys[i] = fmt.Sprintf("sk-secret-%d", i)
	}
	s := newServer(t, simserver.Config{
		Keys: keys, Limits: []simserver.Limit{{RPM: 1}},
		Faults: []simserver.Fault{{Kind: "empty", Share: 1}},
	})
	send := func(key, model string) {
		ask(s, chatPath, key, `{"model":"`+model+`",`+userX+`}`)
	}
	send(keys[10], "sim/direct")
	send(keys[2], "sim/listed-2")
	send(keys[2], "sim-direct")
	send(keys[2], "sim/direct")
	send("sk-wrong", "sim/direct")
	want := []simserver.LaneStats{
		{Key: "key 2", Deployment: "sim-direct", Requests: 1, Denied: 1, Tokens: 15},
		{Key: "key 2", Deployment: "sim-listed-2", Requests: 1, Tokens: 15},
		{Key: "key 10", Deployment: "sim-direct", Requests: 1, Tokens: 15},
	}
	if d := cmp.Diff(want, s.Stats().PerLane); d != "" {
		t.Errorf("lanes differ (-want +got):\n%s", d)
	}
}

// TestStatsDoNotShowKeys checks that a configured key is shown by its index, and another
// key by a part of its SHA-256.
func TestStatsDoNotShowKeys(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		keys []string
		want string
	}{
		{"configured", []string{goodKey}, "key 0"},
		{"other", nil, "key5589cc"}, // echo -n sk-good-0123456789 | sha256sum
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t, simserver.Config{Keys: test.keys})
			say(s, "sim/listed", "x")
			stats := s.Stats()
			if got := stats.PerLane[0].Key; got != test.want {
				t.Errorf("key = %q, want %q", got, test.want)
			}
			text, err := json.Marshal(stats)
			if err != nil || strings.Contains(string(text), "good") {
				t.Errorf("%s, %v", text, err)
			}
		})
	}
}
