package spec

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/assay-eval/assay"
)

// Answer completes the record of a call, which may have met a fault, by the answer to the model.
// Output is the tool's answer if the call happened, old is the tool's latest answer, and chance
// picks the error of a call that does not happen.
func Answer(
	rec *assay.CallRecord, tool assay.Tool, fault assay.ToolFault, luck Luck, output, old string,
	chance func() assay.ToolError,
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
	}
	if rec.OK = rec.Code == ""; rec.OK {
		rec.Output = output
	}
}

// Scheduled returns the faults that an agent meets that makes a number of calls, follows the steps
// of a plan and repeats each step until it has happened, and whether it completes the plan. Throw
// returns the fault of the next call of a tool, or "".
func Scheduled(
	calls int, steps []string, throw func(tool string) assay.ToolFault,
) (faults map[Place]bool, survivable bool) {
	faults = make(map[Place]bool)
	spent := make(map[string]int)
	for ; calls > 0 && len(steps) > 0; calls-- {
		place := Place{Tool: steps[0], Number: spent[steps[0]]}
		spent[place.Tool]++
		fault := throw(place.Tool)
		if fault != "" {
			faults[place] = true
		}
		if fault == "" || fault.Happens() {
			steps = steps[1:]
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
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(damaged); err != nil {
		panic("spec: " + err.Error()) // it is made of parts of valid JSON
	}
	return string(bytes.TrimSpace(b.Bytes()))
}
