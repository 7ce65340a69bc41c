package library

import (
	"slices"

	"github.com/assay-eval/assay"
)

// Tools returns the thirty built-in tools in execution order: a tool comes after the tools that
// it depends on. Each call returns a fresh copy.
func Tools() []assay.Tool {
	set := toolData()
	tools := make([]assay.Tool, len(set.Tools))
	for i, s := range set.Tools {
		tools[i] = assay.Tool{
			Name:         s.Category + "_" + s.Operation,
			Category:     s.Category,
			Operation:    s.Operation,
			Description:  s.Description,
			Parameters:   set.parameters(s),
			Returns:      set.returns(s),
			Errors:       set.errors(s),
			Dependencies: append([]string{}, s.Dependencies...),
			Effect:       s.Effect,
		}
	}
	return tools
}

func (set toolset) parameters(s toolSpec) []assay.Parameter {
	params := slices.Concat(s.Parameters, set.Categories[s.Category].Parameters)
	for i := range params {
		params[i].Required = params[i].Default == nil
	}
	return append(params, assay.Parameter{
		Name:        "options",
		Type:        "object",
		Description: s.Options,
		Default:     map[string]any{},
	})
}

func (set toolset) returns(s toolSpec) []assay.Return {
	return slices.Concat(
		[]assay.Return{{Name: "success", Type: "boolean", Description: set.Success}},
		s.Returns,
		[]assay.Return{{Name: "metadata", Type: "object", Description: s.Metadata}},
	)
}

func (set toolset) errors(s toolSpec) []assay.ToolError {
	errs := slices.Concat(set.Errors, set.Categories[s.Category].Errors)
	for i := range errs {
		if errs[i].Code == "OPERATION_FAILED" {
			errs[i].Description = s.Failed
		}
	}
	return errs
}
