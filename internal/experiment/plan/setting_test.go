package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

func TestSetting(t *testing.T) {
	t.Parallel()
	plain := assay.Setting{
		World: "assay-1", Protocol: "native", Tools: "discover", Turns: 15, Calls: 10,
	}
	with := func(change func(*assay.Setting)) assay.Setting {
		s := plain
		change(&s)
		return s
	}
	withLoops := func(loops string) assay.Setting {
		return with(func(s *assay.Setting) { s.Loops = loops })
	}
	pilot := with(func(s *assay.Setting) { s.World = "pilot" })
	for text, want := range map[string]assay.Setting{
		"": plain,
		"several_calls: execute\nfailures: {}\nloops: {}\nprotocol: native\n": plain,

		"several_calls: refuse\n": with(func(s *assay.Setting) {
			s.SeveralCalls = assay.RefuseSeveral
		}),
		"protocol: tags\n": with(func(s *assay.Setting) { s.Protocol = assay.Tags }),
		"failures: {persistence: 0.3, burst: 0.2}\n": with(func(s *assay.Setting) {
			s.Persistence, s.Burst = 0.3, 0.2
		}),

		// The same rules as the world's.
		"loops:\n  {search: {after: 3, then: stop}, repeat: {then: record}, error: {after: 3}}\n": plain,

		"world: pilot\n": pilot,
		"world: pilot\nloops: {search: {then: record}, error: {}}\n": pilot,

		"loops: {search: off}\n": withLoops("repeat=3 ping_pong=3 monologue=3 error=3"),
		"loops: {repeat: {after: 5}, search: {after: 4}, error: {then: stop}}\n": withLoops(
			"repeat=5 search=4! ping_pong=3 monologue=3 error=3!"),
		"loops: {repeat: off, search: off, ping_pong: off, monologue: off, error: off}\n": withLoops(
			"none"),
	} {
		if diff := cmp.Diff(want, load(t, "models: [a]\n"+text).Setting("a")); diff != "" {
			t.Errorf("%q: setting (-want +got):\n%s", text, diff)
		}
	}
}

// TestLoopsAreComplete checks that a trial has the loop rules of the file,
// completed by the world's rules.
func TestLoopsAreComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		world := rapid.SampledFrom([]string{"assay-1", "pilot"}).Draw(rt, "world")
		want := episode.DefaultLoops(world)
		usual := want.String()
		text := "models: [a]\nworld: " + world + "\nloops:\n"
		for _, kind := range assay.LoopKinds {
			switch rapid.IntRange(0, 2).Draw(rt, string(kind)) {
			case 1:
				want[kind] = assay.LoopRule{}
				text += "  " + string(kind) + ": off\n"
			case 2:
				after := rapid.IntRange(2, 9).Draw(rt, "after")
				then := rapid.SampledFrom([]string{"record", "stop"}).Draw(rt, "then")
				want[kind] = assay.LoopRule{After: after, Stop: then == "stop"}
				text += "  " + string(kind) + ":\n    after: " + string(rune('0'+after)) +
					"\n    then: " + then + "\n"
			}
		}
		spelled := want.String()
		if spelled == usual {
			spelled = ""
		}
		if got := load(t, text).Setting("a").Loops; got != spelled {
			rt.Fatalf("%s: loops %q, want %q", text, got, spelled)
		}
	})
}

// TestTurnsNeverLimitCalls checks the limits that follow from the limits in a file, and the refused
// ones. A world in which the claim takes a reply needs one turn more.
func TestTurnsNeverLimitCalls(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text         string
		turns, calls int
	}{
		{"", 15, 10},
		{"limits: {turns: 10}\n", 10, 9},
		{"limits: {turns: 40}\n", 40, 10},
		{"limits: {turns: 2}\n", 2, 1},
		{"limits: {calls: 4}\n", 15, 4},
		{"limits: {calls: 20}\n", 25, 20},
		{"limits: {calls: 199}\n", 200, 199},
		{"limits: {turns: 11, calls: 10}\n", 11, 10},
		{"world: pilot\n", 15, 10},
		{"world: pilot\nlimits: {turns: 10}\n", 10, 10},
		{"world: pilot\nlimits: {turns: 1}\n", 1, 1},
		{"world: pilot\nlimits: {turns: 10, calls: 10}\n", 10, 10},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			got := load(t, "models: [a]\n"+tc.text).Setting("a")
			if got.Turns != tc.turns || got.Calls != tc.calls {
				t.Errorf("%d turns, %d calls; want %d, %d", got.Turns, got.Calls, tc.turns, tc.calls)
			}
		})
	}
	for text, want := range map[string]string{
		"limits: {turns: 1}\n":   "limits.turns is 1, want 2 to 200",
		"limits: {calls: 0}\n":   "limits.calls is 0, want 1 to 199",
		"limits: {calls: 200}\n": "limits.calls is 200, want 1 to 199",
		"limits: {turns: 10, calls: 10}\n": "limits.turns is 10, too few for 10 calls one at a time\n" +
			"  2 | limits: {turns: 10, calls: 10}\n    |                 ^\n" +
			"hint: write turns: 11 or more, or fewer calls",
		"world: pilot\nlimits: {turns: 9, calls: 10}\n": "write turns: 10 or more, or fewer calls",
	} {
		_, err := plan.Load(write(t, "e.yaml", "models: [a]\n"+text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want it to contain %q", text, err, want)
		}
	}
}
