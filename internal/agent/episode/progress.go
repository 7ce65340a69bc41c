package episode

import (
	"slices"

	"github.com/assay-eval/assay"
)

// progress notices loops. It is told what happens in the order in which it
// happens, and belongs to one episode.
//
// A failure by chance says nothing: to try again is what the world rewards. So
// such calls are passed over, as lookups are between calls.
type progress struct {
	rules assay.LoopRules
	turn  int
	known map[string]bool // what lookups have shown
	loops []assay.LoopRecord

	calls    trail // of calls with their results
	errors   trail // of mistakes and corrections; anything else breaks it
	searches trail // of turns that only looked things up, and none for the first time
	silences trail // of turns without an action

	news, executed int // things shown for the first time, and calls, of this turn
}

func newProgress(rules assay.LoopRules) *progress {
	return &progress{rules: rules, known: make(map[string]bool)}
}

// A trail is what happened lately, oldest first.
type trail []mark

type mark struct {
	key  string
	turn int
}

// add appends a mark. One reply makes one mark of a key in a row: what it holds
// was written before any answer could be read.
func (t *trail) add(key string, turn int) {
	if m := (mark{key, turn}); len(*t) == 0 || (*t)[len(*t)-1] != m {
		*t = append(*t, m)
	}
}

// turns reports the turn in which the latest n marks began, if each of them is
// like the one period before it, those of a period differ, and they come from n
// replies at least.
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
		if i >= period && t[i].key != t[i-period].key || i > 0 && period > 1 && t[i].key == t[i-1].key {
			return 0, false
		}
	}
	return t[0].turn, true
}

// begin says that a reply has come.
func (p *progress) begin(turn int) { p.turn, p.news, p.executed = turn, 0, 0 }

// shown says that a lookup of a kind has told about a tool.
func (p *progress) shown(lookup act, tool string) {
	if what := lookup.String() + " " + tool; !p.known[what] {
		p.known[what] = true
		p.news++
	}
}

// malformed says that an action was answered by a correction.
func (p *progress) malformed(correction string) { p.failed(correction) }

func (p *progress) failed(key string) {
	p.errors.add(key, p.turn)
	p.notice(assay.ErrorLoop, p.errors, 1)
}

// called says how a call went.
func (p *progress) called(c *assay.CallRecord) {
	p.executed++
	switch {
	case c.Mistake:
		p.failed(c.Tool + " " + c.Error)
	case c.OK:
		p.errors = nil
	default:
		return
	}
	p.calls.add(c.Tool+" "+c.Arguments+" "+c.Code, p.turn)
	p.notice(assay.RepeatLoop, p.calls, 1)
	p.notice(assay.PingPongLoop, p.calls, 2)
}

// end says that all of the reply's actions, so many, were carried out.
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

// notice records a loop once it has gone round often enough, the first of each
// kind.
func (p *progress) notice(kind assay.LoopKind, t trail, period int) {
	began, round := t.turns(p.rules[kind].After, period)
	if !round || slices.ContainsFunc(p.loops, func(l assay.LoopRecord) bool { return l.Kind == kind }) {
		return
	}
	p.loops = append(p.loops, assay.LoopRecord{Kind: kind, Began: began, Noticed: p.turn})
}

// stops reports whether a loop that was noticed ends the episode.
func (p *progress) stops() bool {
	return slices.ContainsFunc(p.loops, func(l assay.LoopRecord) bool { return p.rules[l.Kind].Stop })
}
