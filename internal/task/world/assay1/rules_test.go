package assay1_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/assay1"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// kitchen returns a catalog with every type of parameter and result, and a chain of dependencies.
func kitchen() *assay.Catalog {
	codes := []assay.ToolError{
		{Code: "INVALID_INPUT", Description: "bad"},
		{Code: "TIMEOUT", Description: "slow"},
		{Code: "OVERFLOW", Description: "large"},
	}
	options := assay.Parameter{Name: "options", Type: "object"}
	return assay.NewCatalog([]assay.Tool{
		{
			Name: "read", Operation: "reader", Errors: codes,
			Parameters: []assay.Parameter{
				{Name: "source", Type: "string", Required: true}, options,
			},
			Returns: []assay.Return{
				{Name: "success", Type: "boolean"},
				{Name: "data", Type: "object"},
				{Name: "metadata", Type: "object"},
			},
		},
		{
			Name: "check", Operation: "validator", Errors: codes, Dependencies: []string{"read"},
			Parameters: []assay.Parameter{
				{Name: "schema", Type: "object", Required: true},
				{Name: "data", Type: "object", Required: true},
				options,
			},
			Returns: []assay.Return{
				{Name: "valid", Type: "boolean"},
				{Name: "errors", Type: "array"},
				{Name: "count", Type: "number"},
				{Name: "id", Type: "string"},
			},
		},
		{
			Name: "all", Operation: "helper",
			Parameters: []assay.Parameter{
				{Name: "s", Type: "string"},
				{Name: "n", Type: "number"},
				{Name: "i", Type: "integer"},
				{Name: "b", Type: "boolean"},
				{Name: "a", Type: "array"},
				{Name: "o", Type: "object"},
			},
		},
		{
			Name: "send", Operation: "poster", Errors: codes[:1], Dependencies: []string{
				"read", "check",
			},
			Parameters: []assay.Parameter{options},
		},
	})
}

const kitchenInputs = `{"source":"inbox/a.csv","schema":{"type":"object"},"data":{"records":[{"x":1},{"x":2},{"x":3}]}}`

func begin(seed uint64, reliability float64, set assay.Setting) *assay1.World {
	return beginIn(assay.Cell{Reliability: reliability}, seed, set)
}

// beginMixed is begin with a mix of faults.
func beginMixed(seed uint64, reliability float64, faults string) *assay1.World {
	return beginIn(assay.Cell{Reliability: reliability, Faults: faults}, seed, assay.Setting{})
}

func beginIn(cell assay.Cell, seed uint64, set assay.Setting) *assay1.World {
	set.World = assay1.Name
	trial := &assay.Trial{Cell: cell, Seed: seed, Setting: set}
	return assay1.New(kitchen(), trial, &assay.Task{Inputs: json.RawMessage(kitchenInputs)})
}

func mustCall(t interface {
	Helper()
	Fatalf(string, ...any)
}, w spec.World, tool, args string,
) assay.CallRecord {
	t.Helper()
	rec, err := w.Call(1, tool, args)
	if err != nil {
		t.Fatalf("call %s: %v", tool, err)
	}
	return rec
}

const readArgs = `{"source":"inbox/a.csv"}`

