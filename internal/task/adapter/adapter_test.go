package adapter_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/adapter"
	"github.com/assay-eval/assay/internal/task/fresh"
	"github.com/assay-eval/assay/internal/task/library"
)

var (
	levels  = assay.Interfaces[1:]
	builtin = assay.NewCatalog(library.Tools())
)

// libraries are the catalogs of the built-in library, of fresh ones, and of one with all that schemas
// can say about values.
func libraries(t *testing.T) map[string]*assay.Catalog {
	t.Helper()
	all := map[string]*assay.Catalog{
		"builtin": builtin,
		"rich":    assay.NewCatalog([]assay.Tool{{Name: "book_room", Schema: json.RawMessage(rich)}}),
	}
	for seed := range 5 {
		all[fmt.Sprint("fresh ", seed)] = assay.NewCatalog(fresh.New(fmt.Sprint(seed)).Tools())
	}
	return all
}

const rich = `{"type":"object","additionalProperties":false,"required":["guest_name","nights"],"properties":{
	"guest_name":{"type":"string","description":"who stays, as in room_notes"},
	"nights":{"type":"integer","minimum":1,"maximum":30,"default":1},
	"rate":{"type":["number","null"]},
	"late":{"type":"boolean","default":false},
	"board":{"enum":["none","half_board","FULL"]},
	"arrival":{"type":"string","format":"date","description":"first day, as YYYY-MM-DD"},
	"checkin":{"type":"string","description":"time of day, such as 14:30"},
	"mail":{"type":"string","format":"email"},
	"ages":{"type":"array","items":{"type":"integer"}},
	"room_notes":{"anyOf":[{"type":"string"},{"type":"null"}]},
	"room":{"type":"object","properties":{"floor":{"type":"integer"},"sea_view":{"type":"boolean"}}},
	"extra":{"type":"object"},
	"any":{}
}}`

// TestCallsAreTranslatedOneToOne holds that an agent that keeps to the interface makes the call that it
// would have made with the tool's own one, for drawn arguments of all tools.
func TestCallsAreTranslatedOneToOne(t *testing.T) {
	t.Parallel()
	for name, catalog := range libraries(t) {
		for _, level := range levels {
			t.Run(name+" "+level, func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					tool := rapid.SampledFrom(catalog.All()).Draw(t, "tool")
					a := adapter.Of(level, catalog, &assay.Task{ID: drawTask(t)})
					own := encoded(drawValue(t, schemaOf(tool), 3))
					offered := a.Offer(tool.Name, []byte(own))
					back, mistake := a.Read(tool.Name, string(offered))
					if mistake != "" || !same(back, own) {
						t.Fatalf("%s is offered as %s, and read as %s (%s)", own, offered, back, mistake)
					}
				})
			})
		}
	}
}

// TestResultsAreTranslatedOneToOne holds the same for results, whatever is in them.
func TestResultsAreTranslatedOneToOne(t *testing.T) {
	t.Parallel()
	for name, catalog := range libraries(t) {
		for _, level := range levels {
			t.Run(name+" "+level, func(t *testing.T) {
				t.Parallel()
				rapid.Check(t, func(t *rapid.T) {
					a := adapter.Of(level, catalog, &assay.Task{ID: drawTask(t)})
					own := encoded(drawResult(t, 4))
					shown := a.Output(own)
					if back := a.Original(shown); !same(back, own) {
						t.Fatalf("%s is shown as %s, which means %s", own, shown, back)
					}
				})
			})
		}
	}
}

// FuzzArguments holds that no arguments, however wrong, are a valid call of another kind: what is read
// is offered as it was written.
func FuzzArguments(f *testing.F) {
	for _, text := range []string{
		`{"guest_name":"A","nights":"2"}`, `{"GuestName":1}`, `{"nights":2,"room":{"floor":"3"}}`, `[]`, `{"a":{"b":`,
	} {
		f.Add(text, 3)
	}
	catalog := assay.NewCatalog([]assay.Tool{{Name: "book_room", Schema: json.RawMessage(rich)}})
	f.Fuzz(func(t *testing.T, text string, task int) {
		for _, level := range levels {
			a := adapter.Of(level, catalog, &assay.Task{ID: assay.TaskID(fmt.Sprint(task))})
			own, _ := a.Read("book_room", text)
			if !json.Valid([]byte(text)) {
				if own != text {
					t.Errorf("%q, which is not JSON, is read as %q", text, own)
				}
				continue
			}
			if again := a.Offer("book_room", []byte(own)); !same(string(again), text) {
				t.Errorf("%s: %s is read as %s, which is offered as %s", level, text, own, again)
			}
		}
	})
}

