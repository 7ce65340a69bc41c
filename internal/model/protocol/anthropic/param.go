package anthropic

import (
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

const (
	adaptive = wire.OwnParam << iota
	caching
)

// params lists the parameters in the order in which messages are searched for them.
var params = []wire.Param{
	{Set: wire.Temperature, Name: "temperature"},
	{Set: wire.TopP, Name: "top_p"},
	{Set: caching, Name: "cache_control"},
}

// refused returns the part that the endpoint refused in its own words, or 0.
func refused(e *wire.APIError, sent wire.ParamSet) wire.ParamSet {
	switch {
	case strings.Contains(e.Message, "cannot both be specified"): // temperature and top_p
		return wire.TopP & sent
	case strings.Contains(e.Message, "adaptive thinking is not supported"):
		return adaptive & sent
	}
	return 0
}

// omitted lists further settings that are not sent.
func omitted(s assay.Sampling, sent wire.ParamSet) []wire.Setting {
	return []wire.Setting{
		{Name: "adaptive thinking", Unset: thinksFreely(s) && sent&adaptive == 0},
		{Name: "seed", Unset: s.Seed != nil},
	}
}

// thinksFreely reports whether the model decides how much it thinks, at some effort.
func thinksFreely(s assay.Sampling) bool { return s.Effort != "" && s.Thinking == nil }

// thinks reports whether s asks for thinking.
func thinks(s assay.Sampling) bool {
	return thinksFreely(s) || s.Thinking != nil && *s.Thinking > 0
}
