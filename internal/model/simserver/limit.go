package simserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A Limit bounds what one key may ask of one deployment. A field that is 0
// sets no bound.
type Limit struct {
	// Model is whose deployments the limit is for, or one deployment, such as
	// sim/optimal-2; "" for all.
	Model string
	// RPM bounds the requests that are let through in any 60 seconds, RPD in
	// any 24 hours.
	RPM, RPD int
	// TPM bounds their tokens in any 60 seconds, ITPM those of the prompts and
	// OTPM those of the replies. Until a request is done it counts with an
	// estimate of its prompt and with its max_tokens, or 256 without.
	TPM, ITPM, OTPM int
	// Concurrency bounds the requests in flight.
	Concurrency int
}

func limitNames() []string { return []string{"rpm", "rpd", "tpm", "itpm", "otpm", "concurrency"} }

// ParseLimit reads "rpm=600,tpm=200000,concurrency=5", with a model and a
// colon before it for a limit of that model alone.
func ParseLimit(s string) (Limit, error) {
	var l Limit
	settings := s
	if i := strings.LastIndexByte(s, ':'); i >= 0 {
		if l.Model, settings = s[:i], s[i+1:]; l.Model == "" {
			return Limit{}, fmt.Errorf("limit %q: no model before the colon", s)
		}
	}
	fields := map[string]*int{
		"rpm": &l.RPM, "rpd": &l.RPD,
		"tpm": &l.TPM, "itpm": &l.ITPM, "otpm": &l.OTPM,
		"concurrency": &l.Concurrency,
	}
	for setting := range strings.SplitSeq(settings, ",") {
		name, value, ok := strings.Cut(setting, "=")
		name = strings.TrimSpace(name)
		if !ok {
			return Limit{}, fmt.Errorf("limit %q: %q has no value\nhint: limits look like rpm=600,tpm=200000,concurrency=5", s, setting)
		}
		field, ok := fields[name]
		if !slices.Contains(limitNames(), name) {
			return Limit{}, fmt.Errorf("limit %q: %w", s, unknown("name", name, limitNames()))
		}
		if !ok {
			return Limit{}, fmt.Errorf("limit %q: %s is set twice", s, name)
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 1 {
			return Limit{}, fmt.Errorf("limit %q: %s is %q, not a whole number above 0", s, name, value)
		}
		*field = n
		delete(fields, name)
	}
	return l, nil
}

func (l Limit) check() error {
	if min(l.RPM, l.RPD, l.TPM, l.ITPM, l.OTPM, l.Concurrency) < 0 {
		return fmt.Errorf("a limit below 0: %+v", l)
	}
	return nil
}
