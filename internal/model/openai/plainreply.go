package openai

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// parsePlain parses a completion of the ordinary form in a tenth of the time that encoding/json
// takes. It returns false if anything is out of the ordinary. Otherwise the result is that of
// [json.Unmarshal].
func parsePlain(body []byte) (*completion, bool) {
	p := &plainReader{rest: body}
	c := new(completion)
	ok := p.object(func(key []byte) bool {
		switch string(key) {
		case "model":
			return p.text(&c.Model)
		case "choices":
			return p.null() || listOf(p, &c.Choices, p.choice)
		case "usage":
			return p.null() || p.usage(&c.Usage)
		case "service_tier":
			return p.text(&c.Tier)
		}
		return p.skip()
	})
	return c, ok && len(p.rest) == 0
}

func (p *plainReader) choice(c *choice) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "finish_reason":
			return p.text(&c.FinishReason)
		case "message":
			return p.null() || p.message(&c.Message)
		case "error":
			return p.raw(&c.Error)
		}
		return p.skip()
	})
}

func (p *plainReader) message(m *replyMessage) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "content":
			return p.text(&m.Content)
		case "refusal":
			return p.text(&m.Refusal)
		case "reasoning_content":
			return p.raw(&m.thoughts.Content)
		case "reasoning":
			return p.raw(&m.thoughts.Plain)
		case "reasoning_details":
			return p.raw(&m.thoughts.Details)
		case "tool_calls":
			return p.null() || listOf(p, &m.Calls, p.call)
		case "function_call":
			return p.null()
		}
		return p.skip()
	})
}

func (p *plainReader) call(c *wireCall) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "id":
			return p.text(&c.ID)
		case "type":
			return p.text(&c.Type)
		case "function":
			return p.null() || p.function(&c.Function)
		case "extra_content":
			return p.raw(&c.Extra)
		}
		return p.skip()
	})
}

func (p *plainReader) function(f *wireFunctionCall) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "name":
			return p.text(&f.Name)
		case "arguments":
			return p.text(&f.Arguments)
		}
		return p.skip()
	})
}

func (p *plainReader) usage(u *replyTokens) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "prompt_tokens":
			return p.count(&u.Input)
		case "completion_tokens":
			return p.count(&u.Output)
		case "total_tokens":
			return p.count(&u.Total)
		case "cached_tokens":
			return p.count(&u.Cached)
		case "cache_creation_input_tokens":
			return p.count(&u.CacheWrite)
		case "prompt_cache_hit_tokens":
			return p.count(&u.CacheHit)
		case "prompt_cache_miss_tokens":
			return p.count(&u.CacheMiss)
		case "prompt_tokens_details":
			return p.null() || p.inputDetails(u)
		case "completion_tokens_details":
			return p.null() || p.outputDetails(u)
		}
		return p.skip()
	})
}

func (p *plainReader) inputDetails(u *replyTokens) bool {
	return p.object(func(key []byte) bool {
		switch string(key) {
		case "cached_tokens":
			return p.count(&u.InputDetails.Cached)
		case "cache_write_tokens":
			return p.count(&u.InputDetails.CacheWrite)
		}
		return p.skip()
	})
}

func (p *plainReader) outputDetails(u *replyTokens) bool {
	return p.object(func(key []byte) bool {
		if string(key) != "reasoning_tokens" || p.next() == 'n' {
			return p.skip()
		}
		u.OutputDetails.Reasoning = new(int64)
		return p.count(u.OutputDetails.Reasoning)
	})
}

// A plainReader reads a JSON document from its start. Its methods return false if the next value is
// not what they expect, and then the document is read in another way.
type plainReader struct{ rest []byte }

// next returns the next byte after white space without taking it, or 0 at the end.
func (p *plainReader) next() byte {
	for i, c := range p.rest {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			p.rest = p.rest[i:]
			return c
		}
	}
	p.rest = nil
	return 0
}

func (p *plainReader) take(c byte) bool {
	if p.next() != c {
		return false
	}
	p.rest = p.rest[1:]
	return true
}

