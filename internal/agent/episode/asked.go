package episode

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// An askedFor knows which calls of tools the replies of a model have asked for. An agent that has
// another model that Assay does not see makes calls that no reply asked for, and a framework may
// change a call on its way.
type askedFor struct {
	calls   []assay.ToolCall // of replies, that were not carried out yet
	texts   []string         // where a reply may name a tool: in a text, code, or a list of calls
	unasked int
	changed int
}

// hear notes the calls of a reply.
func (k *askedFor) hear(m *assay.Message) {
	k.texts = append(k.texts, m.Content)
	for _, c := range m.Calls {
		k.calls = append(k.calls, c)
		k.texts = append(k.texts, c.Arguments)
	}
}

// carryOut returns the call that a reply asked for if the framework made a different one of it, and
// otherwise "". It counts such calls, and calls that no reply asked for. Agents put prefixes before
// the names of tools, and some have them in texts, perhaps for several calls.
func (k *askedFor) carryOut(tool, arguments string) (asked string) {
	args := canonical(arguments)
	named := func(c assay.ToolCall) bool { return strings.HasSuffix(plain(c.Name), plain(tool)) }
	same := func(c assay.ToolCall) bool { return canonical(c.Arguments) == args }
	if _, ok := k.take(func(c assay.ToolCall) bool { return named(c) && same(c) }); ok {
		return ""
	}
	c, ok := k.take(named)
	if !ok && args != "{}" {
		c, ok = k.take(same)
	}
	if ok {
		k.changed++
		return strings.TrimSpace(c.Name + " " + c.Arguments)
	}
	if !slices.ContainsFunc(k.texts, func(text string) bool { return strings.Contains(text, tool) }) {
		k.unasked++
	}
	return ""
}

// take removes the latest call that is right.
func (k *askedFor) take(right func(assay.ToolCall) bool) (c assay.ToolCall, ok bool) {
	for i, c := range slices.Backward(k.calls) {
		if right(c) {
			k.calls = slices.Delete(k.calls, i, i+1)
			return c, true
		}
	}
	return c, false
}

// plain returns a name as frameworks write it, if endpoints accept only letters and digits.
func plain(name string) string {
	return strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			return r
		}
		return '_'
	}, name)
}

// canonical returns the arguments of a call in one spelling.
func canonical(arguments string) string {
	d := json.NewDecoder(strings.NewReader(arguments))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err == nil {
		arguments = string(encode(respelled(v)))
	}
	if arguments = strings.TrimSpace(arguments); arguments == "" || arguments == "null" {
		return "{}"
	}
	return arguments
}

// respelled spells numbers alike, such as 1 and 1.0. Integers keep all digits.
func respelled(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			v[name] = respelled(member)
		}
	case []any:
		for i := range v {
			v[i] = respelled(v[i])
		}
	case json.Number:
		if f, err := v.Float64(); err == nil && strings.ContainsAny(string(v), ".eE") {
			return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
		}
	}
	return v
}

// unnested returns the arguments of tool_call as a reply wrote them. Semantic Kernel puts all of
// them once more in a parameter that is called arguments. If a model has done so itself, it is a
// mistake.
func (k *askedFor) unnested(arguments string) string {
	var outer struct{ Arguments json.RawMessage }
	if json.Unmarshal([]byte(arguments), &outer) != nil {
		return arguments
	}
	wrote := func(text string) bool {
		return slices.ContainsFunc(k.texts, func(t string) bool {
			return canonical(t) == canonical(text)
		})
	}
	var inner struct{ Tool, Arguments json.RawMessage }
	if inside := string(outer.Arguments); json.Unmarshal(outer.Arguments, &inner) == nil &&
		inner.Tool != nil && inner.Arguments != nil && wrote(inside) && !wrote(arguments) {
		return inside
	}
	return arguments
}