func TestArgumentsAreChecked(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		tool, args string
		want       string // part of the error, or ""
	}{
		{"read", readArgs, ""},
		{"read", `{"source":"inbox/a.csv","options":{}}`, ""},
		{"read", `{"source":"inbox/a.csv","options":null}`, ""},
		{"read", ``, "source (string) is missing"},
		{"read", `null`, "source (string) is missing"},
		{"read", `{"source":null}`, "source (string) is missing"},
		{"read", `{"source":""}`, "source is empty"},
		{"read", `{"source":7}`, "of type string, not number"},
		{
			"read", `{"source":"inbox/a.csv","option":{}}`,
			`no parameter "option"; its parameters are source, options`,
		},
		{"read", `{"source":"inbox/a.csv","options":"none"}`, "of type object, not string"},
		{"read", `{"source":"inbox/b.csv"}`, `source "inbox/b.csv" is neither`},
		{
			"read", `{"source":"inbox/a.csv","options":{"input":{"ref":"read"}}}`,
			`"read" refers to nothing; there are inputs, inputs.data, inputs.schema, inputs.source`,
		},
		{
			"read",
			`{"source":"inbox/a.csv","options":{"list":[1,{"deep":{"ref":"inputs.nothing"}}]}}`,
			`"inputs.nothing" refers to nothing`,
		},
		{"read", `{"source":"inbox/a.csv","options":{"input":{"ref":"inputs.data"}}}`, ""},
		{"read", `{"source":"inbox/a.csv","options":{"ref":"inputs"}}`, ""},
		{"read", `{"source":"inbox/a.csv","options":{"ref":7}}`, ""}, // 7 is not a name
		{"read", `["inbox/a.csv"]`, "one JSON object: found array"},
		{"read", `{"source":"inbox/a.csv"} and more`, "one JSON object"},
		{"read", `{"source":`, "one JSON object"},
		{"all", `{"s":"","n":1.5,"i":2,"b":false,"a":[],"o":{}}`, ""},
		{"all", `{"i":2.0}`, ""},
		{"all", `{"i":2e3}`, ""},
		{"all", `{"i":2.5}`, "of type integer, not number"},
		{"all", `{"i":"2"}`, "of type integer, not string"},
		{"all", `{"n":"1"}`, "of type number, not string"},
		{"all", `{"b":"true"}`, "of type boolean, not string"},
		{"all", `{"a":{}}`, "of type array, not object"},
		{"all", `{"o":[]}`, "of type object, not array"},
		{"all", `{"s":true}`, "of type string, not boolean"},
	} {
		t.Run(tc.tool+" "+tc.args, func(t *testing.T) {
			t.Parallel()
			rec := mustCall(t, begin(1, 1, assay.Setting{}), tc.tool, tc.args)
			refused := !rec.OK && rec.Mistake && rec.Code == assay1.InvalidInput
			switch {
			case tc.want == "" && (!rec.OK || rec.Mistake):
				t.Errorf("record = %+v, want success", rec)
			case tc.want != "" && (!refused || !strings.Contains(rec.Error, tc.want)):
				t.Errorf("record = %+v, want the error %q", rec, tc.want)
			}
		})
	}
}

func TestReferencesMustExist(t *testing.T) {
	t.Parallel()
	w := begin(1, 1, assay.Setting{})
	checkRead := `{"schema":{"ref":"inputs.schema"},"data":{"ref":"read"}}`
	if rec := mustCall(t, w, "check", checkRead); rec.Code != assay1.InvalidInput {
		t.Errorf("a result that does not exist yet gives %+v, want %s", rec, assay1.InvalidInput)
	}
	rec := mustCall(t, w, "check", `{"schema":{},"data":{"records":[]}}`)
	if rec.Code != assay1.InvalidInput || !strings.Contains(rec.Error, "has to be a reference") {
		t.Errorf("data that is not a reference gives %+v", rec)
	}
	rec = mustCall(t, w, "check", `{"schema":{},"data":{"ref":"inputs.data"}}`)
	if rec.Code != assay1.DependencyFail || !rec.Mistake ||
		rec.Error != "DEPENDENCY_ERROR: check needs read to have succeeded first" {
		t.Errorf("a call before its dependency gives %+v", rec)
	}
	for _, call := range [][2]string{
		{"read", readArgs}, {"check", checkRead}, {"read", `{"source":"check"}`},
	} {
		if rec := mustCall(t, w, call[0], call[1]); !rec.OK {
			t.Errorf("%v gives %+v, want success", call, rec)
		}
	}
	if diff := cmp.Diff([]string{"read", "check"}, w.Succeeded()); diff != "" {
		t.Errorf("succeeded (-want +got):\n%s", diff)
	}
}

