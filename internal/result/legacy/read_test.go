package legacy_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/result/legacy"
)

func read(t testing.TB, text string) *legacy.Database {
	t.Helper()
	db, err := legacy.Read("db.json", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

const good = `"total": 10, "success": 7, "partial": 3, "failed": 3, "success_rate": 0.7, "partial_rate": 0.3, "failure_rate": 0.3,
"weighted_success_score": 0.55, "full_success_rate": 0.4, "partial_success_rate": 0.3, "avg_execution_time": 12.5, "avg_turns": 8,
"avg_tool_calls": 4, "tool_coverage_rate": 0.5, "avg_workflow_score": 0.6, "avg_phase2_score": 0.7, "avg_quality_score": 0.8,
"avg_final_score": 0.7, "total_errors": 6, "tool_call_format_errors": 1, "timeout_errors": 0, "dependency_errors": 0,
"parameter_config_errors": 0, "tool_selection_errors": 2, "sequence_order_errors": 3, "max_turns_errors": 0, "other_errors": 0,
"tool_selection_error_rate": 0.33333333333, "parameter_error_rate": 0, "sequence_error_rate": 0.5, "dependency_error_rate": 0,
"timeout_error_rate": 0, "format_error_rate": 0.16666666667, "max_turns_error_rate": 0, "other_error_rate": 0,
"assisted_failure": 1, "assisted_success": 1, "total_assisted_turns": 3, "tests_with_assistance": 2, "avg_assisted_turns": 1.5,
"assisted_success_rate": 0.5, "assistance_rate": 0.2, "full_success": 4, "partial_success": 3`

// compact removes the white space of the leaf above.
var compact = strings.NewReplacer(" ", "", "\n", "")

// edit replaces each old text by the new one that follows it.
func edit(t testing.TB, text string, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("the text does not contain %q", oldnew[i])
		}
		text = strings.Replace(text, oldnew[i], oldnew[i+1], 1)
	}
	return text
}

// file returns a file with one leaf, of a model without totals.
func file(leaf string) string {
	return `{"version": "3.0", "created_at": "2025-08-27T00:18:31.193951", "last_updated": "", ` +
		`"models": {` +
		model("qwen2.5-7b-instruct", "optimal", "0.8", "easy", "simple_task", leaf) + `}}`
}

func model(name, prompt, rate, difficulty, taskType, leaf string) string {
	return fmt.Sprintf(
		`%q: {"by_prompt_type": {%q: {"by_tool_success_rate": {%q: {"by_difficulty": {%q: {"by_task_type": {%q: {%s}}}}}}}}}`,
		name, prompt, rate, difficulty, taskType, leaf)
}

func TestGoodLeaf(t *testing.T) {
	t.Parallel()
	db := read(t, file(good))
	want := legacy.Aggregate{
		Model: "qwen2.5-7b-instruct", Variant: "optimal", Difficulty: "easy",
		TaskType: "simple_task", Rate: "0.8", Reliability: .8,
		Stored: legacy.Counts{Total: 10, Success: 7, Full: 4, Partial: 3, Failed: 3, Errors: 6},
		Rule:   legacy.AsStored, Usable: true, Reason: "the counts agree",
		Leaf: json.RawMessage("{" + compact.Replace(good) + "}"),
	}
	if diff := cmp.Diff(want, db.Aggregates[0]); diff != "" {
		t.Errorf("aggregate (-want +got):\n%s", diff)
	}
	if db.CreatedAt != "2025-08-27T00:18:31.193951" {
		t.Errorf("CreatedAt = %q", db.CreatedAt)
	}
}

// set sets fields of a leaf: "total 11; failed -" changes total and removes failed.
func set(t testing.TB, leaf, fields string) string {
	t.Helper()
	for field := range strings.SplitSeq(fields, "; ") {
		name, value, _ := strings.Cut(field, " ")
		old := regexp.MustCompile(`"` + name + `": [^,\n]*(,|$)`)
		if !old.MatchString(leaf) {
			t.Fatalf("the leaf does not have %s", name)
		}
		text := `"` + name + `": ` + value + "$1"
		if value == "-" {
			text = ""
		}
		leaf = old.ReplaceAllString(leaf, text)
	}
	return leaf
}

