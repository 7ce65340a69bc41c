package wire

import (
	"slices"
	"sync/atomic"

	"github.com/assay-eval/assay"
)

// ParamSet is a set of parameters, or forms, that a request can do without. Protocols have bits of
// their own beside these.
type ParamSet uint32

// Temperature and TopP are those of [Sampling]. OwnParam is the first bit for a protocol's own.
const (
	Temperature ParamSet = 1 << iota
	TopP
	OwnParam
)

// A Param is a parameter and its name.
type Param struct {
	Set  ParamSet
	Name string
}

// Sampling holds the parameters that have the same names in several protocols.
type Sampling struct {
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
}

// Set sets the parameters of s that are not in unsent. It returns those that it set.
func (w *Sampling) Set(s assay.Sampling, unsent ParamSet) (sent ParamSet) {
	if s.Temperature != nil && unsent&Temperature == 0 {
		w.Temperature = s.Temperature
		sent |= Temperature
	}
	if s.TopP != nil && unsent&TopP == 0 {
		w.TopP = s.TopP
		sent |= TopP
	}
	return sent
}

// Refused returns the one of params that e refuses by name, or 0.
func (e *APIError) Refused(params []Param) ParamSet {
	names := make([]string, len(params))
	for i, p := range params {
		names[i] = p.Name
	}
	if i := slices.Index(names, e.refuses(names...)); i >= 0 {
		return params[i].Set
	}
	return 0
}

// Learned is the [ParamSet] that an endpoint has refused so far.
type Learned struct{ set atomic.Uint32 }

// Get returns the set.
func (l *Learned) Get() ParamSet { return ParamSet(l.set.Load()) }

// Chat calls exchange, which sends a request without the parameters in unsent and returns the
// parameter that the endpoint refused, or 0. Chat then repeats the request without it and, if that
// works, remembers the refusal. So this happens once per parameter.
func (l *Learned) Chat(
	exchange func(unsent ParamSet) (*assay.Response, ParamSet, error),
) (*assay.Response, error) {
	var newly ParamSet
	for {
		resp, refused, err := exchange(l.Get() | newly)
		if refused == 0 {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest {
				l.set.Or(uint32(newly))
			}
			return resp, err
		}
		newly |= refused
	}
}
