package toolkit

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.starlark.net/starlark"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

// hands is a script that does what it is told to values of the state and of its own.
const hands = `
def at(list, n):
    return n % len(list)

def on_dict(x, y, do, k):
    if do == "get":
        return x.get(k)
    elif do == "set":
        x[k] = y
    elif do == "pop":
        return x.pop(k, "none")
    elif do == "popitem" and x:
        return x.popitem()
    elif do == "setdefault":
        return x.setdefault(k, y)
    elif do == "update":
        x.update([(k, y)], z = 1)
    elif do == "clear":
        x.clear()
    elif do == "union":
        return x | {k: y}
    elif do == "join":
        x |= {k: y}
        return x
    elif do == "copy":
        return dict(x)
    elif do == "sort":
        return sorted(x.values(), key = lambda v: (str(v), type(v)))
    elif do == "loop":
        return [(name, x[name]) for name in x]
    return [len(x), x.keys(), x.items(), k in x, x == y, y in [x], str(x), bool(x), type(x)]

def on_list(x, y, do, n):
    if do == "get" and x:
        return x[at(x, n)]
    elif do == "set" and x:
        x[at(x, n)] = y
    elif do == "pop" and x:
        return x.pop(at(x, n))
    elif do == "popitem":
        x.insert(n, y)
    elif do == "setdefault":
        x.append(y)
    elif do == "update":
        x.extend([y, n])
    elif do == "clear":
        x.clear()
    elif do == "union":
        return x + [y]
    elif do == "join":
        x += [y]
        return x
    elif do == "copy":
        return x[n:] + list(reversed(x)) + x[:2] * 2
    elif do == "sort":
        return max(x + [y], key = str)
    elif do == "loop" and y in x:
        i = x.index(y)
        x.remove(y)
        return i
    return [len(x), [v for v in x], y in x, x == y, [x] == [y], x != [y], str(x), bool(x), type(x)]

def act(state, acts):
    held = [state, {"new": [1]}, [], "text"]
    out = []
    for a in acts:
        x, y = held[at(held, a["x"])], held[at(held, a["y"])]
        if type(x) == "dict":
            held.append(on_dict(x, y, a["do"], a["key"]))
        elif type(x) == "list":
            held.append(on_list(x, y, a["do"], a["n"]))
        out.append(str(held[-1]) if a["n"] else held[-1])
        if a["do"] == "fail":
            fail("NO")
    return out
`

// anyActs draws the arguments of a call of act.
func anyActs() *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		acts := []map[string]any{}
		for range rapid.IntRange(0, 12).Draw(t, "acts") {
			acts = append(acts, map[string]any{
				"do": rapid.SampledFrom([]string{
					"get", "get", "get", "get", "set", "set", "pop", "popitem", "setdefault", "update", "union",
					"join", "copy", "sort", "loop", "look", "clear", "fail",
				}).Draw(t, "do"),
				"x":   rapid.IntRange(0, 20).Draw(t, "x"),
				"y":   rapid.IntRange(0, 20).Draw(t, "y"),
				"key": rapid.SampledFrom([]string{"a", "b", "c", "d/~", "0"}).Draw(t, "key"),
				"n":   rapid.IntRange(0, 5).Draw(t, "n"),
			})
		}
		text, err := json.Marshal(map[string]any{"acts": acts})
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	})
}

// onACopy carries out a tool on a copy of a state, and returns the output and the copy.
func onACopy(k *Kit, tool, state, arguments string) (output, after string, err error) {
	at, err := decode(json.RawMessage(state))
	if err != nil {
		return "", "", err
	}
	args, err := decode(json.RawMessage(arguments))
	if err != nil {
		return "", "", err
	}
	result, err := k.program.call(tool, starlark.Tuple{at}, args.(*starlark.Dict).Items())
	if err != nil {
		return "", "", err
	}
	out, err := encode(result)
	if err != nil {
		return "", "", err
	}
	text, err := encode(at)
	return string(out), string(text), err
}

// TestOverlaysAreLikeCopies checks that the calls of an attempt have the same outputs, errors and
// states on a shared state as on a copy of their own, that the changes lead to the same state
// again, and that the shared state stays.
func TestOverlaysAreLikeCopies(t *testing.T) {
	t.Parallel()
	const start = `{"a":{"b":[1,{"c":"x"},[2,3]],"c":{}},"b":[{"a":1},{"a":1},"text"],"d/~":{"0":7}}`
	kit := func(base string) *Kit {
		k, err := New(assay.NewCatalog(nil).With(
			assay.Script{Name: "t.star", Source: hands, Base: json.RawMessage(base)}, nil))
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	whole, based := kit(""), kit(start)
	rapid.Check(t, func(t *rapid.T) {
		one, two, state := whole.Begin(json.RawMessage(start)), based.Begin(nil), start
		for range rapid.IntRange(1, 4).Draw(t, "calls") {
			acts := anyActs().Draw(t, "acts")
			want, after, wrong := onACopy(whole, "act", state, acts)
			if wrong == nil {
				state = after
			}
			for _, s := range []*Session{one, two} {
				out, err := s.call("act", json.RawMessage(acts))
				cyclic := strings.Contains(want, "...") // the texts of such values differ
				if (err == nil) != (wrong == nil) || err == nil && string(out) != want && !cyclic {
					t.Fatalf("%s: %s, %v\nwant %s, %v", acts, out, err, want, wrong)
				}
				whole, err := encode(s.root())
				if err != nil || string(whole) != state {
					t.Fatalf("after %s: %s, %v\nwant %s", acts, whole, err, state)
				}
				s.state.seen = make(map[starlark.Value]view) // as a call leaves it
			}
		}
		changes, err := two.State()
		if err != nil {
			t.Fatal(err)
		}
		again, err := based.After(changes)
		if err != nil {
			t.Fatalf("%s: %v", changes, err)
		}
		if text, err := encode(again.root()); err != nil || string(text) != state {
			t.Fatalf("%s lead to %s, %v\nwant %s", changes, text, err, state)
		}
		if (string(changes) == "[]") != (state == start) {
			t.Fatalf("%s and %s differ by %s", start, state, changes)
		}
		if base, err := based.base(); err != nil || fmt.Sprint(base) != fmt.Sprint(must(start)) {
			t.Fatalf("the base is %v, %v", base, err)
		}
	})
}

func must(text string) starlark.Value {
	v, err := decode(json.RawMessage(text))
	if err != nil {
		panic(err)
	}
	return v
}
