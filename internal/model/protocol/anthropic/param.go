package anthropic

import (
	"errors"
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

// refusedParam returns the parameter that the endpoint refused by name, or 0.
func refusedParam(err error) wire.ParamSet {
	e := new(wire.APIError)
	if !errors.As(err, &e) {
		return 0
	}
	switch {
	case strings.Contains(e.Message, "cannot both be specified"): // temperature and top_p
		return wire.TopP
	case strings.Contains(e.Message, "adaptive thinking is not supported"):
		return adaptive
	}
	return e.Refused(params)
}

// omitted returns the names of the settings in s that were not sent.
func omitted(s assay.Sampling, sent wire.ParamSet) []string {
	var names []string
	for _, setting := range []struct {
		name  string
		unset bool
	}{
		{"temperature", s.Temperature != nil && sent&wire.Temperature == 0},
		{"top_p", s.TopP != nil && sent&wire.TopP == 0},
		{"adaptive thinking", thinksFreely(s) && sent&adaptive == 0},
		{"seed", s.Seed != nil},
	} {
		if setting.unset {
			names = append(names, setting.name)
		}
	}
	return names
}

// thinksFreely reports whether the model decides how much it thinks, at some effort.
func thinksFreely(s assay.Sampling) bool { return s.Effort != "" && s.Thinking == nil }

// thinks reports whether s asks for thinking.
func thinks(s assay.Sampling) bool {
	return thinksFreely(s) || s.Thinking != nil && *s.Thinking > 0
}
