package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/world"
)

// execute is the default of several_calls. It is stored as an empty
// [assay.Setting.SeveralCalls].
const execute = "execute"

// Failures make random failures persist and cluster, both in [0,1), and mix their
// kinds. docs/worlds.md has the rules.
type Failures struct {
	Persistence float64 `yaml:"persistence" json:"persistence,omitempty"`
	Burst       float64 `yaml:"burst" json:"burst,omitempty"`
	// Kinds are the shares of the kinds of faults of tools.
	// A list of several makes the mix a factor.
	Kinds FaultMixes `yaml:"kinds" json:"kinds,omitempty"`
}

// A LoopRule defines when a kind of loop is noticed, and the reaction to it.
type LoopRule struct {
	// After is the number of times in a row, as in [assay.LoopRule].
	After int    `yaml:"after" json:"after,omitempty"`
	Then  string `yaml:"then" json:"then"`
}

// The reactions to a loop. With off, loops of the kind are ignored.
const (
	record = "record"
	stop   = "stop"
	off    = "off"
)

// minLoop is the smallest number of times in a row that can be called a loop.
const minLoop = 2

// UnmarshalYAML reads a mapping or the word off.
func (r *LoopRule) UnmarshalYAML(unmarshal func(any) error) error {
	var word string
	if unmarshal(&word) == nil && word == off {
		*r = LoopRule{Then: off}
		return nil
	}
	type mapping LoopRule
	return unmarshal((*mapping)(r))
}

// rule converts the rule to the form that episodes use.
func (r LoopRule) rule() assay.LoopRule {
	if r.Then == off {
		return assay.LoopRule{}
	}
	return assay.LoopRule{After: r.After, Stop: r.Then == stop}
}

// loopDefaults completes the rules that the file contains.
func (e *Experiment) loopDefaults() {
	for kind, usual := range episode.DefaultLoops(e.World) {
		r, ok := e.Loops[kind]
		if !ok || r.Then == off {
			continue
		}
		if !e.has(fmt.Sprintf("loops.%s.after", kind)) {
			r.After = usual.After
		}
		if r.Then == "" && usual.Stop {
			r.Then = stop
		}
		orElse(&r.Then, record)
		e.Loops[kind] = r
	}
}

func (e *Experiment) checkLoops() error {
	var kinds []string
	for _, kind := range assay.LoopKinds {
		kinds = append(kinds, string(kind))
	}
	for _, kind := range slices.Sorted(maps.Keys(e.Loops)) {
		if !slices.Contains(assay.LoopKinds, kind) {
			return e.source().AtKey("$.loops", string(kind),
				fmt.Sprintf("unknown kind of loop %q", kind),
				assay.NameHint(string(kind), kinds))
		}
		field, r := "loops."+string(kind), e.Loops[kind]
		if e.has(field+".after") && r.After < minLoop {
			return e.FieldError(field+".after",
				fmt.Sprintf("%s.after is %d, want at least %d", field, r.After,
					minLoop), "write "+string(kind)+": off to ignore these loops")
		}
		if e.has(field + ".then") {
			if err := e.checkNames(field+".then", "action for a loop", []string{r.Then},
				[]string{record, stop}); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxTurns is the largest limit of replies.
const maxTurns = 200

// spareReplies are the replies that an episode has besides the replies for its calls: one for the
// claim and four for lookups and thoughts.
const spareReplies = DefaultTurns - DefaultCalls

// claimReplies returns the number of replies that the world's claim takes.
func (e *Experiment) claimReplies() int {
	if world.Of(e.World).ClaimTakesReply {
		return 1
	}
	return 0
}

// turnDefaults completes the limits of turns and calls, so that replies never limit the calls.
func (e *Experiment) turnDefaults() {
	turns, calls := e.has("limits.turns"), e.has("limits.calls")
	if !calls {
		e.Limits.Calls = DefaultCalls
	}
	if !turns {
		e.Limits.Turns = min(maxTurns, max(DefaultTurns, e.Limits.Calls+spareReplies))
	}
	if turns && !calls {
		e.Limits.Calls = min(DefaultCalls, e.Limits.Turns-e.claimReplies())
	}
}

func (e *Experiment) checkTurns() error {
	claim := e.claimReplies()
	for _, limit := range []struct {
		field       string
		n, from, to int
	}{
		{"limits.turns", e.Limits.Turns, 1 + claim, maxTurns},
		{"limits.calls", e.Limits.Calls, 1, maxTurns - claim},
	} {
		if limit.n < limit.from || limit.n > limit.to {
			return e.FieldError(limit.field, fmt.Sprintf("%s is %d, want %d to %d",
				limit.field, limit.n, limit.from, limit.to), "")
		}
	}
	if least := e.Limits.Calls + claim; e.Limits.Turns < least {
		return e.FieldError("limits.turns",
			fmt.Sprintf("limits.turns is %d, too few for %d calls one at a time",
				e.Limits.Turns, e.Limits.Calls),
			fmt.Sprintf("write turns: %d or more, or fewer calls", least))
	}
	return nil
}

func (e *Experiment) checkFailures() error {
	d := world.Of(e.World)
	lasts := e.has("failures.persistence") || e.has("failures.burst")
	hint := "remove this field, or write world: " + world.Names[0]
	switch {
	case e.has("failures.kinds") && !d.FaultKinds:
		return e.source().AtKey("$.failures", "kinds",
			"a call that fails never happened in the world "+e.World+", so there are no kinds", hint)
	case !d.FailuresLast && (lasts || e.has("failures") && !d.FaultKinds):
		return e.source().AtKey("$", "failures",
			"failures cannot persist or cluster in the world "+e.World, hint)
	}
	for _, n := range []struct {
		field string
		share float64
	}{{"failures.persistence", e.Failures.Persistence}, {"failures.burst", e.Failures.Burst}} {
		if !(n.share >= 0 && n.share < 1) {
			return e.FieldError(n.field,
				fmt.Sprintf("%s is %v, want at least 0 and below 1", n.field,
					n.share), percentHint(n.share))
		}
	}
	return e.checkKinds()
}
