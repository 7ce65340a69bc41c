package wire

import (
	"slices"

	"github.com/assay-eval/assay"
)

// ParamSet is a set of parameters, or forms, that a request can do without. Protocols have their
// own bits beside these.
type ParamSet uint32

// Temperature and TopP name fields of [Sampling]. OwnParam is the first bit for a protocol's own.
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

// Set sets the parameters of s that are not in unsent. It returns the parameters that it set.
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

// A Setting is a setting by its name in messages, and whether it is left out of a request.
type Setting struct {
	Name  string
	Unset bool
}

// omitted returns the names of the settings in s that were not sent.
func (p *Provider) omitted(s assay.Sampling, sent ParamSet) (names []string) {
	settings := []Setting{
		{"temperature", s.Temperature != nil && sent&Temperature == 0},
		{"top_p", s.TopP != nil && sent&TopP == 0},
	}
	if p.protocol.Omitted != nil {
		settings = append(settings, p.protocol.Omitted(s, sent)...)
	}
	for _, s := range settings {
		if s.Unset {
			names = append(names, s.Name)
		}
	}
	return names
}

// deviations names the differences between req and the request that was sent: omitted settings,
// states of other endpoints, and the protocol's adaptations.
func (p *Provider) deviations(req *assay.Request, sent, unsent ParamSet) (names []string) {
	for _, name := range p.omitted(req.Sampling, sent) {
		names = append(names, "no "+name)
	}
	origin := p.Origin()
	foreign := func(m assay.Message) bool { return m.State != nil && m.State.Origin != origin }
	if slices.ContainsFunc(req.Messages, foreign) {
		names = append(names, "no thinking of earlier turns")
	}
	if p.protocol.Adapted != nil {
		names = append(names, p.protocol.Adapted(req, sent, unsent)...)
	}
	return names
}
