package library

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
	"github.com/assay-eval/assay/internal/task/mcp"
)

// unknownArgument returns the first argument of a call that its tool does not have, and the names
// of those that it has.
func unknownArgument(tool assay.Tool, arguments map[string]any) (name string, known []string) {
	for _, p := range tool.Parameters {
		known = append(known, p.Name)
	}
	if len(arguments) == 0 || isOpen(tool.Schema) {
		return "", known
	}
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		if !slices.Contains(known, name) {
			return name, known
		}
	}
	return "", known
}

// isOpen reports whether a schema may have members beside its properties. Without a word about
// others, JSON Schema permits them, but whoever lists parameters means these.
func isOpen(schema json.RawMessage) bool {
	var s map[string]json.RawMessage
	if json.Unmarshal(schema, &s) != nil {
		return true
	}
	others, named := s["additionalProperties"]
	for _, word := range []string{"patternProperties", "allOf", "anyOf", "oneOf", "if", "$ref", "$dynamicRef"} {
		if s[word] != nil {
			return true
		}
	}
	return named && string(others) != "false" || !named && s["properties"] == nil
}

// argument returns an error unless the tool of a call has its arguments.
func (r *taskReader) argument(path string, e *callEntry) error {
	tool, _ := r.tools.catalog.Tool(e.Tool)
	name, known := unknownArgument(tool, e.Arguments)
	if name == "" {
		return nil
	}
	return r.doc.AtKey(path+".arguments", name, fmt.Sprintf("tool %s has no argument %q", e.Tool, name),
		assay.NameHint(name, known))
}

// fits returns an error unless a definite call has arguments that its tool takes.
func (r *taskReader) fits(path string, e *callEntry) error {
	if err := r.argument(path, e); err != nil {
		return err
	}
	text := strings.ReplaceAll(string(jsonOf(e.Arguments)), child.Scratch, mcp.Scratch)
	if _, err := r.tools.kit.ReadArguments(e.Tool, text); err != nil {
		err = fmt.Errorf("the arguments do not fit the tool %s: %w", e.Tool, err)
		return assay.WithHint(r.doc.At(path+".arguments", err.Error(), ""), assay.HintTryTool)
	}
	return nil
}

// anyArguments is for the calls of a flawed plan, which may be wrong.
func anyArguments(string, *callEntry) error { return nil }

// nothingAsked returns the path of an empty mapping in a wanted state whose place has a mapping from
// the beginning, because every mapping contains it. It returns "" if there is none.
func nothingAsked(want, start any, path string) string {
	w, ok := want.(map[string]any)
	s, both := start.(map[string]any)
	switch {
	case !ok || !both:
		return ""
	case len(w) == 0:
		return path
	}
	for _, name := range slices.Sorted(maps.Keys(w)) {
		if found := nothingAsked(w[name], s[name], path+"."+name); found != "" {
			return found
		}
	}
	return ""
}
