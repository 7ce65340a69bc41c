package spec

import (
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// Answer completes the record of a call, which may have met a fault, by the answer to the model.
// Output is the tool's answer if the call happened, old is the tool's latest answer, and chance
// picks the error of a call that does not happen. Drift is the error of a renamed parameter.
func Answer(
	rec *assay.CallRecord, tool assay.Tool, fault assay.ToolFault, luck Luck, output, old string,
	drift assay.ToolError, chance func() assay.ToolError,
) {
	fail := func(e assay.ToolError) { rec.Code, rec.Error = e.Code, FailureText(tool, e, luck) }
	switch fault {
	case assay.FaultBefore:
		fail(chance())
	case assay.FaultAfter:
		fail(Timeout(tool))
	case assay.FaultSlow:
		rec.Seconds = Seconds(luck)
	case assay.FaultWrongShape:
		output = WrongShape(output, luck)
	case assay.FaultStale:
		output = old
	case assay.FaultDown:
		fail(OutOfService)
	case assay.FaultThrottled:
		fail(throttled(rec.Wait))
	case assay.FaultDrift, assay.FaultUnits:
		fail(drift)
	}
	if rec.OK = rec.Code == ""; rec.OK {
		rec.Output = output
	}
}

// OutOfService is the error of a tool that is down.
var OutOfService = assay.ToolError{
	Code: "OUT_OF_SERVICE", Description: "The tool is out of service, and stays so for the rest of the task",
}

// Throttled is the error code of a tool that takes no calls for a while.
const Throttled = "THROTTLED"

func throttled(wait int) assay.ToolError {
	text := "There were too many requests. The tool takes calls again after " +
		assay.Counted(wait, "more call") + " of any tools"
	if wait == 0 {
		text = "There were too many requests. The tool takes the next call again"
	}
	return assay.ToolError{Code: Throttled, Description: text}
}

// Outages are the faults of an attempt's tools that outlast a call.
type Outages struct {
	spared int // the number of the call, from 1, that meets no fault; 0 if there is none
	calls  int
	down   map[string]bool
	until  map[string]int // the number of calls after which the tool takes calls again
}

// NewOutages returns the outages at the start of a trial: none.
func NewOutages(trial *assay.Trial) Outages { return Outages{spared: trial.SparedCall()} }

// A Throw has luck's decisions about a call.
type Throw struct {
	Luck Luck
	// Chance is that of the call to meet no fault. It is 0 if its tool is out of order.
	Chance float64
	Fault  assay.ToolFault // "" if it meets none
	// Wait is that of [assay.CallRecord].
	Wait int
}

// Meet returns what luck decides about the next call of a tool, which meets no fault with a chance unless its tool
// is out of order. A throttled tool takes no calls for 1 to 3 calls, by the second spare word.
func (o *Outages) Meet(tool string, luck Luck, chance float64, mix assay.FaultMix) Throw {
	switch {
	case o.calls+1 == o.spared:
		return Throw{Luck: luck, Chance: 1}
	case o.down[tool]:
		return Throw{Luck: luck, Fault: assay.FaultDown}
	case o.calls < o.until[tool]:
		return Throw{Luck: luck, Fault: assay.FaultThrottled, Wait: o.until[tool] - o.calls - 1}
	case luck.Success < chance:
		return Throw{Luck: luck, Chance: chance}
	}
	f := Throw{Luck: luck, Chance: chance, Fault: luck.Fault(mix)}
	switch rule := f.Fault.Rule(); {
	case rule.Permanent:
		if o.down == nil {
			o.down = make(map[string]bool)
		}
		o.down[tool] = true
	case rule.Waits:
		if o.until == nil {
			o.until = make(map[string]int)
		}
		f.Wait = 1 + luck.Pick(1, policy.LongestWait)
		o.until[tool] = o.calls + 1 + f.Wait
	}
	return f
}

// Pass counts a call of any tool, whatever became of it.
func (o *Outages) Pass() { o.calls++ }

// Planted returns for each call the number of the one that met its fault first: its own, that of an
// earlier call after which the tool was out of order or gave wrong answers, or -1 if it met none.
func Planted(calls []assay.CallRecord) []int {
	type outage struct {
		tool string
		kind assay.ToolFault
	}
	first := make([]int, len(calls))
	from, until := make(map[outage]int), make(map[outage]int) // of the latest one
	for i := range calls {
		c := &calls[i]
		this := outage{c.Tool, c.Met()}
		switch rule := this.kind.Rule(); {
		case rule.Kind == "":
			first[i] = -1
		case i < until[this]:
			first[i] = from[this]
		default:
			if first[i], from[this] = i, i; rule.Permanent || rule.Stays {
				until[this] = len(calls)
			} else if rule.Waits {
				until[this] = i + 1 + c.Wait
			}
		}
	}
	return first
}

// Scheduled returns the faults that an agent meets that makes a number of calls, follows the steps
// of a plan, repeats each step until it has happened, and goes on with another tool that does the same
// work if one is down, and whether it completes the plan. Throw returns the fault of the next call of a
// tool, or "".
func Scheduled(
	catalog *assay.Catalog, calls int, steps []string, throw func(tool string) assay.ToolFault,
) (faults map[Place]bool, survivable bool) {
	faults = make(map[Place]bool)
	spent, down := make(map[string]int), make(map[string]bool)
	for ; calls > 0 && len(steps) > 0; calls-- {
		tools := append([]string{steps[0]}, catalog.Substitutes(steps[0])...)
		up := slices.IndexFunc(tools, func(name string) bool { return !down[name] })
		if up < 0 {
			return faults, false
		}
		place := Place{Tool: tools[up], Number: spent[tools[up]]}
		spent[place.Tool]++
		fault := throw(place.Tool)
		if fault != "" {
			faults[place] = true
		}
		switch {
		case fault == "" || fault.Happens():
			steps = steps[1:]
		case fault.Rule().Permanent:
			down[place.Tool] = true
		}
	}
	return faults, len(steps) == 0
}

// Timeout is the error of a call that happened but whose answer is lost.
func Timeout(tool assay.Tool) assay.ToolError {
	isTimeout := func(e assay.ToolError) bool { return e.Code == timeout }
	for _, errors := range [][]assay.ToolError{tool.Errors, FallbackErrors} {
		if i := slices.IndexFunc(errors, isTimeout); i >= 0 {
			return errors[i]
		}
	}
	panic("spec: there is no error " + timeout)
}

const timeout = "TIMEOUT"

// Seconds is how long a slow call takes, or one that times out.
func Seconds(luck Luck) int { return 10 + luck.Pick(1, 51) }

// WrongShape damages a result in JSON. An object loses the member whose number luck picks among the
// sorted names. An array and a text lose the second half. Anything else becomes null.
func WrongShape(output string, luck Luck) string {
	var members map[string]json.RawMessage
	var elements []json.RawMessage
	var text string
	var damaged any
	switch raw := []byte(output); {
	case json.Unmarshal(raw, &members) == nil && len(members) > 0:
		names := slices.Sorted(maps.Keys(members))
		delete(members, names[luck.Pick(1, len(names))])
		damaged = members
	case json.Unmarshal(raw, &elements) == nil && len(elements) > 0:
		damaged = elements[:len(elements)/2]
	case json.Unmarshal(raw, &text) == nil && text != "":
		damaged = string([]rune(text)[:utf8.RuneCountInString(text)/2])
	}
	return encode(damaged)
}
