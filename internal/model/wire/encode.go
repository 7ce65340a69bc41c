package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
)

// Marshal is [json.Marshal] without the escapes for HTML.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
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
	joined, err := Marshal(own)
	if err != nil {
		panic("wire: encode decoded JSON: " + err.Error())
	}
	return joined
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
	if !json.Valid(doc) || doc[FirstByte(doc)] != '{' {
		return "{}"
	}
	return text
}

// FunctionCache caches the JSON of functions. A run has few functions and sends all of them with
// every request.
type FunctionCache struct {
	mu   sync.RWMutex
	json map[functionText][]byte // each ends with a comma; guarded by mu
}

// functionText contains everything about a function, so that a changed function
// has another key.
type functionText struct{ name, description, parameters string }

// maxFunctions is the size of a cache. Further functions are encoded each time.
const maxFunctions = 1024

// Body returns a request's body: the fields of doc, which may be a [json.RawMessage], the extra
// ones, further fields in pieces, each of which begins with a comma, and the functions, if there
// are any, between head and tail. The tail begins before the closing brace of the last function.
// entry returns what is encoded for a function, and a cache needs the same entry in every call. The
// JSON of a schema only loses white space: keys keep their order, and numbers their spelling. No
// piece is modified.
func (c *FunctionCache) Body(
	doc any, req *assay.Request, head, tail string, entry func(*assay.Function) any,
	further ...[]byte,
) (*Body, error) {
	object, err := fieldsOf(doc)
	if err != nil {
		return nil, err
	}
	object = Extend(object, req.Sampling.Extra)
	object = object[:len(object)-len("}")]
	before := append([][]byte{object}, further...)
	if len(req.Functions) == 0 {
		return NewBody(append(before, []byte("}"))...), nil
	}
	pieces, err := c.encode(req.Functions, entry)
	if err != nil {
		return nil, err
	}
	last := &pieces[len(pieces)-1]
	*last = (*last)[:len(*last)-len("},")]
	before = append(before, []byte(head))
	return NewBody(slices.Concat(before, pieces, [][]byte{[]byte(tail)})...), nil
}

func fieldsOf(doc any) ([]byte, error) {
	if text, ok := doc.(json.RawMessage); ok {
		return slices.Clone(text), nil
	}
	return Marshal(doc)
}

// encode returns the JSON of functions, each followed by a comma. The pieces are shared and must
// not be modified.
func (c *FunctionCache) encode(
	functions []assay.Function, entry func(*assay.Function) any,
) ([][]byte, error) {
	pieces := make([][]byte, len(functions))
	for i := range functions {
		f := &functions[i]
		if pieces[i] = c.get(f); pieces[i] != nil {
			continue
		}
		text, err := Marshal(entry(f))
		if err != nil {
			return nil, fmt.Errorf("encode the function %s: %w", f.Name, err)
		}
		pieces[i] = append(text, ',')
		c.put(f, pieces[i])
	}
	return pieces, nil
}

func (c *FunctionCache) get(f *assay.Function) []byte {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.json[functionText{f.Name, f.Description, string(f.Parameters)}]
}

func (c *FunctionCache) put(f *assay.Function, text []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.json == nil {
		c.json = make(map[functionText][]byte)
	}
	if len(c.json) < maxFunctions {
		c.json[functionText{f.Name, f.Description, string(f.Parameters)}] = text
	}
}
