package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// An ending is the meaning of a finish reason.
type ending struct {
	// fault is the kind of fault if the reply is not the model's own doing.
	fault assay.FaultKind
	// mayBeEmpty is true if the model can end so without a text or a call.
	mayBeEmpty bool
}

var (
	complete  = ending{}
	cutOff    = ending{mayBeEmpty: true} // for length; see [assay.Truncated]
	badCall   = ending{mayBeEmpty: true} // the endpoint could not parse the model's call
	declined  = ending{mayBeEmpty: true} // by the model
	filtered  = ending{fault: assay.ContentFilter}
	failed    = ending{fault: assay.Server}
	exhausted = ending{fault: assay.Overloaded}
)

// endings lists the finish reasons of all protocols, in lower case and with underscores. An
// unknown reason is a fault until it is listed here, because it may mean that the endpoint failed.
var endings = map[string]ending{
	"":              complete, // many gateways leave it out
	"null":          complete,
	"stop":          complete,
	"stop_sequence": complete,
	"end":           complete,
	"end_turn":      complete,
	"eos":           complete,
	"eos_token":     complete,
	"complete":      complete,
	"completed":     complete,
	"function_call": complete,
	"tool_call":     complete,
	"tool_calls":    complete,
	"tool_use":      complete,

	"malformed_function_call":    badCall, // Gemini
	"malformed_response":         badCall,
	"unexpected_tool_call":       badCall,
	"too_many_tool_calls":        badCall,
	"malformed_tool_use":         badCall, // Bedrock
	"malformed_model_output":     badCall,
	"tool_use_failed":            badCall, // Groq
	"tool_call_validation_error": badCall,

	"refusal": declined,

	"content_filter":       filtered,
	"content_filtered":     filtered, // Bedrock
	"guardrail_intervened": filtered,
	"sensitive":            filtered, // Zhipu
	"error_toxic":          filtered, // Cohere
	"safety":               filtered, // Gemini
	"image_safety":         filtered,
	"recitation":           filtered,
	"blocklist":            filtered,
	"prohibited_content":   filtered,
	"spii":                 filtered,
	"model_armor":          filtered,

	"abort":                     failed, // SGLang, vLLM
	"aborted":                   failed,
	"cancelled":                 failed,
	"error":                     failed, // OpenRouter
	"failed":                    failed,
	"error_limit":               failed,
	"timeout":                   failed,
	"user_cancel":               failed,
	"network_error":             failed, // Zhipu
	"other":                     failed, // Gemini
	"missing_thought_signature": failed,

	"insufficient_system_resource": exhausted, // DeepSeek
}

// endingOf looks a finish reason up. Gemini's OpenAI-compatible address sends reasons such as
// "function_call_filter: MALFORMED_FUNCTION_CALL", of which the last part counts.
func endingOf(reason string) (ending, bool) {
	reason = reason[strings.LastIndexByte(reason, ':')+1:]
	reason = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(reason)), "-", "_")
	if assay.Truncated(reason) {
		return cutOff, true
	}
	e, known := endings[reason]
	return e, known
}

// FinishFault returns a fault if a reply must not be judged: if its finish reason means that the
// endpoint failed, if the reason is unknown, if the reply is empty although the model did not
// spend a token on it, or if it breaks off without a reason. Otherwise it returns nil.
func (p *Provider) FinishFault(reason string, m *assay.Message, u assay.Usage) *assay.Fault {
	e, known := endingOf(reason)
	empty := strings.TrimSpace(m.Content) == "" && len(m.Calls) == 0
	f := &assay.Fault{Status: http.StatusOK}
	switch {
	case !known:
		f.Kind = assay.Malformed
		f.Detail = p.Detail(fmt.Sprintf("the reply ended for the unknown reason %q", reason),
			", so it may be incomplete; please report it, so that Assay learns what it means")
	case e.fault == assay.ContentFilter:
		f.Kind, f.Detail = e.fault, "the endpoint's filter cut the reply off"
	case e.fault != "":
		f.Kind = e.fault
		f.Detail = p.Detail(fmt.Sprintf("the endpoint ended the reply with %q", reason), "")
	case empty && !e.mayBeEmpty && u.OutputTokens == 0:
		return Malformed("empty reply")
	case reason == "" && slices.ContainsFunc(m.Calls, breaksOff):
		return Malformed("the reply breaks off within a call")
	default:
		return nil
	}
	return f
}

// breaksOff reports whether the arguments of a call are the start of a JSON object.
func breaksOff(call assay.ToolCall) bool {
	text := strings.TrimSpace(call.Arguments)
	var args json.RawMessage
	err := json.NewDecoder(strings.NewReader(text)).Decode(&args)
	return strings.HasPrefix(text, "{") && errors.Is(err, io.ErrUnexpectedEOF)
}
