package episode

import (
	"testing"

	"github.com/assay-eval/assay"
)

// A reply that comes back with the next request is the same message if only the text of its
// arguments differs. It is another one if a value does.
func TestReplyThatWasWrittenAnewIsShownOnce(t *testing.T) {
	t.Parallel()
	reply := func(arguments string) *assay.Message {
		return &assay.Message{Role: assay.Assistant, Calls: []assay.ToolCall{
			{ID: "call_1", Name: "add", Arguments: arguments},
		}}
	}
	said := hashOf(reply(`{"n":1.0,"list":["a","<b>"]}`))
	for arguments, same := range map[string]bool{
		`{"list": ["a", "\u003cb\u003e"], "n": 1}`: true,
		`{"list": ["a", "<b>"], "n": 2}`:           false,
		`{"list": ["<b>", "a"], "n": 1}`:           false,
	} {
		if is := hashOf(reply(arguments)) == said; is != same {
			t.Errorf("%s: the same %v, want %v", arguments, is, same)
		}
	}
}
