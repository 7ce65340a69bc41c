package assay1_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/assay1"
)

// dataTools has the chain load → clean → shape → save by data, where save changes something, and
// tools beside it: a second source, a check that passes no data on, and a tool without data.
func dataTools() *assay.Catalog {
	data := assay.Parameter{Name: "data", Type: "object", Required: true}
	param := func(name, typ string) assay.Parameter {
		return assay.Parameter{Name: name, Type: typ, Required: true}
	}
	passes := []assay.Return{{Name: "success", Type: "boolean"}, {Name: "data", Type: "object"}}
	return assay.NewCatalog([]assay.Tool{
		{Name: "load", Parameters: []assay.Parameter{param("source", "string")}, Returns: passes},
		{Name: "poll", Returns: passes},
		{Name: "clock"},
		{Name: "clean", Parameters: []assay.Parameter{data}, Returns: passes},
		{
			Name: "check", Parameters: []assay.Parameter{data, param("schema", "object")},
			Returns: []assay.Return{{Name: "valid", Type: "boolean"}},
		},
		{
			Name: "shape", Parameters: []assay.Parameter{data, param("format", "string")},
			Returns: passes, Dependencies: []string{"clean"},
		},
		{
			Name: "count", Parameters: []assay.Parameter{data},
			Returns: []assay.Return{{Name: "result", Type: "object"}},
		},
		{
			Name: "save", Parameters: []assay.Parameter{data, param("destination", "string")},
			Effect: "writes a file", Dependencies: []string{"shape", "check"},
		},
	})
}

const dataInputs = `{"source":"in.csv","format":"json","destination":"out.json","limit":5,
	"schema":{"a":1.0,"b":[true,"x"]}}`

// play makes the calls, each "TOOL ARGUMENTS", and returns the outcome after the closing reply.
func play(t testing.TB, required, closing string, calls ...string) assay.Outcome {
	t.Helper()
	return playOn(t, dataTools(), required, closing, calls...)
}

func playOn(t testing.TB, catalog *assay.Catalog, required, closing string, calls ...string) assay.Outcome {
	t.Helper()
	task := assay.Task{
		Inputs: json.RawMessage(dataInputs), Required: strings.Fields(required),
	}
	trial := &assay.Trial{
		Cell: assay.Cell{Reliability: 1}, Setting: assay.Setting{World: assay1.Name},
	}
	w := assay1.New(catalog, trial, &task)
	tr := &assay.Transcript{Ended: assay.Finished, Messages: []assay.Message{
		{Role: assay.Assistant, Content: closing},
	}}
	for i, c := range calls {
		tool, args, _ := strings.Cut(c, " ")
		if _, err := w.Call(i+1, tool, args); err != nil {
			t.Fatal(err)
		}
		tr.Turns = append(tr.Turns, assay.TurnRecord{})
	}
	tr.Calls = w.Calls()
	return assay1.Verdict(catalog, task, tr, nil)
}

const (
	load  = `load {"source":"in.csv"}`
	clean = `clean {"data":{"ref":"load"}}`
	shape = `shape {"data":{"ref":"clean"},"format":"json"}`
	check = `check {"data":{"ref":"shape"},"schema":{"ref":"inputs.schema"}}`
	save  = `save {"data":{"ref":"shape"},"destination":"out.json"}`
	done  = "TASK_COMPLETED"
)

