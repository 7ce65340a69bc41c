package responses

import (
	"errors"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// paramSet is a set of parameters that a request can do without.
type paramSet uint32

const (
	temperature paramSet = 1 << iota
	topP
	// include asks for encrypted reasoning. Models that do not reason refuse it.
	include
)

// refusedParam returns the parameter that the endpoint refused by name, or 0.
func refusedParam(err error) paramSet {
	e := new(wire.APIError)
	if !errors.As(err, &e) {
		return 0
	}
	switch e.Refuses("temperature", "top_p", "include") {
	case "temperature":
		return temperature
	case "top_p":
		return topP
	case "include":
		return include
	}
	return 0
}

// omitted returns the names of the settings in s that are not sent.
func omitted(s assay.Sampling, unsent paramSet) []string {
	var names []string
	for _, setting := range []struct {
		name  string
		unset bool
	}{
		{"temperature", s.Temperature != nil && unsent&temperature != 0},
		{"top_p", s.TopP != nil && unsent&topP != 0},
		{"seed", s.Seed != nil},
		{"thinking", s.Thinking != nil},
	} {
		if setting.unset {
			names = append(names, setting.name)
		}
	}
	return names
}
