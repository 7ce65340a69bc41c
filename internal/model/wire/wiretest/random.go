package wiretest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

// Generator generates values for JSON documents.
type Generator = *rapid.Generator[any]

// Names, Objects, AnyText and Counts generate names of tools, texts of JSON objects, texts and
// numbers of tokens.
var (
	Names   = rapid.StringMatching(`[A-Za-z_][A-Za-z0-9_-]{0,62}`)
	Objects = rapid.Map(rapid.MapOfN(rapid.String(), rapid.Float64(), 1, 3),
		func(m map[string]float64) string {
			b, err := json.MarshalIndent(m, " ", "\t")
			if err != nil {
				panic(err)
			}
			return string(b)
		})
	AnyText = rapid.Map(rapid.String(), Any)
	Counts  = rapid.Map(rapid.IntRange(0, 1e6), Any)
)

// Any returns a value as any.
func Any[T any](v T) any { return v }

// OneOf generates one of the values.
func OneOf(values ...any) Generator { return rapid.SampledFrom(values) }

// ListOf generates lists of up to three entries.
func ListOf(entry Generator) Generator { return rapid.Map(rapid.SliceOfN(entry, 0, 3), Any) }

// FieldsOf generates objects with some of the fields. They have a type unless kind is empty.
func FieldsOf(kind string, fields map[string]Generator) Generator {
	return rapid.Custom(func(t *rapid.T) any {
		doc := map[string]any{}
		if kind != "" {
			doc["type"] = kind
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			if rapid.IntRange(0, 9).Draw(t, name) > 0 {
				doc[name] = fields[name].Draw(t, name)
			}
		}
		return doc
	})
}

// Messages generates messages of some roles. An empty reply has to be tested apart, because
// protocols replace it.
func Messages(
	texts, ids *rapid.Generator[string], roles ...assay.Role,
) *rapid.Generator[assay.Message] {
	return rapid.Custom(func(t *rapid.T) assay.Message {
		m := assay.Message{
			Role: rapid.SampledFrom(roles).Draw(t, "role"), Content: texts.Draw(t, "content"),
		}
		switch m.Role {
		case assay.ToolRole:
			m.CallID = ids.Draw(t, "call ID")
		case assay.Assistant:
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				m.Calls = append(m.Calls, assay.ToolCall{
					ID: ids.Draw(t, "ID"), Name: Names.Draw(t, "name"),
					Arguments: Objects.Draw(t, "arguments"),
				})
			}
			switch {
			case len(m.Calls) > 0 && rapid.Bool().Draw(t, "calls only"):
				m.Content = ""
			case len(m.Calls) == 0 && m.Content == "":
				m.Content = "x"
			}
		}
		return m
	})
}

// Functions generates functions, some of them without a description or without parameters.
func Functions(texts *rapid.Generator[string]) *rapid.Generator[assay.Function] {
	return rapid.Custom(func(t *rapid.T) assay.Function {
		f := assay.Function{Name: Names.Draw(t, "name")}
		if rapid.Bool().Draw(t, "with description") {
			f.Description = texts.Draw(t, "description")
		}
		if rapid.Bool().Draw(t, "with parameters") {
			f.Parameters = json.RawMessage(Objects.Draw(t, "parameters"))
		}
		return f
	})
}

// Conversation returns a request with 30 functions and nine answered calls.
func Conversation() assay.Request {
	schema := `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`
	req := assay.Request{Model: "small", Messages: []assay.Message{
		{Role: assay.System, Content: "do"}, {Role: assay.User, Content: "hi"},
	}}
	for i := range 30 {
		req.Functions = append(req.Functions, assay.Function{
			Name: fmt.Sprintf("tool_%d", i), Description: strings.Repeat("word ", 30),
			Parameters: json.RawMessage(schema),
		})
	}
	for i := range 9 {
		id := fmt.Sprintf("call_%d", i)
		req.Messages = append(req.Messages,
			assay.Message{Role: assay.Assistant, Calls: []assay.ToolCall{
				{ID: id, Name: "tool_1", Arguments: `{"path":"x"}`},
			}},
			assay.Message{Role: assay.ToolRole, CallID: id, Content: strings.Repeat("word ", 20)})
	}
	return req
}

// BenchmarkChat measures a provider with [Conversation].
func BenchmarkChat(b *testing.B, p assay.Provider) {
	req := Conversation()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Chat(b.Context(), &req); err != nil {
			b.Fatal(err)
		}
	}
}