// object reads an object. field reads the value of each key, and no key may repeat. Keys with
// capitals are out of the ordinary, because encoding/json ignores case.
func (p *plainReader) object(field func(key []byte) bool) bool {
	if !p.take('{') {
		return false
	}
	var seen [24][]byte
	for n := 0; ; n++ {
		if n == 0 && p.take('}') {
			return p.after()
		}
		key, ok := p.quoted()
		if !ok || n == len(seen) || !isPlainKey(key) || !p.take(':') {
			return false
		}
		for _, other := range seen[:n] {
			if bytes.Equal(other, key) {
				return false
			}
		}
		seen[n] = key
		if !field(seen[n]) {
			return false
		}
		if p.take('}') {
			return p.after()
		}
		if !p.take(',') {
			return false
		}
	}
}

// after takes the white space after a value.
func (p *plainReader) after() bool {
	p.next()
	return true
}

func isPlainKey(key []byte) bool {
	for _, c := range key {
		if (c < 'a' || c > 'z') && c != '_' && (c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// listOf reads a list.
func listOf[T any](p *plainReader, to *[]T, element func(*T) bool) bool {
	if !p.take('[') {
		return false
	}
	*to = []T{}
	for {
		if len(*to) == 0 && p.take(']') {
			return p.after()
		}
		var v T
		if !p.null() && !element(&v) {
			return false
		}
		*to = append(*to, v)
		if p.take(']') {
			return p.after()
		}
		if !p.take(',') {
			return false
		}
	}
}

// null takes null if it is next.
func (p *plainReader) null() bool {
	if p.next() != 'n' || !bytes.HasPrefix(p.rest, []byte("null")) {
		return false
	}
	p.rest = p.rest[len("null"):]
	return p.after()
}

// quoted returns the content of a string without escapes.
func (p *plainReader) quoted() ([]byte, bool) {
	if !p.take('"') {
		return nil, false
	}
	for i, c := range p.rest {
		switch {
		case c == '"':
			text := p.rest[:i]
			p.rest = p.rest[i+1:]
			return text, true
		case c < ' ' || c == '\\' || c >= utf8.RuneSelf:
			return nil, false
		}
	}
	return nil, false
}

// text reads a string. A null leaves it empty.
func (p *plainReader) text(to *string) bool {
	if p.null() {
		return true
	}
	if p.next() != '"' {
		return false
	}
	before := p.rest
	if text, ok := p.quoted(); ok {
		*to = string(text)
		return p.after()
	}
	p.rest = before
	value, ok := p.value()
	return ok && json.Unmarshal(value, to) == nil
}

// count reads a number without sign, fraction and exponent. A null leaves it 0.
func (p *plainReader) count(to *int64) bool {
	if p.null() {
		return true
	}
	p.next()
	n, digits := int64(0), 0
	for digits < len(p.rest) && '0' <= p.rest[digits] && p.rest[digits] <= '9' {
		n = 10*n + int64(p.rest[digits]-'0')
		if digits++; digits > 15 {
			return false
		}
	}
	if digits == 0 || digits > 1 && p.rest[0] == '0' ||
		digits < len(p.rest) && strings.IndexByte(".eE", p.rest[digits]) >= 0 {
		return false
	}
	*to, p.rest = n, p.rest[digits:]
	return p.after()
}

// raw reads any value as it is written.
func (p *plainReader) raw(to *json.RawMessage) bool {
	value, ok := p.value()
	*to = bytes.Clone(value)
	return ok && json.Valid(value)
}

// skip reads the value of a key that means nothing here.
func (p *plainReader) skip() bool {
	if p.null() {
		return true
	}
	before := p.rest
	if _, ok := p.quoted(); ok {
		return p.after()
	}
	p.rest = before
	value, ok := p.value()
	return ok && json.Valid(value)
}

// value returns the text of the next value, which may be invalid.
func (p *plainReader) value() ([]byte, bool) {
	p.next()
	depth, inString := 0, false
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '{' || c == '[':
			depth++
		case (c == '}' || c == ']' || c == ',') && depth == 0:
			value := bytes.TrimRight(p.rest[:i], " \t\r\n")
			p.rest = p.rest[i:]
			return value, true
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil, false
}
