package lane_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// An act is how long a request takes and how it ends.
type act struct {
	took time.Duration
	end  assay.FaultKind // "" for a reply
}

var forever = act{took: 1000 * hour}

// A player answers warm-up requests within a second. After that, its acts follow one another.
type player struct {
	mu   sync.Mutex
	acts []act // of the requests from now on; then a second each
	sent int
}

func (p *player) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	p.mu.Lock()
	a := act{took: second}
	if len(p.acts) > 0 {
		a, p.acts = p.acts[0], p.acts[1:]
	}
	p.sent++
	p.mu.Unlock()
	select {
	case <-time.After(a.took):
	case <-ctx.Done():
		return &assay.Response{Lost: assay.Lost{Requests: 1}}, ctx.Err()
	}
	if a.end != "" {
		return &assay.Response{}, fault(a.end)
	}
	return &assay.Response{
		ServedModel: "m", Usage: assay.Usage{InputTokens: 10, OutputTokens: 1},
		Message: assay.Message{Role: assay.Assistant, Content: a.took.String()},
	}, nil
}

// A stage is a pool that knows how long replies take: a second.
type stage struct {
	*lane.Pool
	players []*player
	mu      sync.Mutex
	seen    []lane.Exchange
}

// newStage returns a pool with a player for each configuration, and acts for the requests after the
// warm-up. Each lane has ten places unless its limits differ.
func newStage(t *testing.T, configs []lane.Config, acts ...[]act) *stage {
	s := &stage{}
	for i := range configs {
		c := &configs[i]
		s.players = append(s.players, &player{})
		c.Provider, c.Orders, c.Name = s.players[i], "m", string(rune('a'+i))
		if c.Limits == (lane.Limits{}) {
			c.Limits.Concurrency = 10
		}
	}
	s.Pool = lane.NewPool("m", configs, lane.Options{
		Request: 100 * second,
		Observe: func(x lane.Exchange) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.seen = append(s.seen, x)
		},
	})
	mustAll(t, ask(t.Context(), s.Pool, 40))
	s.Exhausted()
	s.seen = nil
	for i, p := range s.players {
		p.sent = 0
		if i < len(acts) {
			p.acts = acts[i]
		}
	}
	return s
}

// count returns how many exchanges were seen for which f holds.
func (s *stage) count(f func(lane.Exchange) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.seen {
		if f(x) {
			n++
		}
	}
	return n
}

func isSecond(x lane.Exchange) bool { return x.Second }
func isEnded(x lane.Exchange) bool  { return x.Ended }

// mustBeFree fails if a request is in flight.
func (s *stage) mustBeFree(t *testing.T) {
	t.Helper()
	states, _ := s.Status()
	for _, l := range states {
		if l.InFlight != 0 || !l.Oldest.IsZero() {
			t.Errorf("lane %s has %d requests in flight", l.Name, l.InFlight)
		}
	}
}

// late is when a request is late whose peers take a second.
const late = 1500 * time.Millisecond

