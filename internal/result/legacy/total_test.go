package legacy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/result/legacy"
)

// TestSimilarModelsStayApart checks that names that seem to mean the same model
// are not merged.
func TestSimilarModelsStayApart(t *testing.T) {
	t.Parallel()
	text := `{"version": "3.0", "models": {` +
		model("my-model", "optimal", "0.8", "easy", "simple_task", good) + "," +
		model("My-Model", "optimal", "0.8", "easy", "simple_task", good) + "," +
		model("my-model-3", "optimal", "0.8", "easy", "simple_task", good) + "," +
		model("grok-3-mini", "optimal", "0.8", "easy", "simple_task", good) + "}}"
	db := read(t, text)
	if len(db.Aggregates) != 4 {
		t.Fatalf("%d leaves, want 4", len(db.Aggregates))
	}
	for _, a := range db.Aggregates {
		if !a.Usable || a.Stored.Total != 10 {
			t.Errorf("%s: %+v", a.Model, a)
		}
	}
}

func TestOverlappingLeavesAreNotUsable(t *testing.T) {
	t.Parallel()
	rates := edit(t, file(good), `"by_difficulty"`,
		`"by_difficulty": {"easy": {"by_task_type": {"simple_task": {`+good+`}}}}}, "0.80": {"by_difficulty"`)
	twice := `{"version": "3.0", "models": {` +
		model("m", "optimal", "0.8", "easy", "simple_task", good) + "," + model("m", "optimal",
		"0.8", "easy", "simple_task", good) + "}}"
	for name, text := range map[string]string{"rates": rates, "models": twice} {
		db := read(t, text)
		if len(db.Aggregates) != 2 || db.Aggregates[0].Usable || db.Aggregates[1].Usable {
			t.Errorf("%s: aggregates %+v, want two that are not usable", name, db.Aggregates)
		}
	}
}

// TestNamesOfTheOriginal checks that the lists taken from the root package are
// the original's.
func TestNamesOfTheOriginal(t *testing.T) {
	t.Parallel()
	prompts := []string{
		"baseline", "cot", "optimal",
		"flawed_sequence_disorder", "flawed_tool_misuse", "flawed_parameter_error",
		"flawed_missing_step", "flawed_redundant_operations",
		"flawed_logical_inconsistency", "flawed_semantic_drift",
	}
	if diff := cmp.Diff(prompts, legacy.Prompts); diff != "" {
		t.Errorf("prompt types (-original +ours):\n%s", diff)
	}
	categories := []string{
		"tool_call_format", "timeout", "max_turns", "tool_selection",
		"parameter_config", "sequence_order", "dependency", "other",
	}
	if diff := cmp.Diff(categories, legacy.Categories); diff != "" {
		t.Errorf("categories (-original +ours):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(good))
	f.Add(file(edit(f, good, `"total": 10`, `"total": NaN`, `"success": 7`, `"successful": null`)))
	f.Add(`{"version": "3.0", "models": {"a/b~c": {"by_prompt_type": 1}, "x": 2}, ` +
		`"summary": {"models_tested": [1]}, "test_groups": {"g": {}}}`)
	f.Add("{\"version\": \"3.0\",\n<<<<<<< HEAD\n}")
	f.Add(written(f, sample(5)))
	f.Fuzz(func(t *testing.T, text string) {
		db, err := legacy.Read("db.json", strings.NewReader(text))
		if err != nil {
			if len(err.Error()) > 4000 {
				t.Errorf("the error message has %d bytes", len(err.Error()))
			}
			return
		}
		checkJSON(t, db)
		for _, a := range db.Aggregates {
			c, ok := a.Counts()
			if ok && (c.Total != c.Success+c.Failed || c.Success != c.Full+c.Partial) {
				t.Errorf("usable counts contradict each other: %+v", c)
			}
		}
	})
}
