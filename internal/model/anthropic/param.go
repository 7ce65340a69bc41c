package anthropic

import (
	"errors"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// paramSet is a set of parameters that a request can do without.
type paramSet uint32

const (
	temperature paramSet = 1 << iota
	topP
	adaptive
	caching
)

// refusedParam returns the parameter that the endpoint refused by name, or 0.
func refusedParam(err error) paramSet {
	e := new(wire.APIError)
	if !errors.As(err, &e) {
		return 0
	}
	switch {
	case strings.Contains(e.Message, "cannot both be specified"): // temperature and top_p
		return topP
	case strings.Contains(e.Message, "adaptive thinking is not supported"):
		return adaptive
	}
	switch e.Refuses("temperature", "top_p", "cache_control") {
	case "temperature":
		return temperature
	case "top_p":
		return topP
	case "cache_control":
		return caching
	}
	return 0
}

// omitted returns the names of the settings in s that were not sent.
func omitted(s assay.Sampling, sent paramSet) []string {
	var names []string
	for _, setting := range []struct {
		name  string
		unset bool
	}{
		{"temperature", s.Temperature != nil && sent&temperature == 0},
		{"top_p", s.TopP != nil && sent&topP == 0},
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