// TestFirstReplyWins checks how a turn ends whose request is late, whichever request is answered
// first or fails. synctest fails if a goroutine is left.
func TestFirstReplyWins(t *testing.T) {
	t.Parallel()
	const server, hung = assay.Server, assay.Timeout
	for _, tc := range []struct {
		name    string
		acts    []act
		took    time.Duration
		fault   assay.FaultKind
		retried map[assay.FaultKind]int
		sent    int // requests
		seconds int
		ended   int // by the pool
	}{
		{"in time", []act{{took: late - 1}}, late - 1, "", nil, 1, 0, 0},
		{"the second one", []act{forever, {took: second}}, late + second, "", nil, 2, 1, 1},
		{"the first one", []act{{took: 2 * second}, forever}, 2 * second, "", nil, 2, 1, 1},
		{
			"both at once",
			[]act{{took: late + second}, {took: second}},
			late + second, "", nil, 2, 1, 0,
		},
		{
			"the third one",
			[]act{forever, forever, {took: second}},
			2*late + second, "", nil, 3, 2, 2,
		},
		{
			"the second fails",
			[]act{{took: 4 * second}, {second, server}, forever},
			4 * second, "",
			map[assay.FaultKind]int{server: 1},
			3, 2, 1,
		},
		{
			"the first fails",
			[]act{{2 * second, server}, {took: second}},
			late + second, "",
			map[assay.FaultKind]int{server: 1},
			2, 1, 0,
		},
		{
			"the first fails for ever",
			[]act{{2 * second, assay.BadRequest}, {took: second}},
			late + second, "",
			map[assay.FaultKind]int{assay.BadRequest: 1},
			2, 1, 0,
		},
		{
			"both fail for ever",
			[]act{{2 * second, assay.BadRequest}, {second, server}},
			late + second, assay.BadRequest,
			map[assay.FaultKind]int{server: 1},
			2, 1, 0,
		},
		{
			"all hang",
			[]act{forever, forever, forever, {took: second}},
			2*late + 101*second, "",
			map[assay.FaultKind]int{hung: 3},
			4, 2, 0,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, []lane.Config{{Hedge: true}}, tc.acts)
				begin := time.Now()
				resp, err := s.Chat(t.Context(), &assay.Request{Model: "m"})
				took := time.Since(begin)
				var kind assay.FaultKind
				if f := assay.AsFault(err); f != nil {
					kind = f.Kind
				}
				if took != tc.took+resp.Waits.Queued || resp.Waits.Working != tc.took ||
					kind != tc.fault {
					t.Errorf("took %v, fault %q; want %v, %q", took, kind, tc.took, tc.fault)
				}
				w := resp.Waits
				if w.Requests != tc.sent || !maps.Equal(w.Retried, tc.retried) {
					t.Errorf("waits %+v, want %d requests and retries %v", w, tc.sent, tc.retried)
				}
				if len(s.seen) != tc.sent || s.count(isSecond) != tc.seconds ||
					s.count(isEnded) != tc.ended {
					t.Errorf("saw %+v, want %d requests, %d second ones, %d ended by the pool",
						s.seen, tc.sent, tc.seconds, tc.ended)
				}
				if n := s.Ledgers()[0].Requests; n != 40+tc.sent {
					t.Errorf("the lane counts %d requests, want %d", n, 40+tc.sent)
				}
				s.mustBeFree(t)
			})
		})
	}
}

// TestSecondRequestsArePaid checks that a turn costs as much as all its requests, and that one that
// was not waited for may have been billed.
func TestSecondRequestsArePaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := lane.Config{Hedge: true, Price: lane.Price{Input: 100, Output: 1000}}
		const each = 0.002 // 10 tokens at $100 and one at $1,000 a million
		s := newStage(t, []lane.Config{config},
			[]act{{took: late + second}, {took: second}, forever, {took: second}})
		both, err := s.Chat(t.Context(), &assay.Request{Model: "m"})
		if err != nil || both.Cost != 2*each || both.Usage.InputTokens != 20 || both.Lost.Requests != 0 {
			t.Errorf("two replies: %+v, %v", both, err)
		}
		one, err := s.Chat(t.Context(), &assay.Request{Model: "m"})
		if err != nil || one.Cost != each || one.Usage.InputTokens != 10 || one.Lost.Requests != 1 ||
			one.Lost.USD < each || one.Usage.UnpricedTokens != one.Lost.Tokens {
			t.Errorf("one reply: %+v, %v", one, err)
		}
	})
}

// TestOnlyLanesThatMayHedgeDo checks that second requests go to lanes that permit them, and to
// another lane than the first one if possible.
func TestOnlyLanesThatMayHedgeDo(t *testing.T) {
	t.Parallel()
	hang := slices.Repeat([]act{forever}, 5)
	for _, tc := range []struct {
		name    string
		a, b    bool
		seconds int
		onB     int // requests to lane b
	}{
		{"no lane", false, false, 0, 0},
		{"the lane of the request", true, false, 2, 0},
		{"the other lane", false, true, 1, 1},
		{"both", true, true, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, []lane.Config{{Hedge: tc.a}, {Hedge: tc.b}}, hang)
				ctx, cancel := context.WithTimeout(t.Context(), 50*second)
				defer cancel()
				_, _ = s.Chat(ctx, &assay.Request{Model: "m", Lane: "a"})
				onB := s.players[1].sent
				if s.count(isSecond) != tc.seconds || onB != tc.onB {
					t.Errorf("%d second requests, %d requests to b", s.count(isSecond), onB)
				}
				s.mustBeFree(t)
			})
		})
	}
}