func TestVerdictTestsTheTask(t *testing.T) {
	t.Parallel()
	const chain = "load clean shape check save"
	edit := func(i int, call string) []string {
		calls := []string{load, clean, shape, check, save}
		calls[i] = call
		return calls
	}
	for _, tc := range []struct {
		name, required, closing string
		calls                   []string
		full                    bool
		broken                  string
		unwanted                int
	}{
		{"the plan", chain, done, []string{load, clean, shape, check, save}, true, "", 0},
		{
			"an unneeded read, and data made again", chain, done,
			[]string{`poll {}`, load, load, clean, shape, check, save},
			true, "", 0,
		},
		{
			"the whole chain again before the effect", chain, done,
			[]string{load, clean, shape, check, load, clean, shape, check, save},
			true, "", 0,
		},
		{
			"data from the inputs", chain, done,
			edit(1, `clean {"data":{"ref":"inputs.source"}}`), false, "clean", 0,
		},
		{
			"all inputs as data", chain, done, edit(1, `clean {"data":{"ref":"inputs"}}`),
			false, "", 0,
		},
		{
			"a step skipped by the data", chain, done,
			edit(2, `shape {"data":{"ref":"load"},"format":"json"}`), false, "shape", 0,
		},
		{
			"the right name among the options does not count", "load clean", done,
			[]string{load, `poll {}`, `clean {"data":{"ref":"poll"}}`},
			false, "clean", 0,
		},
		{
			"a check of other data", chain, done,
			edit(3, `check {"data":{"ref":"clean"},"schema":{"ref":"inputs.schema"}}`),
			false, "check", 0,
		},
		{
			"the schema spelled out", chain, done,
			edit(3, `check {"data":{"ref":"shape"},"schema":{"b":[true,"x"],"a":1}}`), true, "", 0,
		},
		{
			"another schema", chain, done,
			edit(3, `check {"data":{"ref":"shape"},"schema":{"a":2}}`), false, "check", 0,
		},
		{
			"another format", chain, done,
			edit(2, `shape {"data":{"ref":"clean"},"format":"JSON"}`), false, "shape", 0,
		},
		{
			"another destination", chain, done,
			edit(4, `save {"data":{"ref":"shape"},"destination":"other"}`), false, "save", 1,
		},
		{
			"wrong data, and then right", "load clean", done,
			[]string{load, `clean {"data":{"ref":"inputs.source"}}`, clean},
			true, "clean", 0,
		},
		{
			"an effect with wrong data, and then right", chain, done,
			[]string{
				load, clean, shape, check,
				`save {"data":{"ref":"clean"},"destination":"out.json"}`, save,
			},
			false, "save", 1,
		},
		{
			"an effect twice", chain, done,
			[]string{load, clean, shape, check, save, save},
			false, "", 1,
		},
		{
			"a result that is not handed over", "load clean", done,
			[]string{load, clean, `poll {}`},
			false, "", 0,
		},
		{
			"a result that is handed over by name", "load clean", done + ": clean",
			[]string{load, clean, `poll {}`},
			true, "", 0,
		},
		{
			"another result handed over by name", "load clean", done + ": load",
			[]string{load, clean},
			false, "", 0,
		},
		{
			"a result of nothing handed over by name", "load clean", done + ". Everything worked.",
			[]string{load, clean},
			true, "", 0,
		},
		{
			"a result does not pass its data on", "load clean count shape", done, []string{
				load, clean, `count {"data":{"ref":"clean"}}`, shape,
			}, true, "", 0,
		},
		{
			"a source by the name of a result", "poll load", done,
			[]string{`poll {}`, `load {"source":"poll"}`},
			true, "", 0,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o := play(t, tc.required, tc.closing, tc.calls...)
			if full := o.Level == assay.FullSuccess; full != tc.full || o.Broken != tc.broken ||
				o.UnwantedEffects != tc.unwanted {
				t.Errorf("%s (%s), broken %q, %d unwanted effects; want %v, %q, %d",
					o.Level, o.ErrorCategory, o.Broken, o.UnwantedEffects,
					tc.full, tc.broken, tc.unwanted)
			}
		})
	}
}