// TestMistakesUseNoLuck inserts mistakes between calls. The other calls go as they do without them.
func TestMistakesUseNoLuck(t *testing.T) {
	t.Parallel()
	right := map[string]string{"read": readArgs, "all": "{}"}
	wrong := [][2]string{
		{"read", "{}"},
		{"all", `{"x":1}`},
		{"send", "{}"},
		{"check", `{"schema":{},"data":{"ref":"nothing"}}`},
		{"read", `{"source":"elsewhere"}`},
	}
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		reliability := rapid.Float64Range(0, 1).Draw(t, "reliability")
		set := assay.Setting{
			Persistence: rapid.Float64Range(0, .9).Draw(t, "persistence"),
			Burst:       rapid.Float64Range(0, .9).Draw(t, "burst"),
		}
		calls := rapid.SliceOfN(rapid.SampledFrom([]string{"read", "all"}), 0, 30).Draw(t, "calls")
		plain, mixed := begin(seed, reliability, set), begin(seed, reliability, set)
		for _, tool := range calls {
			for _, w := range rapid.SliceOfN(rapid.SampledFrom(wrong), 0, 2).Draw(t, "mistakes") {
				if rec := mustCall(t, mixed, w[0], w[1]); !rec.Mistake || rec.OK ||
					rec.Chance != 0 || rec.Luck != 0 {
					t.Fatalf("%v: %+v, want a mistake without luck", w, rec)
				}
			}
			a, b := mustCall(t, plain, tool, right[tool]), mustCall(t, mixed, tool, right[tool])
			if diff := cmp.Diff(a, b); diff != "" {
				t.Fatalf("mistakes changed a later call:\n%s", diff)
			}
		}
	})
}

// TestAssay1Spec derives each luck-spending call independently from docs/worlds.md.
func TestAssay1Spec(t *testing.T) {
	t.Parallel()
	lasted := 0
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...float64) float64 { return of[random.IntN(len(of))] }
	for range 500 {
		seed := random.Uint64N(1 << 53)
		reliability := pick(0, .3, .8, 1)
		persistence := pick(0, .5, .9)
		burst := pick(0, .4)
		w := begin(seed, reliability, assay.Setting{Persistence: persistence, Burst: burst})
		k := map[string]int{}
		code := map[string]string{}
		anyFailed := false
		for range 1 + random.IntN(40) {
			tool := []string{"read", "all"}[random.IntN(2)]
			rec := mustCall(t, w, tool, map[string]string{"read": readArgs, "all": "{}"}[tool])
			sum := sha256.Sum256([]byte(fmt.Sprint("assay luck 1\x00", seed, "\x00", tool, "\x00", k[tool])))
			u := float64(binary.BigEndian.Uint64(sum[:])>>11) / (1 << 53)
			without := reliability
			if anyFailed {
				without *= 1 - burst
			}
			chance := without
			if code[tool] != "" {
				chance *= 1 - persistence
			}
			if rec.Luck != u || math.Abs(rec.Chance-chance) > 1e-12 || rec.OK != (u < rec.Chance) {
				t.Fatalf("record %+v, want luck %v and chance %v", rec, u, chance)
			}
			if persistence == 0 && burst == 0 && rec.Chance != reliability {
				t.Fatalf("chance %v, want the reliability %v exactly", rec.Chance, reliability)
			}
			want := ""
			if !rec.OK {
				codes := map[string][]string{"read": {"TIMEOUT", "OVERFLOW"}, "all": {"OPERATION_FAILED"}}[tool]
				want = codes[binary.BigEndian.Uint64(sum[8:])%uint64(len(codes))]
				if code[tool] != "" && u < without {
					if want != code[tool] {
						lasted++
					}
					want = code[tool]
				}
			}
			if rec.Code != want {
				t.Fatalf("code %q, want %q", rec.Code, want)
			}
			k[tool]++
			code[tool], anyFailed = rec.Code, !rec.OK
		}
	}
	if lasted == 0 {
		t.Error("no failure lasted while another code was drawn, so the test is too weak")
	}
}

