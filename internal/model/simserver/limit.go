package simserver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limit limits the requests of one key to one deployment. A field that is 0 sets
// no limit.
type Limit struct {
	// Model selects all deployments of a model, or one deployment such as
	// sim/optimal-2. "" selects all models.
	Model string
	// RPM limits the requests admitted in any 60 seconds, and RPD those in any 24
	// hours.
	RPM, RPD int
	// TPM limits the tokens in any 60 seconds, ITPM those of prompts and OTPM those
	// of replies. Until a request is done, it counts with an estimate of its prompt
	// and with its max_tokens, or 256 without one.
	TPM, ITPM, OTPM int
	// Concurrency limits the requests in flight.
	Concurrency int
}

func limitNames() []string {
	return []string{"rpm", "rpd", "tpm", "itpm", "otpm", "concurrency"}
}

// ParseLimit parses a limit such as "rpm=600,tpm=200000,concurrency=5". A model
// and a colon before it restrict the limit to that model.
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
			return Limit{}, fmt.Errorf("limit %q: %q has no value\n"+
				"hint: limits look like rpm=600,tpm=200000,concurrency=5", s, setting)
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
			return Limit{}, fmt.Errorf(
				"limit %q: %s is %q, not a whole number above 0", s, name, value)
		}
		*field = n
		delete(fields, name)
	}
	return l, nil
}

func (l Limit) check() error {
	if min(l.RPM, l.RPD, l.TPM, l.ITPM, l.OTPM, l.Concurrency) < 0 {
		return fmt.Errorf("limits must not be negative: %+v", l)
	}
	return nil
}
