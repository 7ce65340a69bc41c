package openai

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// These stand for forms of a request, rather than parameters, that some endpoints refuse.
const (
	// nullContent is an assistant's message without a text. It is sent with an empty one instead.
	nullContent wire.ParamSet = 1 << (31 - iota)
	// systemRole is a system message. Its text goes into the first user message instead.
	systemRole
)

// forms lists the messages with which endpoints refuse a form.
var forms = []struct {
	form    wire.ParamSet
	message *regexp.Regexp
}{
	{systemRole, regexp.MustCompile(`(?i)\b(system|developer)\W*(role|message|prompt|instruction)` +
		`s?\b.{0,60}\b(not|unsupported)\b|(not support|unsupported|not allowed|not permitted)` +
		`.{0,60}\bsystem\b|only.{0,30}\buser\b.{0,10}\bassistant\b.{0,40}(role|allowed|supported)`)},
	{nullContent, regexp.MustCompile(`(?is)content.*(must be a string|valid string|` +
		`expected (a )?string|not be (null|none)|(is|was) (null|none)|got null|null value|` +
		`is (a )?required|required property|of type 'string'|missing)|` +
		`(null|none|missing)\b.{0,40}content`)},
}

// notBoth matches refusals of temperature together with top_p.
var notBoth = regexp.MustCompile(`(?i)\bboth\b|only one|together|simultaneous|mutually exclusive`)

// refused returns the part of a request that the endpoint refused, or 0. sent has the parts of that
// request.
func refused(e *wire.APIError, sent wire.ParamSet) wire.ParamSet {
	const two = wire.Temperature | wire.TopP
	if sent&two == two && notBoth.MatchString(e.Message) &&
		strings.Contains(e.Message, "temperature") && strings.Contains(e.Message, "top_p") {
		return wire.TopP
	}
	if part := e.Refuses(params) & sent; part != 0 {
		return part
	}
	for _, f := range forms {
		if sent&f.form != 0 && f.message.MatchString(e.Message) {
			return f.form
		}
	}
	return 0
}

// adapt changes the messages to forms that are not in unsent. It returns the forms that it left.
func (r *request) adapt(unsent wire.ParamSet) (sent wire.ParamSet) {
	if len(r.Messages) > 0 && r.Messages[0].Role == "system" {
		if unsent&systemRole != 0 {
			r.Messages = withoutSystem(r.Messages)
		} else {
			sent |= systemRole
		}
	}
	for i := range r.Messages {
		switch m := &r.Messages[i]; {
		case m.Content != nil:
		case unsent&nullContent != 0:
			m.Content = ""
		default:
			sent |= nullContent
		}
	}
	return sent
}

// withoutSystem joins the system message at the start with the user's message after it.
func withoutSystem(messages []message) []message {
	first := messages[0]
	first.Role = "user"
	if len(messages) > 1 && messages[1].Role == "user" {
		system, user := first.Content.(string), messages[1].Content.(string)
		first.Content = system + "\n\n" + user
		messages = messages[1:]
	}
	return append([]message{first}, messages[1:]...)
}

// adapted names the differences in form between req and the request that was sent.
func adapted(req *assay.Request, sent, unsent wire.ParamSet) []string {
	var names []string
	if sent&maxCompletionTokens != 0 {
		names = append(names, "max_completion_tokens for max_tokens")
	}
	if unsent&systemRole != 0 && len(req.Messages) > 0 && req.Messages[0].Role == assay.System {
		names = append(names, "system message as part of the user's")
	}
	silent := func(m assay.Message) bool { return m.Content == "" && len(m.Calls) > 0 }
	if unsent&nullContent != 0 && slices.ContainsFunc(req.Messages, silent) {
		names = append(names, "empty content for none")
	}
	thought := func(m assay.Message) bool { return m.State != nil }
	if unsent&reasoning != 0 && slices.ContainsFunc(req.Messages, thought) {
		names = append(names, "no thinking of earlier turns")
	}
	return names
}