// TestNamesStayDifferent holds that no two parameters of a tool get one name, that none gets the own
// name of another one, and that own names are refused where others are offered.
func TestNamesStayDifferent(t *testing.T) {
	t.Parallel()
	changed, refused := 0, 0
	for name, catalog := range libraries(t) {
		for _, level := range levels {
			for n := range 30 {
				a := adapter.Of(level, catalog, &assay.Task{ID: assay.TaskID(fmt.Sprint(n))})
				for _, tool := range catalog.All() {
					schema := schemaOf(tool)
					offered := properties(json.RawMessage(a.Schema(tool.Name, encodedBytes(schema))))
					own := properties(encodedBytes(schema))
					if len(offered) != len(own) {
						t.Fatalf("%s, %s: %v are offered as %v", name, level, own, offered)
					}
					for _, parameter := range own {
						if a.Name(parameter) == parameter {
							continue
						}
						changed++
						if !slices.Contains(offered, a.Name(parameter)) || slices.Contains(offered, parameter) {
							t.Fatalf("%s, %s: %v are offered as %v", name, level, own, offered)
						}
						_, mistake := a.Read(tool.Name, fmt.Sprintf(`{%q:null}`, parameter))
						if !strings.Contains(mistake, a.Name(parameter)) {
							t.Errorf("%s, %s: %s is answered by %q", name, level, parameter, mistake)
						}
						refused++
					}
				}
			}
		}
	}
	if changed < 1000 || refused != changed {
		t.Errorf("%d names were changed, and %d refused", changed, refused)
	}
}

// TestValuesInTheirOwnFormatAreMistakes holds what a severe interface refuses, and what it says.
func TestValuesInTheirOwnFormatAreMistakes(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{{Name: "book_room", Schema: json.RawMessage(rich)}})
	a := adapter.Of(assay.Severe, catalog, &assay.Task{ID: "hotel"})
	for own, want := range map[string]string{
		`{"nights":2}`:             "a number in quotes",
		`{"late":true}`:            `has to be "`,
		`{"board":"half_board"}`:   `one of "NONE", "HALF_BOARD", "full"`,
		`{"arrival":"2025-03-01"}`: "as the tool writes dates",
		`{"checkin":"14:30"}`:      "2:30 PM",
		`{"ages":[3]}`:             "a number in quotes",
		`{"room":{"floor":1}}`:     "a number in quotes",
		`{"guest_name":"A"}`:       "",
		`{"extra":{"nights":2}}`:   "",
	} {
		text := own
		for _, name := range properties([]byte(rich)) {
			text = strings.ReplaceAll(text, `{"`+name+`"`, `{"`+a.Name(name)+`"`)
		}
		text = strings.Replace(text, `"floor"`, `"`+a.Name("floor")+`"`, 1)
		if strings.HasPrefix(own, `{"extra"`) {
			text = `{"` + a.Name("extra") + `":{"nights":2}}`
		}
		if _, mistake := a.Read("book_room", text); (mistake == "") != (want == "") || !strings.Contains(mistake, want) {
			t.Errorf("%s is answered by %q, want %q", text, mistake, want)
		}
	}
}

// TestSaidDatesCountInBothFormats holds that people are told dates and times as the tools have them.
func TestSaidDatesCountInBothFormats(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{{Name: "book_room", Schema: json.RawMessage(rich)}})
	for n := range 20 {
		a := adapter.Of(assay.Severe, catalog, &assay.Task{ID: assay.TaskID(fmt.Sprint(n))})
		shown := a.Output(`{"day":"2025-03-31","at":"00:05","then":"2025-03-31T23:59:10Z"}`)
		if strings.Contains(shown, "2025-03-31") || strings.Contains(shown, "00:05") {
			t.Errorf("the result is shown as %s", shown)
		}
		if said := a.Said("It is due: " + shown); strings.Count(said, "2025-03-31") != 2 || !strings.Contains(said, `"00:05"`) {
			t.Errorf("%q is heard as %q", shown, said)
		}
	}
}

// TestHigherLevelsKeepTheChoicesOfLowerOnes holds that levels differ in what they add only.
func TestHigherLevelsKeepTheChoicesOfLowerOnes(t *testing.T) {
	t.Parallel()
	catalog := builtin
	for n := range 20 {
		task := &assay.Task{ID: assay.TaskID(fmt.Sprint(n))}
		medium, severe := adapter.Of(assay.Medium, catalog, task), adapter.Of(assay.Severe, catalog, task)
		if a, b := medium.Output(`{"success":null,"data":{}}`), severe.Output(`{"success":null,"data":{}}`); a != b {
			t.Errorf("a result is shown as %s and %s", a, b)
		}
		if a, b := medium.Name("retry_count"), severe.Name("retry_count"); a != b {
			t.Errorf("a parameter is offered as %s and %s", a, b)
		}
	}
	if adapter.Of("", catalog, &assay.Task{}) != nil || adapter.Of(assay.PlainInterface, catalog, &assay.Task{}) != nil {
		t.Error("the tools' own interface has an adapter")
	}
}

