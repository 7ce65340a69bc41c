package classify_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/agent/classify"
)

func TestLabel(t *testing.T) {
	t.Parallel()
	for want, texts := range map[string][]string{
		"tool_call_format": {
			"tool_call_format", "tool_call_format_errors", "Tool Call Format",
			"ToolCallFormatError", "format", "format_errors", "formating",
			"tool-call-formating errors", "call format",
		},
		"timeout": {
			"timeout", "TIMEOUT", "timeout_errors", "time-out", "timed out", "timout",
			"timout_error", "tiemout", "Timeouts", "`timeout`", " timeout. ",
		},
		"max_turns": {
			"max_turns", "max_turns_errors", "MaxTurns", "max turn", "maximum turns",
			"turn_limit", "max_tuns",
		},
		"tool_selection": {
			"tool_selection", "tool_selection_errors", "tool selection error",
			"**tool_selection**", "selection", "tool_seletion", "tool choice",
		},
		"parameter_config": {
			"parameter_config", "parameter_config_errors", "parameter", "parameters",
			"paramter_config", "paramter", "parameter configuration", "Parameter-Config",
		},
		"sequence_order": {
			"sequence_order", "sequence_order_errors", "sequence", "order", "sequnce",
			"sequnce_order_errors", "Sequence/Order",
		},
		"dependency": {
			"dependency", "dependency_errors", "dependencies", "dependancy",
			"dependancy_errors", "Dependency Error",
		},
		"other": {
			"other", "other_errors", "Others", "OTHER", "othr",
		},
		"": {
			"", " ", "error", "errors", "unknown", "none", "n/a", "success", "tool", "tool_call",
			"tool_error", "tool_execution", "network_error", "api", "max", "agent", "orher",
			"timeout or max_turns", "timeout, other", "not a timeout", "category", "tout",
			"tool_selection_and_order",
		},
	} {
		for _, text := range texts {
			if got, ok := classify.Label(text); got != want || ok != (want != "") {
				t.Errorf("Label(%q) = %q, %v, want %q", text, got, ok, want)
			}
		}
	}
}

// TestLabelForgivesOneSlip checks that a name with one letter removed, added, replaced or swapped
// with the next is still recognised.
func TestLabelForgivesOneSlip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SampledFrom(classify.Categories).Draw(t, "category")
		b := []byte(want)
		i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		letter := byte(rapid.IntRange('a', 'z').Draw(t, "letter"))
		switch rapid.SampledFrom([]string{"out", "in", "replaced", "swapped"}).Draw(t, "slip") {
		case "out":
			b = slices.Delete(b, i, i+1)
		case "in":
			b = slices.Insert(b, i, letter)
		case "replaced":
			b[i] = letter
		case "swapped":
			if i > 0 && b[i] != '_' && b[i-1] != '_' {
				b[i-1], b[i] = b[i], b[i-1]
			}
		}
		if s := string(b); s == "orher" || s == "otder" {
			return // just as close to order
		}
		if got, ok := classify.Label(string(b)); got != want || !ok {
			t.Fatalf("Label(%q) = %q, %v, want %q", b, got, ok, want)
		}
	})
}

// TestLabelIsAlwaysCategory checks that for any text a label is a category.
func TestLabelIsAlwaysCategory(t *testing.T) {
	t.Parallel()
	words := rapid.SampledFrom(strings.Fields("tool call format time out max turns selection parameter " +
		"config sequence order dependency other error errors limit"))
	text := rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string {
		between := rapid.SampledFrom([]string{"", " ", "_", "-"}).Draw(t, "between")
		return strings.Join(rapid.SliceOfN(words, 0, 4).Draw(t, "words"), between)
	}))
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		got, ok := classify.Label(s)
		if ok != slices.Contains(classify.Categories, got) || !ok && got != "" {
			t.Fatalf("Label(%q) = %q, %v", s, got, ok)
		}
	})
}
