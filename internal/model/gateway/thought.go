package gateway

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/assay-eval/assay"
)

// The styles of [Config.Thinking]: where chat completions carry the thoughts of a model. Any style
// makes the models of the other protocols think too, in the protocol's own way.
const (
	// ThinkingNone means that the models do not think.
	ThinkingNone = "none"
	// ThinkingContent puts thoughts into reasoning_content, as DeepSeek does.
	ThinkingContent = "reasoning_content"
	// ThinkingDetails puts thoughts into reasoning_details, as OpenRouter does.
	ThinkingDetails = "reasoning_details"
	// ThinkingParts puts thoughts into a part of the content, as Mistral does.
	ThinkingParts = "content_parts"
	// ThinkingSignature signs the first call of a reply, as Gemini does.
	ThinkingSignature = "thought_signature"
)

// ThinkingStyles lists the values of [Config.Thinking].
func ThinkingStyles() []string {
	return []string{
		ThinkingNone, ThinkingContent, ThinkingDetails, ThinkingParts, ThinkingSignature,
	}
}

// A thought is the state of a thinking model's reply: an opaque text that is valid only with the
// calls of that reply.
type Thought string

// think returns the thought of a reply to the request with that hash.
func Think(hash uint64, calls []assay.ToolCall) Thought {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x", hash)
	for _, c := range calls {
		fmt.Fprintf(h, " %q", c.ID)
	}
	return Thought(fmt.Sprintf("%016x%016x", hash, h.Sum64()))
}

// fits reports whether a thought came with these calls.
func (t Thought) fits(calls []assay.ToolCall) bool {
	var hash uint64
	_, err := fmt.Sscanf(string(t[:min(16, len(t))]), "%016x", &hash)
	return err == nil && Think(hash, calls) == t
}

const thinking = "I look at what is there and decide on the next step. "

// Text returns the readable form of a thought, which contains all of it.
func (t Thought) Text() string { return thinking + string(t) }

// ThoughtIn returns the thought in a text, or one that never fits.
func ThoughtIn(text string) Thought { return Thought(strings.TrimPrefix(text, thinking)) }

// State returns a thought as the state of a message.
func (t Thought) State() *assay.State {
	if t == "" {
		return nil
	}
	return &assay.State{Data: Encode(t)}
}

// thoughtOf returns the thought of a message, or "".
func thoughtOf(m *assay.Message) (t Thought) {
	if m.State != nil {
		_ = json.Unmarshal(m.State.Data, &t)
	}
	return t
}

// CheckThoughts refuses a conversation in which a reply with calls has lost its thought or has a
// different one. It removes the thoughts, which are not the provider's.
func CheckThoughts(messages []assay.Message, d Dialect) *Refusal {
	for i := range messages {
		m := &messages[i]
		t := thoughtOf(m)
		m.State = nil
		if len(m.Calls) == 0 || t != "" && t.fits(m.Calls) {
			continue
		}
		if m.Role == assay.Assistant {
			return d.Forgotten(i, t != "")
		}
	}
	return nil
}
