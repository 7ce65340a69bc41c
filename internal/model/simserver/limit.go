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
	// RPM limits the requests admitted in any 60 seconds, and RPD the requests in any 24 hours.
	RPM, RPD int
	// TPM limits the tokens in any 60 seconds, ITPM the tokens of prompts and OTPM the tokens of
	// replies. Until a request is done, it counts with an estimate of its prompt and with its
	// max_tokens, or 256 without one.
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
	const example = "limits look like rpm=600,tpm=200000,concurrency=5"
	err := eachSetting(settings, limitNames(), example, func(name, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 {
			return fmt.Errorf("%s is %q, not a whole number above 0", name, value)
		}
		*fields[name] = n
		return nil
	})
	if err != nil {
		return Limit{}, fmt.Errorf("limit %q: %w", s, err)
	}
	return l, nil
}

// eachSetting calls set for each setting in a list such as "rpm=600,tpm=200000". A name may occur
// once.
func eachSetting(
	list string, names []string, example string, set func(name, value string) error,
) error {
	seen := make(map[string]bool)
	for setting := range strings.SplitSeq(list, ",") {
		name, value, ok := strings.Cut(setting, "=")
		name = strings.TrimSpace(name)
		switch {
		case !ok:
			return fmt.Errorf("%q has no value\nhint: %s", setting, example)
		case !slices.Contains(names, name):
			return unknown("name", name, names)
		case seen[name]:
			return fmt.Errorf("%s is set twice", name)
		}
		seen[name] = true
		if err := set(name, strings.TrimSpace(value)); err != nil {
			return err
		}
	}
	return nil
}
