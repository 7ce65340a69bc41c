package query_test

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/query"
)

func TestTextShowsHowRepliesEnded(t *testing.T) {
	t.Parallel()
	var a assay.Attempt
	a.Sampling.Effort = "high"
	a.Add(&assay.Response{
		ServedModel: "m-0301", Lane: "p/key/m", Finish: "length",
		Usage: assay.Usage{
			InputTokens: 900, OutputTokens: 80, CachedTokens: 700, CacheWriteTokens: 100,
			ReasoningTokens: 60,
		},
		Deviations: []string{"no temperature"}, Reported: map[string]string{"effort": "medium"},
	})
	transcript := &assay.Transcript{Messages: []assay.Message{
		{Role: assay.User, Content: "the task"},
		{Role: assay.Assistant, Content: "one", Reasoning: "I think", State: &assay.State{}},
		{Role: assay.Assistant, Content: "two", State: &assay.State{}},
	}}
	text := string((&query.Trial{Attempt: a, Transcript: transcript}).Text(nil, nil, nil))
	for _, want := range []string{
		"900 + 80 tokens (700 cached, 100 written to the cache, 60 of thinking)",
		"replies ended with: length (1 cut off for length)",
		"does not accept everything that was asked: no temperature",
		"reported that it used: effort=medium",
		"warning: the endpoint used effort medium instead of high",
		"    (thinking) I think\n  one\n",
		"    (thinking that only the endpoint can read)\n  two\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