// TestLeafRules changes the good leaf, which has 4 full, 3 partial and 3 failed
// tests. Counts are to be used if there is a rule.
func TestLeafRules(t *testing.T) {
	t.Parallel()
	const (
		uncategorised = "total_errors 0; tool_call_format_errors 0; tool_selection_errors 0; " +
			"sequence_order_errors 0"
		twice = "total 20; success 14; failed 6"
	)
	for _, tt := range []struct {
		name, fields string
		rule         legacy.Rule
	}{
		{"every test counted twice", twice, legacy.Doubled},
		{
			"some tests counted twice", "total 14; success 9; failed 5", legacy.PartlyDoubled,
		},
		{
			"counted three times", "total 30; success 21; failed 9", "",
		},
		{
			"twice, but the categories do not bear it out", twice + "; sequence_order_errors 1", "",
		},
		{"total is no sum", "total 11", ""},
		{"success is no sum", "success 6", ""},
		{"errors are no sum", "total_errors 5", ""},
		{"categories are no sum", "sequence_order_errors 2", legacy.AsStored},
		{"partial under two names", "partial_success 2", ""},
		{"no category at all", uncategorised, legacy.Unclassified},
		{"full missing, its rate not", "full_success -", legacy.FullFromRate},
		{"full missing, its rate odd", "full_success -; full_success_rate 0.42", ""},
		{"total missing", "total -", ""},
		{"total null", "total null", ""},
		{"an average is NaN", "avg_turns NaN", legacy.AsStored},
		{"a rate is infinite", "success_rate -Infinity", legacy.AsStored},
		{"a count is a text", `failed "3"`, ""},
		{"a count is a list", "tests_with_assistance [1, 2]", legacy.AsStored},
		{"a count has a half", "failed 3.5", ""},
		{"a count is enormous", "failed 1e300", ""},
		{"a count is negative", "other_errors -1", legacy.AsStored},
		{"whole, but a float", "failed 3.0", legacy.AsStored},
		{"older name", `success -; failed 3, "successful": 7`, legacy.AsStored},
		{"both names", `success 7, "successful": 9`, legacy.AsStored},
		{"a field too many", `success 7, "note": "x"`, legacy.AsStored},
		{"a field twice", `success 9, "success": 7`, legacy.AsStored},
		{"a wrong rate", "success_rate 0.9", legacy.AsStored},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := read(t, file(set(t, good, tt.fields)))
			want := legacy.Counts{Total: 10, Success: 7, Full: 4, Partial: 3, Failed: 3, Errors: 6}
			switch tt.rule {
			case "":
				want = legacy.Counts{}
			case legacy.Unclassified:
				want.Errors = 0
			}
			a := db.Aggregates[0]
			counts, usable := a.Counts()
			if a.Rule != tt.rule || counts != want || usable != (tt.rule != "") || a.Reason == "" {
				t.Errorf("rule %q, counts %+v, want %q and %+v: %s",
					a.Rule, counts, tt.rule, want, a.Reason)
			}
			checkJSON(t, db)
		})
	}
}

func TestUnknownNames(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		leaf, reason string
	}{
		"deployment":     {"DeepSeek-V3-0324-2 optimal 0.8 easy simple_task", ""},
		"case":           {"Qwen2.5-7B-Instruct optimal 0.8 easy simple_task", ""},
		"test":           {"test-model-protection optimal 0.8 easy simple_task", "test of the program"},
		"flawed":         {"m flawed 0.8 easy simple_task", "flaw is unknown"},
		"prompt":         {"m optimum 0.8 easy simple_task", "prompt type"},
		"difficulty":     {"m optimal 0.8 eazy simple_task", "difficulty"},
		"type":           {"m optimal 0.8 easy simple_tasks", "task type"},
		"rate 1.0":       {"m optimal 1.0 easy simple_task", "no suite has this rate"},
		"rate percent":   {"m optimal 80 easy simple_task", "no suite has this rate"},
		"rate NaN":       {"m optimal NaN easy simple_task", "no suite has this rate"},
		"rate in words":  {"m optimal high easy simple_task", "no suite has this rate"},
		"rate, odd form": {"m optimal 0.80 easy simple_task", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := strings.Fields(tt.leaf)
			db := read(t, `{"version": "3.0", "models": {`+
				model(n[0], n[1], n[2], n[3], n[4], good)+`}}`)
			a := db.Aggregates[0]
			if a.Usable != (tt.reason == "") || !strings.Contains(a.Reason, tt.reason) ||
				a.Stored.Total != 10 || a.Rule != legacy.AsStored {
				t.Errorf("usable %v, want the reason %q: %+v", a.Usable, tt.reason, a)
			}
			checkJSON(t, db)
		})
	}
}
