package wire

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Marshal is [json.Marshal] without the escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// Encode returns the JSON of a value that can always be encoded.
func Encode(v any) json.RawMessage {
	text, err := Marshal(v)
	if err != nil {
		panic("wire: encode: " + err.Error())
	}
	return text
}

// Extend adds the fields of extra, which is a JSON object or empty, to the end of another object.
// Objects that both have are joined, and of other fields that both have, extra wins.
func Extend(object []byte, extra string) []byte {
	if extra == "" {
		return object
	}
	var own, more map[string]json.RawMessage
	if json.Unmarshal(object, &own) != nil || json.Unmarshal([]byte(extra), &more) != nil ||
		len(own) == 0 || more == nil {
		return []byte(extra)
	}
	shared := false
	for name, value := range more {
		shared = shared || own[name] != nil
		own[name] = Extend(own[name], string(value))
	}
	switch {
	case len(more) == 0:
		return object
	case !shared: // the order of the fields stays
		object = append(bytes.TrimSuffix(object, []byte("}")), ',')
		return append(object, strings.TrimPrefix(strings.TrimSpace(extra), "{")...)
	}
	return Encode(own)
}

// EmptyReply stands for a model's message without text or call, because endpoints refuse one that
// has neither.
const EmptyReply = "(empty reply)"

// SendableName returns a name that satisfies every protocol's rule for function names.
//
// A model may write any text as the name and arguments of a call, but many endpoints refuse a
// conversation in which they are not well formed. That would turn the model's mistake into a fault
// of the request, so invalid names and arguments are replaced. The answer to the call still reports
// the mistake, and the transcript keeps the original.
func SendableName(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "unnamed"
	}
	return name[:min(len(name), 64)]
}

// SendableArguments returns text if it is a JSON object, and an empty object otherwise. See
// [SendableName].
func SendableArguments(text string) string {
	doc := []byte(text)
	if !json.Valid(doc) || bytes.TrimLeft(doc, " \t\r\n")[0] != '{' {
		return "{}"
	}
	return text
}