func drawTask(t *rapid.T) assay.TaskID {
	return assay.TaskID(fmt.Sprint("task-", rapid.IntRange(0, 40).Draw(t, "task")))
}

// schemaOf returns the schema of a tool's arguments.
func schemaOf(t assay.Tool) map[string]any {
	if len(t.Schema) > 0 {
		return decoded(string(t.Schema)).(map[string]any)
	}
	members := make(map[string]any)
	for _, p := range t.Parameters {
		members[p.Name] = map[string]any{"type": p.Type}
	}
	return map[string]any{"type": "object", "properties": members}
}

func properties(schema []byte) []string {
	var s struct{ Properties map[string]any }
	if err := json.Unmarshal(schema, &s); err != nil {
		panic(err)
	}
	return slices.Sorted(maps.Keys(s.Properties))
}

// drawValue draws a value that a schema allows.
func drawValue(t *rapid.T, schema map[string]any, depth int) any {
	if choices, ok := schema["anyOf"].([]any); ok {
		schema = rapid.SampledFrom(choices).Draw(t, "choice").(map[string]any)
	}
	if values, ok := schema["enum"].([]any); ok {
		return rapid.SampledFrom(values).Draw(t, "value")
	}
	kind, _ := schema["type"].(string)
	if kinds, ok := schema["type"].([]any); ok {
		kind = rapid.SampledFrom(kinds).Draw(t, "type").(string)
	}
	switch kind {
	case "object":
		members, ok := schema["properties"].(map[string]any)
		if !ok {
			return drawResult(t, 1)
		}
		v := make(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if rapid.Bool().Draw(t, name) {
				v[name] = drawValue(t, members[name].(map[string]any), depth-1)
			}
		}
		return v
	case "array":
		items, ok := schema["items"].(map[string]any)
		if !ok {
			return []any{drawResult(t, 1)}
		}
		return []any{drawValue(t, items, depth-1), drawValue(t, items, depth-1)}
	case "integer":
		return rapid.IntRange(-1000, 1000).Draw(t, "integer")
	case "number":
		return rapid.SampledFrom([]any{0, 1.5, -2, 1e30}).Draw(t, "number")
	case "boolean":
		return rapid.Bool().Draw(t, "boolean")
	case "null":
		return nil
	case "string":
		return rapid.SampledFrom([]string{
			"", "text", "12", "yes", "2025-01-31", "2025-01-31T10:00:00Z", "2025-01-31 10:00", "09:05", "23:59:59",
		}).Draw(t, "text")
	}
	return drawResult(t, 1)
}

// drawResult draws any JSON value.
func drawResult(t *rapid.T, depth int) any {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 {
		kind = min(kind, 5)
	}
	switch kind {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "boolean")
	case 2:
		return rapid.IntRange(-1e6, 1e6).Draw(t, "number")
	case 3, 4:
		return rapid.SampledFrom([]string{
			"", "text", "12", "-0.5", "1e3", "007", "yes", "no", "Y", "N", "on", "off", "true", "2025-01-31", "31/01/2025",
			"31.01.2025", "01/31/2025", "2025/01/31", "2025-02-30", "2025-01-31T10:00:00Z", "31/01/2025 10:00:00Z",
			"31.01.2025, 10:00", "2025-01-31 10:00", "00:00", "12:30", "12:30 AM", "2:30 PM", "14:30 PM", "23:59:59",
		}).Draw(t, "text")
	case 5:
		return rapid.String().Draw(t, "any text")
	case 6:
		var items []any
		for range rapid.IntRange(0, 3).Draw(t, "items") {
			items = append(items, drawResult(t, depth-1))
		}
		return append([]any{}, items...)
	}
	members := make(map[string]any)
	for range rapid.IntRange(0, 4).Draw(t, "members") {
		name := rapid.SampledFrom([]string{
			"success", "Success", "succ", "data", "Data", "metadata", "meta", "items", "checksum", "a.b", `a\`, `\.`, "", ".",
			"status", "attributes", "relations", "guest_name", "guest-name", "GuestName", "alice",
		}).Draw(t, "name")
		members[name] = drawResult(t, depth-1)
	}
	return members
}

func encodedBytes(v any) []byte { return []byte(encoded(v)) }

func encoded(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func decoded(text string) (v any) {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		return err
	}
	return v
}

func same(a, b string) bool { return reflect.DeepEqual(decoded(a), decoded(b)) }
