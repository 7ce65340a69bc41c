package spec

import (
	"fmt"

	"github.com/assay-eval/assay"
)

// FallbackErrors are the errors of a tool that does not declare any.
var FallbackErrors = []assay.ToolError{
	{Code: "OPERATION_FAILED", Description: "The operation did not complete"},
	{Code: "INVALID_INPUT", Description: "The input was not accepted"},
	{Code: timeout, Description: "The operation took too long"},
	{Code: "DEPENDENCY_ERROR", Description: "Something this operation builds on is not there"},
	{Code: "RESOURCE_ERROR", Description: "A resource ran out"},
}

// FailureText words a failure by chance for the model.
func FailureText(tool assay.Tool, e assay.ToolError, luck Luck) string {
	text := e.Code + ": " + e.Description
	if d := detail(tool, e.Code, luck); d != "" {
		text += " (" + d + ")"
	}
	return text
}

// detail makes up a detail that fits the error code.
func detail(tool assay.Tool, code string, luck Luck) string {
	one := func(words ...string) string { return words[luck.Pick(1, len(words))] }
	switch code {
	case timeout:
		return fmt.Sprintf("after %d seconds", Seconds(luck))
	case "NETWORK_ERROR":
		return one("server", "endpoint", "service") + " unreachable"
	case "FILE_NOT_FOUND":
		return fmt.Sprintf("/data/%s_%d.dat", tool.Name, 100+luck.Pick(1, 900))
	case "PERMISSION_DENIED":
		return one("read", "write", "execute") + " access"
	case "INVALID_INPUT":
		return one("JSON", "XML", "CSV") + " expected"
	case "DEPENDENCY_ERROR":
		return one("data source", "configuration", "previous step") + " missing"
	}
	return ""
}
