package library

import (
	"slices"

	"github.com/assay-eval/assay"
)

// Tools returns the thirty built-in tools in execution order: a tool comes
// after those that it depends on. Each call returns a fresh copy.
func Tools() []assay.Tool {
	specs := slices.Concat(sourceTools(), localTools(), serviceTools(), dependentTools())
	tools := make([]assay.Tool, len(specs))
	for i, s := range specs {
		tools[i] = s.tool()
	}
	return tools
}

// The categories of tools. Some bring parameters and errors of their own.
const (
	files       = "file_operations"
	processing  = "data_processing"
	network     = "network"
	computation = "computation"
	integration = "integration"
	utility     = "utility"
)

// A spec is what sets one built-in tool apart; the rest follows from its
// category.
type spec struct {
	category, operation string
	description         string
	params              []assay.Parameter
	// options describes the keys of the options parameter.
	options string
	returns []assay.Return
	// metadata describes what the tool tells about the work that it did.
	metadata string
	// failed describes OPERATION_FAILED.
	failed string
	deps   []string
}

func (s spec) tool() assay.Tool {
	return assay.Tool{
		Name:         s.category + "_" + s.operation,
		Category:     s.category,
		Operation:    s.operation,
		Description:  s.description,
		Parameters:   s.parameters(),
		Returns:      s.results(),
		Errors:       s.errors(),
		Dependencies: append([]string{}, s.deps...),
	}
}

func (s spec) parameters() []assay.Parameter {
	params := slices.Clone(s.params)
	switch s.category {
	case network:
		params = append(params,
			optional("timeout", "number", "Seconds to wait for the remote side before the call is given up.", 30.0),
			optional("retry_count", "number", "How many more times to try when the connection drops.", 3.0))
	case computation:
		params = append(params,
			optional("precision", "number", "Decimal places to keep in the numbers that come back.", 2.0))
	}
	return append(params, optional("options", "object", s.options, map[string]any{}))
}

func (s spec) results() []assay.Return {
	r := []assay.Return{{Name: "success", Type: "boolean", Description: "True when the call did its work, false when it stopped early."}}
	r = append(r, s.returns...)
	return append(r, assay.Return{Name: "metadata", Type: "object", Description: s.metadata})
}

func (s spec) errors() []assay.ToolError {
	errs := []assay.ToolError{
		{Code: "INVALID_INPUT", Description: "An argument is missing, has the wrong type or makes no sense to this tool."},
		{Code: "OPERATION_FAILED", Description: s.failed},
		{Code: "TIMEOUT", Description: "The work was not done within the time allowed and was stopped."},
	}
	switch s.category {
	case files:
		errs = append(errs,
			assay.ToolError{Code: "FILE_NOT_FOUND", Description: "Nothing exists at the path that was given."},
			assay.ToolError{Code: "PERMISSION_DENIED", Description: "The account that runs the tool may not use this path."})
	case network:
		errs = append(errs,
			assay.ToolError{Code: "NETWORK_ERROR", Description: "The remote host could not be reached or the connection broke off."},
			assay.ToolError{Code: "INVALID_RESPONSE", Description: "The remote host answered with something that cannot be understood."})
	case computation:
		errs = append(errs,
			assay.ToolError{Code: "CALCULATION_ERROR", Description: "The numbers allow no answer, as in a division by zero or an empty series."},
			assay.ToolError{Code: "OVERFLOW", Description: "A number grew larger than the tool can hold."})
	}
	return errs
}

func required(name, typ, description string) assay.Parameter {
	return assay.Parameter{Name: name, Type: typ, Description: description, Required: true}
}

func optional(name, typ, description string, def any) assay.Parameter {
	return assay.Parameter{Name: name, Type: typ, Description: description, Default: def}
}

func object(name, description string) assay.Return {
	return assay.Return{Name: name, Type: "object", Description: description}
}

// verdict is what validators return.
func verdict(valid, errors string) []assay.Return {
	return []assay.Return{
		{Name: "valid", Type: "boolean", Description: valid},
		{Name: "errors", Type: "array", Description: errors},
	}
}
