package gateway

import (
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
)

// Identify gives calls and results without an ID one. Some frameworks leave it out, or send it with
// the call alone. A result belongs to the only call that waits for one, or to the only one of its
// tool. names are the tools of results by the index of the message, as far as they are known. If
// ordered is true, results of the same tool are in the order of the calls.
func Identify(messages []assay.Message, names map[int]string, ordered bool) *Refusal {
	var waiting []assay.ToolCall
	for i := range messages {
		m := &messages[i]
		if m.Role != assay.ToolRole {
			waiting = identifyCalls(m.Calls, i)
			continue
		}
		if m.CallID == "" {
			fits := fitting(waiting, names[i])
			if len(fits) == 0 || len(fits) > 1 && !(ordered && names[i] != "") {
				return BadRequest("messages", "The result in 'messages[%d]' has no ID, and %d calls "+
					"wait for a result. Send the ID of the call with it.", i, len(fits))
			}
			m.CallID = fits[0].ID
		}
		waiting = slices.DeleteFunc(waiting, func(c assay.ToolCall) bool { return c.ID == m.CallID })
	}
	return nil
}

// identifyCalls gives the calls of message i IDs, and returns them.
func identifyCalls(calls []assay.ToolCall, i int) []assay.ToolCall {
	for k := range calls {
		if calls[k].ID == "" {
			calls[k].ID = fmt.Sprintf("call_%d_%d", i, k)
		}
	}
	return slices.Clone(calls)
}

// fitting returns the calls of a tool, or all of them if the tool is "".
func fitting(calls []assay.ToolCall, tool string) (fits []assay.ToolCall) {
	for _, c := range calls {
		if tool == "" || c.Name == tool {
			fits = append(fits, c)
		}
	}
	return fits
}
