package legacy

import (
	"slices"

	"github.com/assay-eval/assay"
)

// leafFields are the fields of a leaf.
var leafFields = []string{
	"total", "success", "partial", "failed",
	"success_rate", "partial_rate", "failure_rate", "weighted_success_score",
	"full_success_rate", "partial_success_rate",
	"avg_execution_time", "avg_turns", "avg_tool_calls", "tool_coverage_rate",
	"avg_workflow_score", "avg_phase2_score", "avg_quality_score", "avg_final_score",
	"total_errors", "tool_call_format_errors", "timeout_errors", "dependency_errors",
	"parameter_config_errors",
	"tool_selection_errors", "sequence_order_errors", "max_turns_errors", "other_errors",
	"tool_selection_error_rate", "parameter_error_rate", "sequence_error_rate",
	"dependency_error_rate",
	"timeout_error_rate", "format_error_rate", "max_turns_error_rate", "other_error_rate",
	"assisted_failure", "assisted_success", "total_assisted_turns", "tests_with_assistance",
	"avg_assisted_turns", "assisted_success_rate", "assistance_rate",
	"full_success", "partial_success",
}

// renamed maps names that some of the original's writers used to the usual
// ones.
var renamed = map[string]string{"successful": "success", "failure": "failed"}

// categories are the original's error categories. The count of a category is in
// the field with its name and errorSuffix. Categories that it did not have count
// as other.
var categories = slices.DeleteFunc(slices.Clone(assay.ErrorCategories),
	func(c string) bool {
		return c == assay.CategoryUnwantedEffect || c == assay.CategoryAgentFailure ||
			c == assay.CategoryFramework || c == assay.CategoryJudge
	})

const errorSuffix = "_errors"

// A ratio is a field that follows from counts: (count + half/2) / by, or 0 if
// by is 0.
type ratio struct{ name, count, half, by string }

var ratios = []ratio{
	{"success_rate", "success", "", "total"},
	{"partial_rate", "partial", "", "total"},
	{"failure_rate", "failed", "", "total"},
	{"weighted_success_score", "full_success", "partial", "total"},
	{"full_success_rate", "full_success", "", "total"},
	{"partial_success_rate", "partial", "", "total"},
	{"tool_selection_error_rate", "tool_selection_errors", "", "total_errors"},
	{"parameter_error_rate", "parameter_config_errors", "", "total_errors"},
	{"sequence_error_rate", "sequence_order_errors", "", "total_errors"},
	{"dependency_error_rate", "dependency_errors", "", "total_errors"},
	{"timeout_error_rate", "timeout_errors", "", "total_errors"},
	{"format_error_rate", "tool_call_format_errors", "", "total_errors"},
	{"max_turns_error_rate", "max_turns_errors", "", "total_errors"},
	{"other_error_rate", "other_errors", "", "total_errors"},
	{"avg_assisted_turns", "total_assisted_turns", "", "tests_with_assistance"},
	{"assisted_success_rate", "assisted_success", "", "tests_with_assistance"},
	{"assistance_rate", "tests_with_assistance", "", "total"},
}

// of computes the ratio from counts by name. Missing counts are 0.
func (r ratio) of(counts map[string]float64) float64 {
	if counts[r.by] == 0 {
		return 0
	}
	return (counts[r.count] + counts[r.half]/2) / counts[r.by]
}
