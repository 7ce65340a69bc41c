package episode

import (
	"slices"

	"github.com/assay-eval/assay"
)

// progress detects loops. It is informed of everything in the order in which it happens, and
// belongs to one episode.
//
// An error by chance and a stale answer don't count, because trying again is the right thing to do.
// Such calls are skipped, and so are lookups between calls.
type progress struct {
	rules assay.LoopRules
	turn  int
	known map[string]bool // lookup results that were shown before
	loops []assay.LoopRecord

	calls    trail // of calls with their results
	errors   trail // of mistakes and corrections; a success clears it
	searches trail // of turns that only looked up things that were known
	silences trail // of turns without an action

	news, executed int // this turn's first-time lookups, and its calls
}

func newProgress(rules assay.LoopRules) *progress {
	return &progress{rules: rules, known: make(map[string]bool)}
}

// A trail holds the latest events, oldest first.
type trail []mark

type mark struct {
	key  string
	turn int
}

// add appends a mark. Equal marks of one reply count once in a row, because the model wrote the
// whole reply before it could read any answer.
func (t *trail) add(key string, turn int) {
	if m := (mark{key, turn}); len(*t) == 0 || (*t)[len(*t)-1] != m {
		*t = append(*t, m)
	}
}

// turns looks for a loop in the latest n*period marks. There is one if each mark equals the mark
// one period before, neighbours within a period differ, and the marks come from at least n replies.
// turns then returns the turn in which the loop began.
func (t trail) turns(n, period int) (began int, round bool) {
	if n*period > len(t) || n == 0 {
		return 0, false
	}
	t = t[len(t)-n*period:]
	replies := 1
	for i := 1; i < len(t); i++ {
		if t[i].turn != t[i-1].turn {
			replies++
		}
	}
	if replies < n {
		return 0, false
	}
	for i := range t {
		if i >= period && t[i].key != t[i-period].key ||
			i > 0 && period > 1 && t[i].key == t[i-1].key {
			return 0, false
		}
	}
	return t[0].turn, true
}

// begin starts a turn.
func (p *progress) begin(turn int) { p.turn, p.news, p.executed = turn, 0, 0 }

// shown records that a lookup has shown a tool.
func (p *progress) shown(lookup act, tool string) {
	if key := lookup.String() + " " + tool; !p.known[key] {
		p.known[key] = true
		p.news++
	}
}

// failed records a mistake, or a correction that answered an action.
func (p *progress) failed(key string) {
	p.errors.add(key, p.turn)
	p.notice(assay.ErrorLoop, p.errors, 1)
}

// called records a call.
func (p *progress) called(c *assay.CallRecord) {
	p.executed++
	switch {
	case c.Mistake:
		p.failed(c.Tool + " " + c.Error)
	case c.OK && c.Happened():
		p.errors = nil
	default:
		return
	}
	p.calls.add(c.Tool+" "+c.Arguments+" "+c.Code, p.turn)
	p.notice(assay.RepeatLoop, p.calls, 1)
	p.notice(assay.PingPongLoop, p.calls, 2)
}

// end ends a turn in which this number of actions was carried out.
func (p *progress) end(actions int, rec *assay.TurnRecord) {
	if actions > 0 {
		p.silences = nil
	} else {
		p.silences.add("", p.turn)
		p.notice(assay.Monologue, p.silences, 1)
	}
	if rec.Lookups == 0 || p.executed > 0 || p.news > 0 {
		p.searches = nil
	} else {
		p.searches.add("", p.turn)
		p.notice(assay.SearchLoop, p.searches, 1)
	}
}

// notice records a loop once it has gone round often enough. Each kind is recorded once.
func (p *progress) notice(kind assay.LoopKind, t trail, period int) {
	began, round := t.turns(p.rules[kind].After, period)
	recorded := func(l assay.LoopRecord) bool { return l.Kind == kind }
	if !round || slices.ContainsFunc(p.loops, recorded) {
		return
	}
	p.loops = append(p.loops, assay.LoopRecord{Kind: kind, Began: began, Noticed: p.turn})
}

// stops reports whether a loop that was noticed ends the episode.
func (p *progress) stops() bool {
	return slices.ContainsFunc(p.loops, func(l assay.LoopRecord) bool {
		return p.rules[l.Kind].Stop
	})
}
