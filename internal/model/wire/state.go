package wire

import (
	"bytes"
	"encoding/json"

	"github.com/assay-eval/assay"
)

// State returns the state of a reply, which only goes back to this endpoint. It returns nil if data
// is not valid JSON without its secrets.
func (p *Provider) State(data json.RawMessage) *assay.State {
	if data = p.CleanJSON(data); data == nil {
		return nil
	}
	return &assay.State{Origin: p.Origin(), Data: data}
}

// CleanJSON is [Provider.Clean] for a JSON document, whose escapes may hide a secret. It returns
// nil if doc is not valid JSON without its secrets.
func (p *Provider) CleanJSON(doc json.RawMessage) json.RawMessage {
	clean := []byte(doc)
	if bytes.Contains(doc, []byte(`\u`)) {
		var v any
		dec := json.NewDecoder(bytes.NewReader(doc))
		dec.UseNumber()
		if dec.Decode(&v) != nil {
			return nil
		}
		plain, err := Marshal(v)
		if text := p.Clean(string(plain)); err == nil && text != string(plain) {
			clean = []byte(text)
		}
	} else {
		clean = []byte(p.Clean(string(doc)))
	}
	if !json.Valid(clean) {
		return nil
	}
	return clean
}

// CleanArguments is [Provider.Clean] for the arguments of a call. If they are JSON, their escapes
// cannot hide a secret either.
func (p *Provider) CleanArguments(text string) string {
	if clean := p.CleanJSON(json.RawMessage(text)); clean != nil {
		return string(clean)
	}
	return p.Clean(text)
}

// StateOf returns the data that this endpoint wants back with m, or nil.
func (p *Provider) StateOf(m *assay.Message) json.RawMessage {
	if m.State == nil || m.State.Origin != p.Origin() {
		return nil
	}
	return m.State.Data
}
