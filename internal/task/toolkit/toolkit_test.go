package toolkit_test

import (
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
)

func compile(t testing.TB, source string) *toolkit.Program {
	t.Helper()
	p, err := toolkit.Compile(assay.Script{Name: "tools.star", Source: source})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestScriptsAreLikeStarlark checks that the rewritten operators and methods keep their meaning.
func TestScriptsAreLikeStarlark(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]string{
		`1 + 2 * 3 - 4 // 3 % 2`:                         `6`,
		`"a" + "b" * 3`:                                  `"abbb"`,
		`[1] + [2] * 2`:                                  `[1,2,2]`,
		`"%s is %d" % ("x", 7)`:                          `"x is 7"`,
		`"-".join(["a", "b"])`:                           `"a-b"`,
		`"{} {n}".format("a", n = 1)`:                    `"a 1"`,
		`"aXbX".replace("X", "yy")`:                      `"ayybyy"`,
		`[x.upper() for x in ["a", "b"] if x + "" == x]`: `["A","B"]`,
		`{k: v + 1 for k, v in {"a": 1}.items()}`:        `{"a":2}`,
		`sorted([3, 1, 2], reverse = True)`:              `[3,2,1]`,
		`(lambda x, y = 1 + 1: x + y)(1)`:                `3`,
		`(lambda method: method.upper())("a")`:           `"A"`,
		`getattr("a-b", "split")("-")`:                   `["a","b"]`,
		`getattr({}, "split", 7)`:                        `7`,
		`[1 in [1], 1 not in (2,), "a" in {"a": 1}]`:     `[true,true,true]`,
		`sorted([[2], [1, 3]], lambda x: x[-1])`:         `[[2],[1,3]]`,
		`min([3, 1, 2], key = lambda x: -x)`:             `3`,
		`1 << 3 | 1`:                                     `9`,
		`dict(a = 1, **{"b": 2})`:                        `{"a":1,"b":2}`,
		`max(*[1, 5, 2])`:                                `5`,
		`[i for i in range(2, 10, 3)]`:                   `[2,5,8]`,
		`str([1, "a"])`:                                  `"[1, \"a\"]"`,
		`1.5 + 1`:                                        `2.5`,
		`None`:                                           `null`,
		`("a" if True else "b") + "c"`:                   `"ac"`,
	} {
		p := compile(t, "def f(state):\n    return "+expression)
		out, _, err := p.Call("f", nil, nil)
		if err != nil || string(out) != want {
			t.Errorf("%s = %s, %v, want %s", expression, out, err, want)
		}
	}
	for statement, want := range map[string]string{
		"x = [1]\n    y = x\n    x += [2]\n    return y": `[1,2]`, // in place
		"x = 2\n    x *= 3\n    return x":                `6`,
		"x = [1]\n    x[0] += 4\n    return x":           `[5]`,
		"x = [2, 3]\n    x[0 + 1] *= 4\n    return x":    `[2,12]`,
		"x = {'a': 1}\n    x |= {'b': 2}\n    return x":  `{"a":1,"b":2}`,
		"x = '%s'\n    x %= 'a'\n    return x":           `"a"`,
	} {
		p := compile(t, "def f(state):\n    "+statement)
		out, _, err := p.Call("f", nil, nil)
		if err != nil || string(out) != want {
			t.Errorf("%q = %s, %v, want %s", statement, out, err, want)
		}
	}
}

// TestHostileScriptsEnd runs scripts that want too much time, or whose operators want too much memory.
// Each ends with an error
// that names its line, and all of them take little memory.
func TestHostileScriptsEnd(t *testing.T) {
	var before runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, tc := range map[string]struct{ body, want string }{
		"endless loop": {
			"for a in range(1000000):\n        for b in range(1000000):\n            pass",
			"more than",
		},
		"huge string":        {"x = 'x' * 1000000000", "would have more than"},
		"huge list":          {"x = [0] * 1000000000", "would have more than"},
		"huge factor":        {"x = 'x' * (1 << 500)", "would have more than"},
		"huge number":        {"x = 3\n    for i in range(100):\n        x *= x", "bits"},
		"huge range":         {"x = list(range(1000000000))", "a range has at most"},
		"doubling":           {"x = 'x'\n    for i in range(100):\n        x = x + x", "would have more than"},
		"doubling in place":  {"x = 'x'\n    for i in range(100):\n        x += x", "would have more than"},
		"many":               {"x = []\n    for i in range(1000000):\n        x.append('x' * 1000000)", "memory"},
		"recursion":          {"f(state)", "called recursively"},
		"frozen":             {"LIST.append(1)", "frozen"},
		"no such method":     {"[].push(1)", "no .push field or method"},
		"result of a bomb":   {"x = ['x' * 1000]\n    for i in range(30):\n        x = [x, x]\n    return x", "bytes as JSON"},
		"result of a cycle":  {"x = []\n    x.append(x)\n    return x", "nested"},
		"result of a lambda": {"return lambda: 1", "cannot be written as JSON"},
		"key of a number":    {"return {1: 2}", "str(…)"},
		"division":           {"x = 1 // 0", "division by zero"},
	} {
		p := compile(t, "LIST = []\ndef f(state):\n    "+tc.body+"\n")
		_, _, err := p.Call("f", json.RawMessage(`{}`), nil)
		var script *toolkit.ScriptError
		if !errors.As(err, &script) || !strings.Contains(script.Message, tc.want) ||
			!strings.Contains(script.Trace, "tools.star:") {
			t.Errorf("%s: %v, want %q", name, err, tc.want)
		}
	}
	var after runtime.MemStats
	runtime.ReadMemStats(&after)
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 2000 {
		t.Errorf("the scripts allocated %d MB", mb)
	}
}

