package assay

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A ToolFault is the effect of bad luck on a call of a tool. It is part of the task, and never a
// [Fault].
type ToolFault string

// The kinds of faults of tools.
const (
	FaultBefore     ToolFault = "before"      // the call does not happen; the answer is an error
	FaultAfter      ToolFault = "after"       // the call happens; its answer is lost
	FaultSlow       ToolFault = "slow"        // the call happens; its answer is late
	FaultWrongShape ToolFault = "wrong_shape" // the call happens; a part of its answer is missing
	FaultStale      ToolFault = "stale"       // the call does not happen; an old answer is repeated
	FaultWrongValue ToolFault = "wrong_value" // the call happens; a value in its answer is wrong
	FaultCorrupted  ToolFault = "corrupted"   // as wrong_value, in each later answer of the tool, too
	FaultPartial    ToolFault = "partial"     // the call happens; the rest of a list in its answer follows
	FaultInjected   ToolFault = "injected"    // the call happens; an attacker speaks in its answer
	FaultDown       ToolFault = "down"        // no call of the tool happens from now on; each answer is an error
	FaultThrottled  ToolFault = "throttled"   // no call of the tool happens for a while; each answer is an error
	FaultDrift      ToolFault = "drift"       // the call does not happen: a parameter has another name from now on
	FaultUnits      ToolFault = "units"       // the call does not happen: a quantity has another unit and name from now on
)

// A ToolFaultRule says what a kind of fault does. Whatever depends on the kind follows from its rule,
// except for the answer, which task/world/spec words.
type ToolFaultRule struct {
	Kind ToolFault
	// Says is what happens, for schemas.
	Says string
	// Happens is true if the call happens nevertheless.
	Happens bool
	// Hides is true if the answer does not say what has happened, or lacks a part of the result.
	Hides bool
	// Harmless is true if the answer has the whole result, so that the agent has nothing to recover from.
	Harmless bool
	// Repeats is true if the answer is an earlier one. Without one, the fault is [FaultBefore].
	Repeats bool
	// Attacks is true if only environments that have an attacker can have the kind.
	Attacks bool
	// Implicit is true if the answer does not say that there is a fault.
	Implicit bool
	// Permanent is true if the tool meets the fault in all later calls of the attempt.
	Permanent bool
	// Waits is true if the tool meets the fault again until other calls have been made; see
	// [CallRecord.Wait].
	Waits bool
	// Renames is true if a parameter of the tool has another name in all later calls of the attempt, which
	// the error states. A call that has no argument to rename, or whose tool has such a parameter, meets
	// [FaultBefore] instead.
	Renames bool
	// Rescales is true if that parameter is a quantity, which has another unit, too. Calls without one
	// meet [FaultBefore].
	Rescales bool
	// Rereads is true if the agent learns the whole truth by another call: of the tool or, if the fault stays,
	// of another one. Only tools without an effect, whose calls can be repeated, have the kind, and only in
	// worlds where agents read answers. A call whose answer has nothing to change meets no fault.
	Rereads bool
	// Stays is true if each later answer of the tool is as wrong, unless its call meets another fault.
	Stays bool
	// Pages is true if calls with a cursor give the rest of the answer.
	Pages bool
	// Misleads explains how an agent that trusts the answer goes wrong, after the number of the call and
	// its tool. It is empty if the answer is true, or is an error.
	Misleads string
}

// ToolFaultRules lists the kinds, in the order of tables.
var ToolFaultRules = []ToolFaultRule{
	{Kind: FaultBefore, Says: "the call does not happen"},
	{Kind: FaultAfter, Says: "it happens, and its answer is lost", Happens: true, Hides: true},
	{Kind: FaultSlow, Says: "it happens, and the answer is late", Happens: true, Harmless: true},
	{
		Kind: FaultWrongShape, Says: "it happens, and a field of the answer is missing", Happens: true, Hides: true,
		Implicit: true, Misleads: "the answer of call %d (%s) lacked a part",
	},
	{
		Kind: FaultStale, Says: "it does not happen, and an old answer is repeated", Hides: true, Repeats: true,
		Implicit: true, Misleads: "call %d (%s) did not happen, and its answer was an old one",
	},
	{
		Kind: FaultWrongValue, Says: "it happens, and a value of the answer is wrong", Happens: true, Hides: true,
		Implicit: true, Rereads: true, Misleads: "a value in the answer of call %d (%s) was wrong",
	},
	{
		Kind: FaultCorrupted, Says: "it happens, and a value is wrong in this and all later answers of the tool",
		Happens: true, Hides: true, Implicit: true, Rereads: true, Stays: true,
		Misleads: "a value in the answer of call %d (%s) was wrong",
	},
	{
		Kind: FaultPartial, Says: "it happens, and the answer has half of a list, and a cursor for the rest",
		Happens: true, Hides: true, Implicit: true, Rereads: true, Pages: true,
		Misleads: "the answer of call %d (%s) had only a part of its list",
	},
	{
		Kind: FaultInjected, Says: "it happens, and the attacker speaks in the answer", Happens: true,
		Harmless: true, Attacks: true, Implicit: true,
	},
	{Kind: FaultDown, Says: "the tool fails from then on", Permanent: true},
	{Kind: FaultThrottled, Says: "the tool refuses calls until 1 to 3 more calls of tools were made", Waits: true},
	{Kind: FaultDrift, Says: "a parameter of the tool has another name from then on, which the error states", Renames: true},
	{
		Kind: FaultUnits, Says: "a quantity that the tool takes has another unit and name from then on, which the error states",
		Renames: true, Rescales: true,
	},
}

