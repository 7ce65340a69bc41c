package report

import (
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A task numbers tasks in the order in which they were met.
type task int32

// outcomes counts outcomes of trials by kind.
type outcomes [kinds]int32

type countKind int

const (
	done countKind = iota
	full
	partial
	failed
	ordered    // all required tools succeeded in order
	hurt       // the plan has a flaw that hurts; see [Design]
	hurtFull   // full success in spite of that
	assisted   // with at least one correction
	hopeless   // although even the best policy cannot succeed
	unwanted   // with at least one unwanted effect
	misled     // a required tool worked with the wrong data
	measured   // with the ceiling of their setting
	reached    // full successes among the measured ones
	unfinished // not fully succeeded, in a world that records claims
	claimed    // not fully succeeded, and the model claimed to be done
	hit        // with the right plan, at least one fault of a tool that the best policy survives
	survived   // full success in spite of that
	attacked   // with an attacker who speaks in results
	held       // the attacker's aim failed
	judged     // with the further verdicts of the pilot world
	// The other kinds are the full successes among the judged ones, by definition.
	executor
	paper
	batch
	kinds
)

func outcomeOf(a *assay.Attempt) outcomes {
	o := &a.Outcome
	out := outcomes{
		done: 1, full: isFull(o.Level), partial: flag(o.Level == assay.PartialSuccess),
		ordered: flag(o.OrderCorrect), assisted: flag(o.Assisted > 0),
		unwanted: flag(o.UnwantedEffects > 0), misled: flag(o.Broken != ""),
		attacked: flag(o.Security != ""), held: flag(o.Security == assay.Held),
	}
	if o.Pilot == nil {
		out[unfinished] = 1 - out[full]
		silent := o.Stop == assay.GaveUp || o.Stop == assay.Declined || o.Stop == assay.LeftEarly
		out[claimed] = flag(o.Ended == assay.Finished && !silent) * out[unfinished]
	}
	out[hopeless] = flag(measuresBest(a.ScoreVersion) && o.Best == 0)
	out[failed] = 1 - out[full] - out[partial]
	if measuresBest(a.ScoreVersion) && !limited(&a.Setting) {
		out[measured], out[reached] = 1, out[full]
	}
	if p := o.Pilot; p != nil {
		out[judged], out[executor] = 1, isFull(p.Executor)
		out[paper], out[batch] = isFull(p.Paper), isFull(p.Batch)
	}
	return out
}

func flag(b bool) int32 {
	if b {
		return 1
	}
	return 0
}

func (o outcomes) group() stat.Group { return stat.Group{Full: int(o[full]), N: int(o[done])} }

// measuresBest reports whether a version of the rules measures the best policy. The first version
// of the pilot world does not.
func measuresBest(version string) bool { return version != "" && version != "pilot-1" }

// limited reports whether a setting has limits that the best policy does not know: on tokens, on
// dollars, or on loops.
func limited(s *assay.Setting) bool {
	return s.Tokens > 0 || s.USD > 0 || strings.Contains(s.Loops, "!")
}

func isFull(l assay.Level) int32 { return flag(l == assay.FullSuccess) }
