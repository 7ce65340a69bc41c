package openai

import (
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// paramSet is a set of sampling parameters on the wire.
type paramSet uint32

const (
	temperature paramSet = 1 << iota
	topP
	maxTokens
	maxCompletionTokens
	// reasoning stands for the fields of [thoughts].
	reasoning
)

// paramNames lists the parameters in the order in which messages are searched
// for them.
var paramNames = []struct {
	param paramSet
	name  string
}{
	{temperature, "temperature"},
	{topP, "top_p"},
	{maxTokens, "max_tokens"},
	{maxCompletionTokens, "max_completion_tokens"},
	{reasoning, "reasoning_content"},
	{reasoning, "reasoning_details"},
}

// dialect lists the parameters that a family of models refuses.
type dialect struct {
	// prefix is the start of a model's name. It has to end at the end of the name
	// or before a character that is not a letter or digit.
	prefix  string
	refuses paramSet
}

// dialects is searched in order, and the first match applies. A model that
// refuses max_tokens is sent max_completion_tokens instead.
var dialects = []dialect{
	{"gpt-5-chat", maxTokens},
	{"gpt-5", temperature | topP | maxTokens},
	{"o1", temperature | topP | maxTokens},
	{"o3", temperature | topP | maxTokens},
	{"o4", temperature | topP | maxTokens},
}

// dialectOf returns the parameters that a model refuses. It ignores the case of
// the name and a vendor before a slash.
func dialectOf(model string) paramSet {
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

// missing returns the names of the settings in s that were not sent.
func missing(s assay.Sampling, sent paramSet) []string {
	var names []string
	if s.Temperature != nil && sent&temperature == 0 {
		names = append(names, "temperature")
	}
	if s.TopP != nil && sent&topP == 0 {
		names = append(names, "top_p")
	}
	if s.MaxTokens != nil && sent&(maxTokens|maxCompletionTokens) == 0 {
		names = append(names, "max_tokens")
	}
	return names
}

// refusedParam returns the parameter that e refuses by name, or 0.
func refusedParam(e *wire.APIError) paramSet {
	names := make([]string, len(paramNames))
	for i, p := range paramNames {
		names[i] = p.name
	}
	if i := slices.Index(names, e.Refuses(names...)); i >= 0 {
		return paramNames[i].param
	}
	return 0
}