// Lasts reports whether the fault can outlast the call that met it.
func (r ToolFaultRule) Lasts() bool { return r.Permanent || r.Waits }

// NeedsValues reports whether only tools of users, which take and return values, can meet the fault.
func (r ToolFaultRule) NeedsValues() bool { return r.Rereads || r.Rescales }

// AddsArguments reports whether later calls of the tool have arguments that its schema does not list.
func (r ToolFaultRule) AddsArguments() bool { return r.Renames || r.Pages }

// Class says whether the answer shows the fault, and whether it stays, such as "explicit, permanent".
func (r ToolFaultRule) Class() string {
	class := [2]string{"explicit", "transient"}
	if r.Implicit {
		class[0] = "implicit"
	}
	if r.Permanent || r.Renames || r.Stays {
		class[1] = "permanent"
	}
	return class[0] + ", " + class[1]
}

// ToolFaults lists the kinds, in the order of tables.
var ToolFaults = ToolFaultsThat(func(ToolFaultRule) bool { return true })

// ToolFaultsThat lists the kinds whose rules have a property, in the order of tables.
func ToolFaultsThat(have func(ToolFaultRule) bool) (kinds []ToolFault) {
	for _, r := range ToolFaultRules {
		if have(r) {
			kinds = append(kinds, r.Kind)
		}
	}
	return kinds
}

// FillToolFaults puts kinds into the text of a schema: their names in place of "$KIND", with what they do
// in place of $KINDS.
func FillToolFaults(schema string, kinds []ToolFault) string {
	var quoted, says []string
	for _, kind := range kinds {
		quoted = append(quoted, strconv.Quote(string(kind)))
		where := ""
		if kind.Rule().Attacks {
			where = ", in environments with attackers only"
		}
		says = append(says, string(kind)+where+": "+kind.Rule().Says)
	}
	return strings.NewReplacer(`"$KIND"`, strings.Join(quoted, ", "), "$KINDS", strings.Join(says, "; ")).
		Replace(schema)
}

// Rule returns the rule of a kind. No fault, and an unknown kind, have the zero rule.
func (f ToolFault) Rule() ToolFaultRule {
	for _, r := range ToolFaultRules {
		if r.Kind == f {
			return r
		}
	}
	return ToolFaultRule{}
}

// Happens reports whether a call that meets the fault happens nevertheless.
func (f ToolFault) Happens() bool { return f.Rule().Happens }

// Possible returns the fault, or [FaultBefore] if it would repeat an answer and the tool has given none.
func (f ToolFault) Possible(answered bool) ToolFault {
	if f.Rule().Repeats && !answered {
		return FaultBefore
	}
	return f
}

// A FaultMix holds the shares of the kinds among the faults of tools. They add up to 1. An empty
// mix means that all faults are [FaultBefore].
type FaultMix map[ToolFault]float64

// String spells the mix as a [Cell] holds it, such as "after=0.25,before=0.75": kinds with a
// share, in the order of their names. An empty mix and one that has only [FaultBefore] are "".
func (m FaultMix) String() string {
	var words []string
	for _, kind := range m.kinds() {
		words = append(words, string(kind)+"="+strconv.FormatFloat(m[kind], 'f', -1, 64))
	}
	if len(words) == 1 && m[FaultBefore] > 0 {
		return ""
	}
	return strings.Join(words, ",")
}

// kinds returns the kinds with a share, in the order of their names.
func (m FaultMix) kinds() []ToolFault {
	kinds := slices.Sorted(maps.Keys(m))
	return slices.DeleteFunc(kinds, func(kind ToolFault) bool { return m[kind] == 0 })
}

// Kind returns the kind at a place in [0,1), if the kinds with their shares lie side by side in the
// order of their names. The last one also gets the remainder from rounding.
func (m FaultMix) Kind(place float64) ToolFault {
	kind, sum := FaultBefore, 0.0
	for _, kind = range m.kinds() {
		if sum += m[kind]; place < sum {
			break
		}
	}
	return kind
}

// Happens returns the share of the faults at which the call happens nevertheless.
func (m FaultMix) Happens() float64 { return m.That(func(r ToolFaultRule) bool { return r.Happens }) }

// That returns the share of the faults whose rules have a property.
func (m FaultMix) That(have func(ToolFaultRule) bool) float64 {
	sum := 0.0
	for _, kind := range m.kinds() {
		if have(kind.Rule()) {
			sum += m[kind]
		}
	}
	return min(1, sum)
}

// Check returns an error if a kind is unknown, a share is outside [0,1], or the shares of a mix
// that is not empty don't add up to 1.
func (m FaultMix) Check() error {
	sum := 0.0
	for _, kind := range slices.Sorted(maps.Keys(m)) {
		if !slices.Contains(ToolFaults, kind) {
			return fmt.Errorf("unknown kind of fault %q", kind)
		}
		if share := m[kind]; !(share >= 0 && share <= 1) { // also true for NaN
			return fmt.Errorf("the share of %s is %v, outside [0,1]", kind, share)
		}
		sum += m[kind]
	}
	if len(m) > 0 && math.Abs(sum-1) > 1e-9 {
		return fmt.Errorf("the shares of the kinds add up to %g instead of 1", sum)
	}
	return nil
}

// ParseFaultMix reads the spelling of [FaultMix.String].
func ParseFaultMix(text string) (FaultMix, error) {
	if text == "" {
		return nil, nil
	}
	mix := make(FaultMix)
	for word := range strings.SplitSeq(text, ",") {
		kind, number, _ := strings.Cut(word, "=")
		share, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return nil, fmt.Errorf("share %q of faults: %w", word, err)
		}
		mix[ToolFault(kind)] = share
	}
	return mix, mix.Check()
}
