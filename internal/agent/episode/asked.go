package episode

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/assay-eval/assay"
)

// An askedFor knows which calls of tools the replies of a model have asked for. An agent that has
// another model that Assay does not see makes calls that no reply asked for, and a framework may
// change a call on its way.
type askedFor struct {
	replies []*askedReply
	texts   []string // where a reply may name a tool: in a text, code, or a list of calls
	unasked int
	changed int
}

// An askedReply has the calls that one reply asked for, in its order.
type askedReply struct {
	turn  int
	calls []*askedCall
	// taken is true once the agent has sent its model the answers, and passed is true if no call
	// waits any longer for calls before it that have not arrived.
	taken, passed bool
	timer         *time.Timer // passes, while a call is waiting
}

// An askedCall is a call that a reply asked for.
type askedCall struct {
	assay.ToolCall
	reply *askedReply
	// function is the function of ours that it calls, or "" for one of the framework's own.
	function      string
	arrived, done bool
	// late is true if it was carried out after a later call of its reply.
	late bool
}

// hear notes the calls of the reply of a turn to a model with these functions.
func (k *askedFor) hear(turn int, m *assay.Message, functions []assay.Function) {
	k.texts = append(k.texts, m.Content)
	r := &askedReply{turn: turn}
	for _, c := range m.Calls {
		i := slices.IndexFunc(functions, func(f assay.Function) bool { return names(c, f.Name) })
		call := &askedCall{ToolCall: c, reply: r}
		if i >= 0 {
			call.function = functions[i].Name
		}
		r.calls = append(r.calls, call)
		k.texts = append(k.texts, c.Arguments)
	}
	if len(r.calls) > 0 {
		k.replies = append(k.replies, r)
	}
}

// names reports whether a call of a reply names a tool. Agents put prefixes before the names.
func names(c assay.ToolCall, tool string) bool {
	return strings.HasSuffix(plain(c.Name), plain(tool))
}

// arrive returns the call that a reply asked for, or nil, and whether the framework made a different
// one of it. It counts such calls, and calls that no reply asked for. Some agents have calls in
// texts, perhaps several.
func (k *askedFor) arrive(tool, arguments string) (call *askedCall, changed bool) {
	args := canonical(arguments)
	same := func(c *askedCall) bool { return canonical(c.Arguments) == args }
	for _, rank := range []func(c *askedCall) int{
		func(c *askedCall) int { return truth(names(c.ToolCall, tool) && same(c)) },
		func(c *askedCall) int { return truth(names(c.ToolCall, tool)) * (1 + alike(c.Arguments, args)) },
		func(c *askedCall) int { return truth(args != "{}" && same(c)) },
	} {
		if call := k.best(rank); call != nil {
			call.arrived = true
			if changed {
				k.changed++
			}
			return call, changed
		}
		changed = true
	}
	if !slices.ContainsFunc(k.texts, func(text string) bool { return strings.Contains(text, tool) }) {
		k.unasked++
	}
	return nil, false
}

// best returns the call with the highest rank above 0 that has not arrived: of the latest reply that
// has such a call, the first one.
func (k *askedFor) best(rank func(c *askedCall) int) (best *askedCall) {
	for _, r := range slices.Backward(k.replies) {
		highest := 0
		for _, c := range r.calls {
			if c.arrived {
				continue
			}
			if n := rank(c); n > highest {
				best, highest = c, n
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// alike counts the members that two JSON objects have in common.
func alike(a, b string) (n int) {
	var x, y map[string]json.RawMessage
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return 0
	}
	for name, value := range x {
		if other, ok := y[name]; ok && canonical(string(value)) == canonical(string(other)) {
			n++
		}
	}
	return n
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