// TestSecondRequestsGiveWay checks that a second request is ended when another turn needs its
// place, and that its turn goes on.
func TestSecondRequestsGiveWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := lane.Config{Hedge: true, Limits: lane.Limits{Concurrency: 2}}
		s := newStage(t, []lane.Config{config},
			[]act{{took: 10 * second}, forever, {took: 3 * second}, forever})
		var wg sync.WaitGroup
		begin := time.Now()
		wg.Go(func() {
			resp, err := s.Chat(t.Context(), &assay.Request{Model: "m"})
			took := time.Since(begin)
			if err != nil || took != 10*second || resp.Waits.Requests != 3 {
				t.Errorf("the late turn took %v with %+v, %v", took, resp.Waits, err)
			}
		})
		time.Sleep(2 * second) // now both places are taken
		resp, err := s.Chat(t.Context(), &assay.Request{Model: "m"})
		if err != nil || resp.Waits.Queued != 0 || s.count(isEnded) != 1 {
			t.Errorf("the other turn waited for %v, %v, saw %+v", resp.Waits.Queued, err, s.seen)
		}
		wg.Wait() // there was room for a third request
		if s.count(isSecond) != 2 || s.count(isEnded) != 2 {
			t.Errorf("saw %+v", s.seen)
		}
		s.mustBeFree(t)
	})
}

// TestConversationsKeepTheirPlaces checks that no second request takes the place of a conversation
// that is between two turns.
func TestConversationsKeepTheirPlaces(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := lane.Config{Hedge: true, Limits: lane.Limits{Concurrency: 2}}
		s := newStage(t, []lane.Config{config}, []act{forever, {took: second}, {took: second}})
		inside, done, ok := s.Admit(t.Context())
		if !ok {
			t.Fatal("not admitted")
		}
		var wg sync.WaitGroup
		begin := time.Now()
		wg.Go(func() {
			// The other conversation ends after 14 seconds, and a second request takes one.
			_, err := s.Chat(t.Context(), &assay.Request{Model: "m"})
			if took := time.Since(begin); err != nil || took != 15*second {
				t.Errorf("the late turn took %v, %v", took, err)
			}
		})
		time.Sleep(5 * second)
		_, err := s.Chat(inside, &assay.Request{Model: "m"})
		if err != nil || s.count(isSecond) > 0 {
			t.Errorf("%v, saw %+v", err, s.seen)
		}
		time.Sleep(8 * second)
		done()
		wg.Wait()
		s.mustBeFree(t)
	})
}

// TestRacesEndWithTheContext checks that all requests of a turn end when the run is stopped or the
// trial's working time is used up.
func TestRacesEndWithTheContext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name               string
		budget, stop, took time.Duration
		kind               assay.FaultKind
	}{
		{"stopped", 0, 10 * second, 10 * second, assay.Interrupted},
		{"working time", 20 * second, minute, 20 * second, assay.Timeout},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, []lane.Config{{Hedge: true}}, slices.Repeat([]act{forever}, 9))
				ctx, cancel := context.WithTimeout(t.Context(), tc.stop)
				defer cancel()
				begin := time.Now()
				resp, err := s.Chat(ctx, &assay.Request{Model: "m", Budget: tc.budget})
				f := assay.AsFault(err)
				if took := time.Since(begin); took != tc.took || f == nil || f.Kind != tc.kind ||
					resp.Waits.Requests != 3 {
					t.Errorf("took %v, %v, %+v", took, err, resp.Waits)
				}
				s.mustBeFree(t)
			})
		})
	}
}

// TestLevelsHaveTheirOwnPeers checks that a request is compared with other requests of its model,
// and that no request is late while there is little to compare it with.
func TestLevelsHaveTheirOwnPeers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, []lane.Config{{Hedge: true}}, slices.Repeat([]act{{took: minute}}, 9))
		if _, err := s.Chat(t.Context(), &assay.Request{Model: "m@high"}); err != nil ||
			s.count(isSecond) > 0 {
			t.Errorf("%v, saw %+v", err, s.seen)
		}
	})
}

// A bomb panics in second requests.
type bomb struct {
	player
	n int
}

func (b *bomb) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	b.mu.Lock()
	b.n++
	n := b.n
	b.mu.Unlock()
	switch {
	case n == 41:
		<-ctx.Done()
		return &assay.Response{}, ctx.Err()
	case n > 41:
		panic("boom")
	}
	return b.player.Chat(ctx, req)
}

// TestPanicOfASecondRequestIsTheTurns checks that a panic reaches the goroutine of the turn, where
// the engine expects it.
func TestPanicOfASecondRequestIsTheTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := lane.NewPool("m", []lane.Config{{
			Name: "l", Provider: &bomb{}, Orders: "m", Hedge: true,
			Limits: lane.Limits{Concurrency: 10},
		}}, lane.Options{})
		mustAll(t, ask(t.Context(), p, 40))
		p.Exhausted()
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = p.Chat(t.Context(), &assay.Request{Model: "m"})
	})
}
