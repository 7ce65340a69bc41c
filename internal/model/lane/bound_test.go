package lane_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// TestStateStaysWithItsEndpoint checks that a conversation waits for a lane that understands the
// state of its replies, that other conversations do not wait behind it, and that any lane has to do
// when the endpoint's own lanes have closed.
func TestStateStaysWithItsEndpoint(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := newEndpoint(10*time.Second), newEndpoint(10*time.Second)
		pool := lane.NewPool("m", []lane.Config{
			narrow("here", "a", here), narrow("there", "b", there),
		}, lane.Options{})
		chat := func(origin string) (string, error) {
			req := assay.Request{Model: "m", Messages: []assay.Message{{Role: assay.Assistant}}}
			if origin != "" {
				req.Messages[0].State = &assay.State{Origin: origin}
			}
			resp, err := pool.Chat(t.Context(), &req)
			return resp.Lane, err
		}
		type end struct {
			name, lane string
			at         time.Duration
		}
		ends := make(chan end, 9)
		start := time.Now()
		send := func(name, origin string) {
			go func() {
				lane, err := chat(origin)
				if err != nil {
					t.Error(err)
				}
				ends <- end{name, lane, time.Since(start)}
			}()
			synctest.Wait()
		}
		send("first", "a")
		send("bound", "a")
		send("free", "")
		send("next", "")
		send("strange", "elsewhere")
		var got []end
		for range 5 {
			got = append(got, <-ends)
		}
		for i, want := range []end{
			{"first", "here", 10 * time.Second},
			{"free", "there", 10 * time.Second},
			{"bound", "here", 20 * time.Second},
			{"next", "there", 20 * time.Second},
		} {
			if !contains(got[i/2*2:i/2*2+2], want) {
				t.Errorf("ends = %+v, want %+v", got, want)
			}
		}
		if got[4].name != "strange" || got[4].at != 30*time.Second {
			t.Errorf("the conversation of another endpoint ended with %+v", got[4])
		}

		here.script = func(int, time.Duration) error { return fault(assay.Auth) }
		if _, err := chat("a"); err != nil {
			t.Errorf("with its own lane closed, Chat() = %v", err)
		}
		if lane, err := chat("a"); lane != "there" || err != nil {
			t.Errorf("with its own lane closed, Chat() = %s, %v", lane, err)
		}
	})
}

func contains[T any](all []T, x T) bool {
	for _, y := range all {
		if cmp.Equal(x, y, cmp.AllowUnexported(x)) {
			return true
		}
	}
	return false
}

// TestAdmissionDespiteBoundConversations checks that a conversation that waits for its own lane
// does not keep new ones from starting on others.
func TestAdmissionDespiteBoundConversations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		here, there := newEndpoint(time.Hour), newEndpoint(time.Second)
		pool := lane.NewPool("m", []lane.Config{
			narrow("here", "a", here), narrow("there", "b", there),
		}, lane.Options{Request: 2 * time.Hour})
		bound := assay.Request{Model: "m", Messages: []assay.Message{
			{Role: assay.Assistant, State: &assay.State{Origin: "a"}},
		}}
		for range 2 {
			go func() { _, _ = pool.Chat(t.Context(), &bound) }()
			synctest.Wait()
		}
		for range 5 {
			ctx, done, ok := pool.Admit(t.Context())
			if !ok {
				t.Fatal("a new conversation is not admitted")
			}
			resp, err := pool.Chat(ctx, &assay.Request{Model: "m"})
			if err != nil || resp.Lane != "there" {
				t.Fatalf("Chat() = %s, %v", resp.Lane, err)
			}
			done()
		}
		time.Sleep(3 * time.Hour) // until the bound ones have ended
	})
}

// narrow returns a lane for one request at a time.
func narrow(name, origin string, e *endpoint) lane.Config {
	config := e.lane(name, lane.Limits{Concurrency: 1})
	config.Origin = origin
	return config
}
