package legacy_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/result/legacy"
)

func read(t testing.TB, text string) *legacy.Database {
	t.Helper()
	db, err := legacy.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func finding(t *testing.T, db *legacy.Database, kind, path string) legacy.Finding {
	t.Helper()
	for _, f := range db.Findings {
		if f.Kind == kind && f.Path == path {
			return f
		}
	}
	t.Fatalf("no finding %s at %s among %+v", kind, path, db.Findings)
	return legacy.Finding{}
}

func kinds(db *legacy.Database) []string {
	var names []string
	for _, f := range db.Findings {
		names = append(names, f.Kind)
	}
	return slices.Compact(names)
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

// leafFindings returns the findings about leaves and their parents.
func leafFindings(db *legacy.Database) []string {
	var names []string
	for _, f := range db.Findings {
		if strings.Contains(f.Path, "by_task_type") {
			names = append(names, f.Kind)
		}
	}
	return names
}

func TestGoodLeafHasNoFindings(t *testing.T) {
	t.Parallel()
	db := read(t, file(good))
	if got := leafFindings(db); len(got) > 0 {
		t.Errorf("findings about a good leaf: %v", db.Findings)
	}
	want := legacy.Aggregate{
		Path:  "models/qwen2.5-7b-instruct/by_prompt_type/optimal/by_tool_success_rate/0.8/by_difficulty/easy/by_task_type/simple_task",
		Model: "qwen2.5-7b-instruct", Variant: "optimal", Difficulty: "easy",
		TaskType: "simple_task", Rate: "0.8", Reliability: .8,
		Stored: legacy.Counts{Total: 10, Success: 7, Full: 4, Partial: 3, Failed: 3, Errors: 6},
		Rule:   legacy.AsStored, Usable: true, Reason: "the counts agree",
		Errors: map[string]int{
			"tool_call_format": 1, "tool_selection": 2, "sequence_order": 3,
			"timeout": 0, "max_turns": 0,
			"parameter_config": 0, "dependency": 0, "other": 0,
		},
		Averages: legacy.Averages{
			Seconds: 12.5, Turns: 8, ToolCalls: 4, Coverage: .5,
			Workflow: .6, Phase2: .7, Quality: .8, Final: .7,
		},
		Assistance: legacy.Assistance{Tests: 2, Turns: 3, Success: 1, Failure: 1},
	}
	got := db.Aggregates[0]
	if got.Rates["success_rate"] != .7 || len(got.Rates) != 17 {
		t.Errorf("stored rates %v", got.Rates)
	}
	got.Rates = nil
	if diff := cmp.Diff(want, got); diff != "" {
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
		findings     string // besides rate_mismatch
	}{
		{"every test counted twice", twice, legacy.Doubled, "doubled_counts"},
		{
			"some tests counted twice", "total 14; success 9; failed 5", legacy.PartlyDoubled,
			"partly_doubled_counts",
		},
		{
			"counted three times", "total 30; success 21; failed 9", "",
			"success_mismatch errors_mismatch",
		},
		{
			"twice, but the categories do not bear it out", twice + "; sequence_order_errors 1", "",
			"success_mismatch errors_mismatch errors_mismatch",
		},
		{"total is no sum", "total 11", "", "total_mismatch errors_mismatch"},
		{"success is no sum", "success 6", "", "total_mismatch success_mismatch"},
		{"errors are no sum", "total_errors 5", "", "errors_mismatch errors_mismatch"},
		{"categories are no sum", "sequence_order_errors 2", legacy.AsStored, "errors_mismatch"},
		{"partial under two names", "partial_success 2", "", "success_mismatch"},
		{"no category at all", uncategorised, legacy.Unclassified, "errors_mismatch"},
		{"full missing, its rate not", "full_success -", legacy.FullFromRate, "missing_field"},
		{"full missing, its rate odd", "full_success -; full_success_rate 0.42", "", "missing_field"},
		{"total missing", "total -", "", "missing_field"},
		{"total null", "total null", "", "null_field"},
		{"an average is NaN", "avg_turns NaN", legacy.AsStored, "not_a_number"},
		{"a rate is infinite", "success_rate -Infinity", legacy.AsStored, "not_a_number"},
		{"a count is a text", `failed "3"`, "", "not_a_number"},
		{"a count is a list", "tests_with_assistance [1, 2]", legacy.AsStored, "not_a_number"},
		{"a count has a half", "failed 3.5", "", "not_a_number"},
		{"a count is enormous", "failed 1e300", "", "not_a_number"},
		{"a count is negative", "other_errors -1", legacy.AsStored, "negative_number"},
		{"whole, but a float", "failed 3.0", legacy.AsStored, ""},
		{"older name", `success -; failed 3, "successful": 7`, legacy.AsStored, "renamed_field"},
		{"both names", `success 7, "successful": 9`, legacy.AsStored, "renamed_field"},
		{"a field too many", `success 7, "note": "x"`, legacy.AsStored, "unknown_field"},
		{"a field twice", `success 9, "success": 7`, legacy.AsStored, "duplicate_key"},
		{"a wrong rate", "success_rate 0.9", legacy.AsStored, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			db := read(t, file(set(t, good, tt.fields)))
			got := leafFindings(db)
			if tt.name == "a wrong rate" && !slices.Contains(got, "rate_mismatch") {
				t.Error("no finding about the rate")
			}
			got = slices.DeleteFunc(got, func(k string) bool { return k == "rate_mismatch" })
			if want := strings.Fields(tt.findings); !slices.Equal(got, want) {
				t.Errorf("findings %v, want %v: %+v", got, want, db.Findings)
			}
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
		leaf, kind, derived string
		usable              bool
	}{
		"deployment": {
			"DeepSeek-V3-0324-2 optimal 0.8 easy simple_task", "model_name", "DeepSeek-V3-0324", true,
		},
		"case": {
			"Qwen2.5-7B-Instruct optimal 0.8 easy simple_task", "model_name", "qwen2.5-7b-instruct",
			true,
		},
		"both": {
			"llama-3.3-70b-instruct-1 optimal 0.8 easy simple_task", "model_name",
			"Llama-3.3-70B-Instruct", true,
		},
		"test":           {"test-model-protection optimal 0.8 easy simple_task", "test_model", "", false},
		"flawed":         {"m flawed 0.8 easy simple_task", "plain_flawed", "", false},
		"prompt":         {"m optimum 0.8 easy simple_task", "unknown_prompt", "optimal", false},
		"difficulty":     {"m optimal 0.8 eazy simple_task", "unknown_difficulty", "easy", false},
		"type":           {"m optimal 0.8 easy simple_tasks", "unknown_task_type", "simple_task", false},
		"strange type":   {"m optimal 0.8 easy file_processing", "unknown_task_type", "", false},
		"rate 1.0":       {"m optimal 1.0 easy simple_task", "phantom_rate", "", false},
		"rate percent":   {"m optimal 80 easy simple_task", "phantom_rate", "0.8", false},
		"rate 100.0":     {"m optimal 100.0 easy simple_task", "phantom_rate", "", false},
		"rate NaN":       {"m optimal NaN easy simple_task", "phantom_rate", "", false},
		"rate in words":  {"m optimal high easy simple_task", "phantom_rate", "", false},
		"rate, odd form": {"m optimal 0.80 easy simple_task", "phantom_rate", "0.8", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := strings.Fields(tt.leaf)
			db := read(t, `{"version": "3.0", "models": {`+
				model(n[0], n[1], n[2], n[3], n[4], good)+`}}`)
			i := slices.IndexFunc(db.Findings,
				func(f legacy.Finding) bool { return f.Kind == tt.kind })
			if i < 0 || db.Findings[i].Derived != tt.derived {
				t.Errorf("findings %+v, want %s with %q", db.Findings, tt.kind, tt.derived)
			}
			a := db.Aggregates[0]
			if a.Usable != tt.usable || a.Stored.Total != 10 || a.Rule != legacy.AsStored {
				t.Errorf("usable %v, want %v: %+v", a.Usable, tt.usable, a)
			}
			checkJSON(t, db)
		})
	}
}
