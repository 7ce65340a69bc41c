package episode

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

func TestConfidenceIn(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]float64{
		"85": .85, " 0\n": 0, "100%": 1, "**90**": .9, "72.5": .725, "Confidence: 85 %": .85, "85/100": .85,
		"I say 85/100.": .85, "I made 3 calls and 2 failed.\n\n70": .7,
		"I am 60 percent sure.": .6, "Confidence: 85": .85, "I made 3 calls.": -1, "Thought 16: I begin again.": -1,
		"": -1, "high": -1, "101": -1, "-5": -1, "between 60 and 70": -1, "60\n70": -1, "1,000": -1, "0.85.1": -1,
	} {
		got := confidenceIn(reply)
		if (got == nil) != (want < 0) || got != nil && *got != want {
			t.Errorf("%q: %v, want %v", reply, got, want)
		}
	}
}

// TestConfidenceInIsShare checks all texts for a share or nothing.
func TestConfidenceInIsShare(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching("[0-9 .,%/*\n-]{0,12}").Draw(t, "reply")
		if got := confidenceIn(text); got != nil && !(*got >= 0 && *got <= 1) {
			t.Fatalf("%q: %v", text, *got)
		}
	})
}

func TestQuestionAfterCalls(t *testing.T) {
	t.Parallel()
	calls := assay.Message{Role: assay.Assistant, Calls: []assay.ToolCall{{ID: "a"}, {ID: "b"}}}
	all := withQuestion([]assay.Message{{Role: assay.User, Content: "x"}, calls})
	if len(all) != 5 || all[2].CallID != "a" || all[3].CallID != "b" || all[4].Content != confidenceQuestion {
		t.Errorf("%+v", all)
	}
	user := []assay.Message{{Role: assay.User, Content: "x"}}
	if all = withQuestion(user); len(all) != 1 || !strings.HasSuffix(all[0].Content, confidenceQuestion) || user[0].Content != "x" {
		t.Errorf("%+v", all)
	}
}
