package openai

import (
	"encoding/json"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// thoughts are the fields of an assistant's message that hold its thinking. Endpoints have
// different ones: reasoning_content is DeepSeek's, Kimi's, Qwen's and GLM's, reasoning is newer
// vLLM's, and reasoning_details is OpenRouter's. The JSON is kept as it came.
type thoughts struct {
	Content json.RawMessage `json:"reasoning_content,omitempty"`
	Plain   json.RawMessage `json:"reasoning,omitempty"`
	Details json.RawMessage `json:"reasoning_details,omitempty"`
}

// state is the JSON of an [assay.State]: the parts of a message that go back with it.
type state struct {
	thoughts
	// Extra holds the extra_content of each call, or null. Gemini signs calls there.
	Extra []json.RawMessage `json:"calls,omitempty"`
	// Parts is a content with thinking, as Mistral's are. It goes back in place of the text.
	Parts json.RawMessage `json:"content,omitempty"`
}

// newState returns the state that has to go back with a message, or nil. parts are its content if
// that has thinking. Without a call, only reasoning_details and parts go back: no endpoint wants
// the other fields then, and some refuse them. An empty reasoning_content goes back too.
func newState(p *wire.Provider, m *reply, parts json.RawMessage) *assay.State {
	s := state{thoughts: thoughts{Details: present(m.thoughts.Details)}, Parts: parts}
	if len(m.Calls) > 0 && s.Details == nil {
		s.Content, s.Plain = present(m.thoughts.Content), present(m.thoughts.Plain)
	}
	signed := false
	for i := range m.Calls {
		s.Extra = append(s.Extra, present(m.Calls[i].Extra))
		signed = signed || s.Extra[i] != nil
	}
	if !signed {
		s.Extra = nil
	}
	if s.Content == nil && s.Plain == nil && s.Details == nil && s.Parts == nil && !signed {
		return nil
	}
	return p.State(wire.Encode(&s))
}

// present returns raw, or nil if it is null.
func present(raw json.RawMessage) json.RawMessage {
	if string(raw) == "null" {
		return nil
	}
	return raw
}

// restore adds the state that this endpoint wants back. It returns the parameter that stands for
// it, or 0 without a state. It leaves out the parameters in unsent.
func restore(
	w *message, data json.RawMessage, unsent wire.ParamSet,
) (sent wire.ParamSet) {
	var s state
	if data == nil || json.Unmarshal(data, &s) != nil {
		return 0
	}
	for i := range w.Calls {
		if i < len(s.Extra) {
			w.Calls[i].Extra = present(s.Extra[i])
		}
	}
	if unsent&reasoning != 0 {
		return 0
	}
	w.thoughts = s.thoughts
	if s.Parts != nil {
		w.Content = s.Parts
	}
	return reasoning
}

// text returns the thinking for people to read.
func (t *thoughts) text() string {
	for _, raw := range []json.RawMessage{t.Content, t.Plain} {
		var s string
		if len(raw) > 0 && json.Unmarshal(raw, &s) == nil && s != "" {
			return s
		}
	}
	if len(t.Details) == 0 {
		return ""
	}
	var details []struct {
		Text    string `json:"text"`
		Summary string `json:"summary"`
	}
	_ = json.Unmarshal(t.Details, &details) // if they are odd, they are ignored
	var b strings.Builder
	for _, d := range details {
		b.WriteString(d.Summary + d.Text)
	}
	return b.String()
}
