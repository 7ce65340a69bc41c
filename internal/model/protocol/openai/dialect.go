package openai

import (
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

const (
	maxTokens = wire.OwnParam << iota
	maxCompletionTokens
	// reasoning stands for the fields of [thoughts].
	reasoning
)

// params lists the parameters in the order in which messages are searched for them.
var params = []wire.Param{
	{Set: wire.Temperature, Name: "temperature"},
	{Set: wire.TopP, Name: "top_p"},
	{Set: maxTokens, Name: "max_tokens"},
	{Set: maxCompletionTokens, Name: "max_completion_tokens"},
	{Set: reasoning, Name: "reasoning_content"},
	{Set: reasoning, Name: "reasoning_details"},
}

// dialect lists the parameters that a family of models refuses.
type dialect struct {
	// prefix is the start of a model's name. It has to end at the end of the name
	// or before a character that is not a letter or digit.
	prefix  string
	refuses wire.ParamSet
}

// dialects is searched in order, and the first match applies. A model that
// refuses max_tokens is sent max_completion_tokens instead.
var dialects = []dialect{
	{"gpt-5-chat", maxTokens},
	{"gpt-5", wire.Temperature | wire.TopP | maxTokens},
	{"o1", wire.Temperature | wire.TopP | maxTokens},
	{"o3", wire.Temperature | wire.TopP | maxTokens},
	{"o4", wire.Temperature | wire.TopP | maxTokens},
}

// dialectOf returns the parameters that a model refuses. It ignores the case of
// the name and a vendor before a slash.
func dialectOf(model string) wire.ParamSet {
	name := strings.ToLower(model[strings.LastIndexByte(model, '/')+1:])
	for _, d := range dialects {
		rest, ok := strings.CutPrefix(name, d.prefix)
		if ok && (rest == "" || !isAlphanumeric(rest[0])) {
			return d.refuses
		}
	}
	return 0
}

func isAlphanumeric(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }

// omitted lists further settings that are not sent.
func omitted(s assay.Sampling, sent wire.ParamSet) []wire.Setting {
	return []wire.Setting{{
		Name:  "max_tokens",
		Unset: s.MaxTokens != nil && sent&(maxTokens|maxCompletionTokens) == 0,
	}}
}
