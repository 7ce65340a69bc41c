package responses

import (
	"errors"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// include asks for encrypted reasoning. Models that do not reason refuse it.
const include = wire.OwnParam

// params lists the parameters in the order in which messages are searched for them.
var params = []wire.Param{
	{Set: wire.Temperature, Name: "temperature"},
	{Set: wire.TopP, Name: "top_p"},
	{Set: include, Name: "include"},
}

// refusedParam returns the parameter that the endpoint refused by name, or 0.
func refusedParam(err error) wire.ParamSet {
	e := new(wire.APIError)
	if !errors.As(err, &e) {
		return 0
	}
	return e.Refused(params)
}

// omitted returns the names of the settings in s that are not sent.
func omitted(s assay.Sampling, unsent wire.ParamSet) []string {
	var names []string
	for _, setting := range []struct {
		name  string
		unset bool
	}{
		{"temperature", s.Temperature != nil && unsent&wire.Temperature != 0},
		{"top_p", s.TopP != nil && unsent&wire.TopP != 0},
		{"seed", s.Seed != nil},
		{"thinking", s.Thinking != nil},
	} {
		if setting.unset {
			names = append(names, setting.name)
		}
	}
	return names
}