// TestUnneededReadsOnlyCostCalls puts a call that reads in front of random calls. Only the
// efficiency changes. A full success has every step, and its effect exactly once.
func TestUnneededReadsOnlyCostCalls(t *testing.T) {
	t.Parallel()
	const chain = "load clean shape check save"
	refs := []string{
		"inputs.source", "inputs.limit", "load", "poll", "clean", "shape", "check", "count",
	}
	call := rapid.Custom(func(t *rapid.T) string {
		ref := `{"data":{"ref":"` + rapid.SampledFrom(refs).Draw(t, "ref") + `"}`
		return rapid.SampledFrom([]string{
			load, clean, shape, check, `poll {}`, "clean " + ref + "}", "count " + ref + "}",
			"shape " + ref + `,"format":"json"}`,
			"check " + ref + `,"schema":{"ref":"inputs.schema"}}`,
			"save " + ref + `,"destination":"out.json"}`, save,
		}).Draw(t, "call")
	})
	full := 0
	law := func(r *rapid.T) {
		calls := rapid.SliceOfN(call, 0, 10).Draw(r, "calls")
		if rapid.Bool().Draw(r, "from the plan") {
			calls = []string{load, clean, shape, check, save}
			at := rapid.IntRange(0, len(calls)-1).Draw(r, "at")
			calls = slices.Insert(calls, at, call.Draw(r, "inserted"))
		}
		o := play(t, chain, done, calls...)
		again := play(t, chain, done, append([]string{`clock {}`}, calls...)...)
		if (again.Level == assay.FullSuccess) != (o.Level == assay.FullSuccess) ||
			again.Broken != o.Broken ||
			again.Coverage != o.Coverage || again.UnwantedEffects != o.UnwantedEffects {
			r.Fatalf("%q: a read before the rest makes %+v of %+v", calls, again, o)
		}
		if o.Level == assay.FullSuccess {
			full++
			saves := 0
			for _, name := range o.ExecutedTools {
				if name == "save" {
					saves++
				}
			}
			if o.Coverage != 1 || !o.OrderCorrect || saves != 1 {
				r.Fatalf("%q is a full success: %+v", calls, o)
			}
		}
	}
	rapid.Check(t, law)
	game := rapid.Custom(func(r *rapid.T) bool { law(r); return true })
	for seed := range 100 { // the same in every run
		game.Example(seed)
	}
	if full == 0 {
		t.Error("there was no full success, so the test is too weak")
	}
}

// TestSecondToolsCount checks that a tool that stands for another one does its steps, and that their
// effects are one: the task asks for one of them.
func TestSecondToolsCount(t *testing.T) {
	t.Parallel()
	const required = "load clean shape check save"
	const clean2, save2 = `clean2 {"data":{"ref":"load"}}`, `save2 {"data":{"ref":"shape"},"destination":"out.json"}`
	const shape2 = `shape2 {"data":{"ref":"clean"},"format":"json"}`
	const check2 = `check {"data":{"ref":"shape2"},"schema":{"ref":"inputs.schema"}}`
	const saved2 = `save2 {"data":{"ref":"shape2"},"destination":"out.json"}`
	for _, tc := range []struct {
		name     string
		calls    []string
		full     bool
		unwanted int
	}{
		{"the second tool for the effect", []string{load, clean, shape, check, save2}, true, 0},
		{"both tools for it", []string{load, clean, shape, check, save2, save}, false, 1},
		{"a second tool in the middle", []string{load, clean, shape2, check2, saved2}, true, 0},
		{"the first one, and then the second one", []string{load, clean, shape, shape2, check2, saved2}, true, 0},
		{"wrong data for it", []string{load, clean, `shape2 {"data":{"ref":"load"},"format":"json"}`, check2, saved2}, false, 0},
		{"one that others need", []string{load, clean2, `shape {"data":{"ref":"clean2"},"format":"json"}`, check, save}, false, 0},
	} {
		o := playOn(t, secondTools(), required, done, tc.calls...)
		if got := o.Level == assay.FullSuccess; got != tc.full || o.UnwantedEffects != tc.unwanted {
			t.Errorf("%s: %+v", tc.name, o)
		}
		if tc.full && (o.Coverage != 1 || !o.OrderCorrect || o.Broken != "" || len(tc.calls) == 5 && o.Efficiency != 1) {
			t.Errorf("%s: %+v", tc.name, o)
		}
	}
}

// secondTools returns the tools with a second one for shape and save, and for clean, which shape needs.
func secondTools() *assay.Catalog {
	tools := slices.Clone(dataTools().All())
	for _, tool := range dataTools().All() {
		if slices.Contains([]string{"clean", "shape", "save"}, tool.Name) {
			tool.Name, tool.StandsFor, tool.Dependencies = tool.Name+"2", tool.Name, nil
			tools = append(tools, tool)
		}
	}
	for i := range tools {
		if tools[i].Name == "save" || tools[i].Name == "save2" {
			tools[i].Dependencies = []string{"check"}
		}
	}
	return assay.NewCatalog(tools)
}