// TestOutputsOfChain works the results of a chain out by hand.
func TestOutputsOfChain(t *testing.T) {
	t.Parallel()
	checksum := func(parts ...string) string {
		sum := sha256.Sum256([]byte(strings.Join(parts, "\n") + "\n"))
		return hex.EncodeToString(sum[:])[:12]
	}
	readOutput := func(sum string) string {
		return `{"data":{"checksum":"` + sum + `","items":3},` +
			`"metadata":{"checksum":"` + sum + `","items":3,"operation":"reader"},"success":true}`
	}
	w := begin(1, 1, assay.Setting{})
	first := checksum("read", `{"source":"inbox/a.csv"}`)
	second := checksum("check", `{"data":{"ref":"read"},"schema":{"ref":"inputs.schema"}}`, first)
	third := checksum("read", `{"options":{"a":{"ref":"check"}},"source":"read"}`, second, first)
	for _, tc := range []struct{ tool, args, want string }{
		{"read", `{ "source": "inbox/a.csv" }`, readOutput(first)},
		{
			"check", `{"schema":{"ref":"inputs.schema"},"data":{"ref":"read"}}`,
			`{"count":3,"errors":[],"id":"` + second + `","valid":true}`,
		},
		{"read", `{"source":"read","options":{"a":{"ref":"check"}}}`, readOutput(third)},
	} {
		if rec := mustCall(t, w, tc.tool, tc.args); rec.Output != tc.want {
			t.Errorf("%s %s gives %s %s\nwant %s", tc.tool, tc.args, rec.Output, rec.Error, tc.want)
		}
	}
	for inputs, want := range map[string]int{
		`{"source":"a","record_count":412,"data":{"records":[1]}}`: 412,
		`{"source":"a","data":{"records":[1,2]}}`:                  2,
		`{"source":"a","data":[1,2,3,4]}`:                          4,
		`{"source":"a"}`:                                           1,
	} {
		trial := &assay.Trial{Cell: assay.Cell{Reliability: 1}}
		w := assay1.New(kitchen(), trial, &assay.Task{Inputs: json.RawMessage(inputs)})
		var out struct{ Data struct{ Items int } }
		rec := mustCall(t, w, "read", `{"source":"a"}`)
		if err := json.Unmarshal([]byte(rec.Output), &out); err != nil || out.Data.Items != want {
			t.Errorf("inputs %s: %d items (%v), want %d", inputs, out.Data.Items, err, want)
		}
	}
}

// arguments match the tool's parameters.
func FuzzAssay1Arguments(f *testing.F) {
	for _, s := range []string{
		readArgs, `{"schema":{},"data":{"ref":"read"}}`, `{"n":1e400}`, `{"i":1.0}`,
		`{"o":{"ref":"inputs."}}`, `{"source":"a","source":"b"}`, "null", "",
	} {
		f.Add(s, s)
	}
	tools := kitchen().All()
	f.Fuzz(func(t *testing.T, first, second string) {
		var records [2][]assay.CallRecord
		for i := range records {
			w := begin(7, .9, assay.Setting{Persistence: .5})
			mustCall(t, w, "read", readArgs)
			for _, tool := range tools {
				for _, args := range []string{first, second} {
					rec := mustCall(t, w, tool.Name, args)
					checkRecord(t, tool, rec)
					records[i] = append(records[i], rec)
				}
			}
		}
		if diff := cmp.Diff(records[0], records[1]); diff != "" {
			t.Fatalf("the same calls give different records:\n%s", diff)
		}
	})
}

func checkRecord(t *testing.T, tool assay.Tool, rec assay.CallRecord) {
	t.Helper()
	if rec.Mistake {
		known := rec.Code == assay1.InvalidInput || rec.Code == assay1.DependencyFail
		if rec.OK || rec.Luck != 0 || rec.Chance != 0 || rec.Output != "" || !known {
			t.Fatalf("mistake %+v", rec)
		}
		return
	}
	if rec.OK != (rec.Luck < rec.Chance) || rec.OK != (rec.Code == "") ||
		rec.OK != json.Valid([]byte(rec.Output)) {
		t.Fatalf("record %+v", rec)
	}
	var args map[string]any
	if rec.Arguments != "" && strings.TrimSpace(rec.Arguments) != "" {
		d := json.NewDecoder(strings.NewReader(rec.Arguments))
		d.UseNumber()
		if err := d.Decode(&args); err != nil {
			t.Fatalf("accepted %q: %v", rec.Arguments, err)
		}
	}
	for name, v := range args {
		i := slices.IndexFunc(tool.Parameters, func(p assay.Parameter) bool {
			return p.Name == name
		})
		if v != nil && i < 0 {
			t.Fatalf("%s accepted %q, which is not a parameter", tool.Name, name)
		}
	}
	for _, p := range tool.Parameters {
		if p.Required && args[p.Name] == nil {
			t.Fatalf("%s accepted %q without %s", tool.Name, rec.Arguments, p.Name)
		}
	}
}
