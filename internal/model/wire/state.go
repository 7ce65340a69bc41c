package wire

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/assay-eval/assay"
)

// State returns the state of a reply, which only goes back to this endpoint. It returns nil if data
// is not valid JSON without its secrets.
func (c *Caller) State(data json.RawMessage) *assay.State {
	if data = c.CleanJSON(data); data == nil {
		return nil
	}
	return &assay.State{Origin: c.Origin(), Data: data}
}

// CleanJSON is [Caller.Clean] for a JSON document, whose escapes may hide a secret. It returns nil
// if doc is not valid JSON without its secrets.
func (c *Caller) CleanJSON(doc json.RawMessage) json.RawMessage {
	clean := []byte(doc)
	if bytes.Contains(doc, []byte(`\u`)) {
		var v any
		dec := json.NewDecoder(bytes.NewReader(doc))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return nil
		}
		plain, err := Marshal(v)
		if text := c.Clean(string(plain)); err == nil && text != string(plain) {
			clean = []byte(text)
		}
	} else {
		clean = []byte(c.Clean(string(doc)))
	}
	if !json.Valid(clean) {
		return nil
	}
	return clean
}

// StateOf returns the data that this endpoint wants back with m, or nil.
func (c *Caller) StateOf(m *assay.Message) json.RawMessage {
	if m.State == nil || m.State.Origin != c.Origin() {
		return nil
	}
	return m.State.Data
}

// Deviations names the differences between req and what is sent: the omitted settings, and states
// of other endpoints.
func (c *Caller) Deviations(req *assay.Request, omitted []string) []string {
	var names []string
	for _, name := range omitted {
		names = append(names, "no "+name)
	}
	origin := c.Origin()
	foreign := func(m assay.Message) bool { return m.State != nil && m.State.Origin != origin }
	if slices.ContainsFunc(req.Messages, foreign) {
		names = append(names, "no thinking of earlier turns")
	}
	return names
}

// Count returns a number of tokens. Some endpoints send fractions, and odd ones negative numbers.
func Count(n float64) int {
	if !(n > 0) {
		return 0
	}
	return int(min(n, math.MaxInt32))
}