// TestScriptMistakes checks the errors of scripts that cannot be used.
func TestScriptMistakes(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"def f(state)\n    pass":                      "tools.star:2:1: got newline",
		"load('other.star', 'x')":                     "cannot load other files",
		"def f(state):\n    return missing":           "tools.star:2:12: undefined: missing",
		"x = 1 // 0":                                  "division by zero",
		"while True:\n    pass":                       "tools.star:1:1",
		"import os":                                   "tools.star:1",
		"x = ['a' * 1000000 for i in range(1000000)]": "memory",
	} {
		_, err := toolkit.Compile(assay.Script{Name: "tools.star", Source: source})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", source, err, want)
		}
	}
}

// TestRefusedCallsChangeNothing checks that a tool that refuses a call, or breaks, leaves the state
// as it was, and that the trace has the user's lines only.
func TestRefusedCallsChangeNothing(t *testing.T) {
	t.Parallel()
	p := compile(t, `
def helper(state):
    state["n"] = 1
    fail("NO_WAY", "not today")

def f(state):
    helper(state)

def g(state):
    state["n"] += 1
    return state["n"]

def h(state):
    g(state)
    return state["missing"]
`)
	state := json.RawMessage(`{"n":1}`)
	_, _, err := p.Call("f", state, nil)
	var refusal *toolkit.ToolError
	if !errors.As(err, &refusal) || refusal.Error() != "NO_WAY: not today" {
		t.Errorf("f: %v", err)
	}
	out, after, err := p.Call("g", state, nil)
	if err != nil || string(out) != "2" || string(after) != `{"n":2}` || string(state) != `{"n":1}` {
		t.Errorf("g: %s, %s, %v", out, after, err)
	}
	_, _, err = p.Call("h", state, nil)
	want := "key \"missing\" not in dict\n  tools.star:15:17: in h"
	if err == nil || err.Error() != want {
		t.Errorf("h: %v, want %s", err, want)
	}
}

// FuzzValues checks that values survive the way into a script and back.
func FuzzValues(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5,-3e10,null,true,"x\u0000é"],"b":{}}`, `{"n":123456789012345678901234567890}`,
		`{"a":1.0}`, `{"":""}`, `{"a":1e400}`,
	} {
		f.Add(seed)
	}
	p := compile(f, "def f(state):\n    return state\n")
	f.Fuzz(func(t *testing.T, text string) {
		out, after, err := p.Call("f", json.RawMessage(text), nil)
		if err != nil {
			return
		}
		if string(out) != string(after) {
			t.Fatalf("%s and %s differ", out, after)
		}
		again, _, err := p.Call("f", out, nil)
		if err != nil || string(again) != string(out) {
			t.Fatalf("%s became %s, %v", out, again, err)
		}
		var v any
		if err := json.Unmarshal(out, &v); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
	})
}

// FuzzScripts checks that no script makes the rewriting or a call panic.
func FuzzScripts(f *testing.F) {
	f.Add("def f(state):\n    x = [a.b for a in state if a + 1]\n    x[0] *= 2\n    return x\n")
	f.Add("f = lambda state, *args, **kw: {k: v % 2 for k, v in kw.items()}[state].g(**kw)\n")
	f.Fuzz(func(t *testing.T, source string) {
		p, err := toolkit.Compile(assay.Script{Name: "f.star", Source: source})
		if err != nil {
			return
		}
		for _, name := range p.Functions() {
			_, _, _ = p.Call(name, json.RawMessage(`{"a":[1,"x"]}`), nil)
		}
	})
}
