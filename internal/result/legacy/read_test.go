package legacy_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
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

// edit replaces, in a text, each old by the new that follows it.
func edit(t testing.TB, text string, oldnew ...string) string {
	t.Helper()
	for i := 0; i < len(oldnew); i += 2 {
		if !strings.Contains(text, oldnew[i]) {
			t.Fatalf("no %q in the text", oldnew[i])
		}
		text = strings.Replace(text, oldnew[i], oldnew[i+1], 1)
	}
	return text
}

// file holds one leaf, of a model whose own totals are left out.
func file(leaf string) string {
	return `{"version": "3.0", "created_at": "2025-08-27T00:18:31.193951", "last_updated": "", "models": {` + model("qwen2.5-7b-instruct", "optimal", "0.8", "easy", "simple_task", leaf) + `}}`
}

func model(name, prompt, rate, difficulty, taskType, leaf string) string {
	return fmt.Sprintf(`%q: {"by_prompt_type": {%q: {"by_tool_success_rate": {%q: {"by_difficulty": {%q: {"by_task_type": {%q: {%s}}}}}}}}}`,
		name, prompt, rate, difficulty, taskType, leaf)
}

// leafFindings are the findings about leaves, and about what is above them.
func leafFindings(db *legacy.Database) []string {
	var names []string
	for _, f := range db.Findings {
		if strings.Contains(f.Path, "by_task_type") {
			names = append(names, f.Kind)
		}
	}
	return names
}

// TestText: texts are read as they stand, and none becomes another.
func TestText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`\ud83d\ude00é`: "😀é", `\ufffd�`: "��", `\\ud800`: `\ud800`, `\u00e9\"\/`: `é"/`,
	} {
		if got := read(t, `{"version": "3.0", "models": {}, "created_at": "`+text+`"}`).CreatedAt; got != want {
			t.Errorf("%s is read as %q, want %q", text, got, want)
		}
	}
}

func TestGoodLeaf(t *testing.T) {
	t.Parallel()
	db := read(t, file(good))
	if got := leafFindings(db); len(got) > 0 {
		t.Errorf("findings about a good leaf: %v", db.Findings)
	}
	want := legacy.Aggregate{
		Path:  "models/qwen2.5-7b-instruct/by_prompt_type/optimal/by_tool_success_rate/0.8/by_difficulty/easy/by_task_type/simple_task",
		Model: "qwen2.5-7b-instruct", Variant: "optimal", Difficulty: "easy", TaskType: "simple_task", Rate: "0.8", Reliability: .8,
		Stored: legacy.Counts{Total: 10, Success: 7, Full: 4, Partial: 3, Failed: 3, Errors: 6},
		Rule:   legacy.AsStored, Usable: true, Reason: "the counts agree",
		Errors: map[string]int{
			"tool_call_format": 1, "tool_selection": 2, "sequence_order": 3, "timeout": 0, "max_turns": 0,
			"parameter_config": 0, "dependency": 0, "other": 0,
		},
		Averages:   legacy.Averages{Seconds: 12.5, Turns: 8, ToolCalls: 4, Coverage: .5, Workflow: .6, Phase2: .7, Quality: .8, Final: .7},
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

// TestLeaf: each row edits the good leaf, of 4 full, 3 partial and 3 failed.
func TestLeaf(t *testing.T) {
	t.Parallel()
	once := legacy.Counts{Total: 10, Success: 7, Full: 4, Partial: 3, Failed: 3, Errors: 6}
	for name, tt := range map[string]struct {
		edits    []string
		findings []string // beside rate_mismatch
		rule     legacy.Rule
		counts   legacy.Counts // to use; zero for none
	}{
		"every test counted twice": {
			[]string{`"total": 10`, `"total": 20`, `"success": 7`, `"success": 14`, `"failed": 3`, `"failed": 6`},
			[]string{"doubled_counts"},
			legacy.Doubled, once,
		},
		"some tests counted twice": {
			[]string{`"total": 10`, `"total": 14`, `"success": 7`, `"success": 9`, `"failed": 3`, `"failed": 5`},
			[]string{"partly_doubled_counts"},
			legacy.PartlyDoubled, once,
		},
		"counted three times": {
			[]string{`"total": 10`, `"total": 30`, `"success": 7`, `"success": 21`, `"failed": 3`, `"failed": 9`},
			[]string{"success_mismatch", "errors_mismatch"},
			"",
			legacy.Counts{},
		},
		"twice, but the categories do not bear it out": {
			[]string{`"total": 10`, `"total": 20`, `"success": 7`, `"success": 14`, `"failed": 3`, `"failed": 6`, `"sequence_order_errors": 3`, `"sequence_order_errors": 1`},
			[]string{"success_mismatch", "errors_mismatch", "errors_mismatch"},
			"",
			legacy.Counts{},
		},
		"total is no sum":         {[]string{`"total": 10`, `"total": 11`}, []string{"total_mismatch", "errors_mismatch"}, "", legacy.Counts{}},
		"success is no sum":       {[]string{`"success": 7`, `"success": 6`}, []string{"total_mismatch", "success_mismatch"}, "", legacy.Counts{}},
		"errors are no sum":       {[]string{`"total_errors": 6`, `"total_errors": 5`}, []string{"errors_mismatch", "errors_mismatch"}, "", legacy.Counts{}},
		"categories are no sum":   {[]string{`"sequence_order_errors": 3`, `"sequence_order_errors": 2`}, []string{"errors_mismatch"}, legacy.AsStored, once},
		"partial under two names": {[]string{`"partial_success": 3`, `"partial_success": 2`}, []string{"success_mismatch"}, "", legacy.Counts{}},
		"no category at all": {
			[]string{
				`"total_errors": 6`, `"total_errors": 0`, `"tool_call_format_errors": 1`, `"tool_call_format_errors": 0`,
				`"tool_selection_errors": 2`, `"tool_selection_errors": 0`, `"sequence_order_errors": 3`, `"sequence_order_errors": 0`,
			},
			[]string{"errors_mismatch"},
			legacy.Unclassified,
			legacy.Counts{Total: 10, Success: 7, Full: 4, Partial: 3, Failed: 3},
		},
		"full missing, its rate not": {[]string{`"full_success": 4,`, ``}, []string{"missing_field"}, legacy.FullFromRate, once},
		"full missing, its rate odd": {
			[]string{`"full_success": 4,`, ``, `"full_success_rate": 0.4`, `"full_success_rate": 0.42`},
			[]string{"missing_field"},
			"",
			legacy.Counts{},
		},
		"total missing":       {[]string{`"total": 10,`, ``}, []string{"missing_field"}, "", legacy.Counts{}},
		"total null":          {[]string{`"total": 10`, `"total": null`}, []string{"null_field"}, "", legacy.Counts{}},
		"an average is NaN":   {[]string{`"avg_turns": 8`, `"avg_turns": NaN`}, []string{"not_a_number"}, legacy.AsStored, once},
		"a rate is infinite":  {[]string{`"success_rate": 0.7`, `"success_rate": -Infinity`}, []string{"not_a_number"}, legacy.AsStored, once},
		"a count is a text":   {[]string{`"failed": 3`, `"failed": "3"`}, []string{"not_a_number"}, "", legacy.Counts{}},
		"a count is a list":   {[]string{`"tests_with_assistance": 2`, `"tests_with_assistance": [1, 2]`}, []string{"not_a_number"}, legacy.AsStored, once},
		"a count has a half":  {[]string{`"failed": 3`, `"failed": 3.5`}, []string{"not_a_number"}, "", legacy.Counts{}},
		"a count is enormous": {[]string{`"failed": 3`, `"failed": 1e300`}, []string{"not_a_number"}, "", legacy.Counts{}},
		"a count is negative": {[]string{`"other_errors": 0`, `"other_errors": -1`}, []string{"negative_number"}, legacy.AsStored, once},
		"whole, but a float":  {[]string{`"failed": 3`, `"failed": 3.0`}, nil, legacy.AsStored, once},
		"older name":          {[]string{`"success": 7`, `"successful": 7`}, []string{"renamed_field"}, legacy.AsStored, once},
		"both names":          {[]string{`"success": 7`, `"success": 7, "successful": 9`}, []string{"renamed_field"}, legacy.AsStored, once},
		"a field too many":    {[]string{`"success": 7`, `"success": 7, "note": "x"`}, []string{"unknown_field"}, legacy.AsStored, once},
		"a field twice":       {[]string{`"success": 7`, `"success": 9, "success": 7`}, []string{"duplicate_key"}, legacy.AsStored, once},
		"a wrong rate":        {[]string{`"success_rate": 0.7`, `"success_rate": 0.9`}, nil, legacy.AsStored, once},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := read(t, file(edit(t, good, tt.edits...)))
			got := leafFindings(db)
			if name == "a wrong rate" && !slices.Contains(got, "rate_mismatch") {
				t.Error("no finding about the rate")
			}
			got = slices.DeleteFunc(got, func(k string) bool { return k == "rate_mismatch" })
			if !slices.Equal(got, tt.findings) {
				t.Errorf("findings %v, want %v: %+v", got, tt.findings, db.Findings)
			}
			a := db.Aggregates[0]
			counts, usable := a.Counts()
			if a.Rule != tt.rule || counts != tt.counts || usable != (tt.rule != "") {
				t.Errorf("rule %q, counts %+v, want %q and %+v: %s", a.Rule, counts, tt.rule, tt.counts, a.Reason)
			}
			if a.Reason == "" {
				t.Error("no reason is given")
			}
			checkJSON(t, db)
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	leaf := func(model_, prompt, rate, difficulty, taskType string) string {
		return `{"version": "3.0", "models": {` + model(model_, prompt, rate, difficulty, taskType, good) + `}}`
	}
	for name, tt := range map[string]struct {
		text, kind, derived string
		usable              bool
	}{
		"deployment":     {leaf("DeepSeek-V3-0324-2", "optimal", "0.8", "easy", "simple_task"), "model_name", "DeepSeek-V3-0324", true},
		"case":           {leaf("Qwen2.5-7B-Instruct", "optimal", "0.8", "easy", "simple_task"), "model_name", "qwen2.5-7b-instruct", true},
		"both":           {leaf("llama-3.3-70b-instruct-1", "optimal", "0.8", "easy", "simple_task"), "model_name", "Llama-3.3-70B-Instruct", true},
		"test":           {leaf("test-model-protection", "optimal", "0.8", "easy", "simple_task"), "test_model", "", false},
		"flawed":         {leaf("m", "flawed", "0.8", "easy", "simple_task"), "plain_flawed", "", false},
		"prompt":         {leaf("m", "optimum", "0.8", "easy", "simple_task"), "unknown_prompt", "optimal", false},
		"difficulty":     {leaf("m", "optimal", "0.8", "eazy", "simple_task"), "unknown_difficulty", "easy", false},
		"type":           {leaf("m", "optimal", "0.8", "easy", "simple_tasks"), "unknown_task_type", "simple_task", false},
		"strange type":   {leaf("m", "optimal", "0.8", "easy", "file_processing"), "unknown_task_type", "", false},
		"rate 1.0":       {leaf("m", "optimal", "1.0", "easy", "simple_task"), "phantom_rate", "", false},
		"rate percent":   {leaf("m", "optimal", "80", "easy", "simple_task"), "phantom_rate", "0.8", false},
		"rate 100.0":     {leaf("m", "optimal", "100.0", "easy", "simple_task"), "phantom_rate", "", false},
		"rate NaN":       {leaf("m", "optimal", "NaN", "easy", "simple_task"), "phantom_rate", "", false},
		"rate in words":  {leaf("m", "optimal", "high", "easy", "simple_task"), "phantom_rate", "", false},
		"rate, odd form": {leaf("m", "optimal", "0.80", "easy", "simple_task"), "phantom_rate", "0.8", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := read(t, tt.text)
			i := slices.IndexFunc(db.Findings, func(f legacy.Finding) bool { return f.Kind == tt.kind })
			if i < 0 || db.Findings[i].Derived != tt.derived {
				t.Errorf("findings %+v, want %s with %q", db.Findings, tt.kind, tt.derived)
			}
			if a := db.Aggregates[0]; a.Usable != tt.usable || a.Stored.Total != 10 || a.Rule != legacy.AsStored {
				t.Errorf("usable %v, want %v, of %+v", a.Usable, tt.usable, a)
			}
			checkJSON(t, db)
		})
	}
}

// TestSplitModel: names that look like one model stay apart.
func TestSplitModel(t *testing.T) {
	t.Parallel()
	text := `{"version": "3.0", "models": {` +
		model("my-model", "optimal", "0.8", "easy", "simple_task", good) + "," +
		model("My-Model", "optimal", "0.8", "easy", "simple_task", good) + "," +
		model("my-model-3", "optimal", "0.8", "easy", "simple_task", good) + "," +
		model("grok-3-mini", "optimal", "0.8", "easy", "simple_task", good) + "}}"
	db := read(t, text)
	got := make(map[string]string)
	for _, f := range db.Findings {
		if f.Kind == "model_name" {
			got[f.Model] = f.Derived
		}
	}
	if diff := cmp.Diff(map[string]string{"My-Model": "my-model", "my-model-3": "my-model"}, got); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
	for _, a := range db.Aggregates {
		if !a.Usable || a.Stored.Total != 10 {
			t.Errorf("%s: %+v", a.Model, a)
		}
	}
}

func TestOverlap(t *testing.T) {
	t.Parallel()
	rates := edit(t, file(good), `"by_difficulty"`, `"by_difficulty": {"easy": {"by_task_type": {"simple_task": {`+good+`}}}}}, "0.80": {"by_difficulty"`)
	twice := `{"version": "3.0", "models": {` +
		model("m", "optimal", "0.8", "easy", "simple_task", good) + "," + model("m", "optimal", "0.8", "easy", "simple_task", good) + "}}"
	for name, text := range map[string]string{"rates": rates, "models": twice} {
		db := read(t, text)
		if !slices.Contains(kinds(db), "overlapping_leaves") {
			t.Errorf("%s: findings %v", name, kinds(db))
		}
		if len(db.Aggregates) != 2 || db.Aggregates[0].Usable || db.Aggregates[1].Usable {
			t.Errorf("%s: aggregates %+v, want two that are not usable", name, db.Aggregates)
		}
	}
}

// TestTotals breaks the sums of a file that has none broken.
func TestTotals(t *testing.T) {
	t.Parallel()
	sound := written(t, sample(40))
	for name, tt := range map[string]struct {
		old, new, kind, path string
	}{
		"model":   {`"total_tests": `, `"total_tests": 1`, "model_total", "models/m1/total_tests"},
		"name":    {`"model_name": "m1"`, `"model_name": "x"`, "model_name", "models/m1/model_name"},
		"overall": {`"total_full": `, `"total_full": 1`, "overall_stats", "models/m1/overall_stats"},
		"prompt": {`"summary": {
            "total": `, `"summary": {
            "total": 1`, "prompt_summary", "models/m1/by_prompt_type/baseline/summary"},
		"summary": {`"summary": {
    "total_tests": `, `"summary": {
    "total_tests": 1`, "summary", "summary/total_tests"},
		"rate":   {`"overall_success_rate": 0`, `"overall_success_rate": 1`, "summary", "summary/overall_success_rate"},
		"tested": {`"models_tested": [`, `"models_tested": ["x",`, "summary", "summary/models_tested"},
		"group": {`"statistics": {
        "total": `, `"statistics": {
        "total": 1`, "test_group", "test_groups/m1_simple_task_baseline_easy"},
		"a number": {`"summary": {
    "total_tests": `, `"summary": 1, "z": {
    "total_tests": `, "malformed", "summary"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := finding(t, read(t, edit(t, sound, tt.old, tt.new)), tt.kind, tt.path)
			if f.Message == "" || f.Done == "" {
				t.Errorf("finding %+v", f)
			}
		})
	}
}

func TestBroken(t *testing.T) {
	t.Parallel()
	whole := file(good)
	conflict := "{\n  \"version\": \"3.0\",\n<<<<<<< HEAD\n  \"models\": {}\n=======\n  \"models\": {}\n>>>>>>> main\n}"
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"empty":           {" \n", []string{"empty"}},
		"truncated":       {whole[:len(whole)-3], []string{"truncated", "9:102"}},
		"in a text":       {`{"version": "3.`, []string{"1:16", "truncated"}},
		"in a word":       {"{\"version\": \"3.0\",\n\"models\": nul", []string{"2:14", "truncated"}},
		"conflict":        {conflict, []string{"3:1", "merge conflict", "<<<<<<< HEAD", "hint:"}},
		"half a conflict": {"{\n  \"version\": \"3.0\",\n  \"models\": {},\n=======\n  \"models\": {}\n}", []string{"4:1", "merge conflict"}},
		"end of conflict": {"{\n  \"version\": \"3.0\"\n>>>>>>> main\n}", []string{"3:1", "merge conflict"}},
		"trailing":        {whole + " {}", []string{"more after the end"}},
		"comma":           {"{\"version\": \"3.0\"\n \"models\": {}}", []string{"2:2", "expected , or }", `"models"`}},
		"bare key":        {`{version: 1}`, []string{"1:2", "key"}},
		"no colon":        {`{"version" 1}`, []string{"1:12", "colon"}},
		"single quotes":   {`{'version': 1}`, []string{"1:2"}},
		"word":            {`{"version": None}`, []string{"1:13", "expected a value", "None"}},
		"leading zero":    {`{"version": 03}`, []string{"1:13"}},
		"line end":        {"{\"ver\nsion\": 1}", []string{"1:6", "end of a line"}},
		"escape":          {`{"a": "\q"}`, []string{"1:7", "escape"}},
		"deep":            {strings.Repeat(`[`, 100000), []string{"1:65", "64 deep"}},
		"long key":        {`{"` + strings.Repeat("k", 1100) + `": 1}`, []string{"1:2", "1024 bytes"}},
		"not UTF-8":       {"{\"version\": \"3.0\",\n\"models\": {\"a\": 1, \"gp\xfft\": 1}}", []string{"2:23", "UTF-8", "0xff"}},
		"cut rune":        {"{\"é\xc3\": 1}", []string{"1:4", "UTF-8", "0xc3"}},
		"half a pair":     {`{"a": "x\ud800y"}`, []string{"1:9", "surrogate"}},
		"the other half":  {`{"a": "x\udc80"}`, []string{"1:9", "surrogate"}},
		"two halves":      {`{"a": "\ud800\ud800\udc00"}`, []string{"1:8", "surrogate"}},
		"many":            {`{"a": [` + strings.Repeat("1,", 1<<20) + `1]}`, []string{"more than"}},
		"LFS":             {"version https://git-lfs.github.com/spec/v1\noid sha256:0", []string{"git lfs pull"}},
		"array":           {`[]`, []string{"an array", "hint:"}},
		"no version":      {`{"models": {}}`, []string{"no version", "3.0"}},
		"version 2":       {`{"version": "2.0", "models": {}}`, []string{`"2.0"`, `"3.0"`}},
		"version 3":       {`{"version": 3.0, "models": {}}`, []string{"3.0"}},
		"no models":       {`{"version": "3.0"}`, []string{"no models"}},
		"models":          {`{"version": "3.0", "models": []}`, []string{"models is an array"}},
		"leaves": {`{"version": "3.0", "models": {"m": {"by_prompt_type": {"optimal": {"by_tool_success_rate": {"0.8": {"by_difficulty": {"easy": {"by_task_type": {` +
			strings.Repeat(`"t": {},`, 40000) + `"t": {}` + strings.Repeat("}", 10), []string{"leaves"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := legacy.Read(strings.NewReader(tt.text))
			if err == nil {
				t.Fatalf("no error, but %+v", db)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestExcerpt(t *testing.T) {
	t.Parallel()
	_, err := legacy.Read(strings.NewReader("{\n  \"version\": ü}"))
	want := "2:14: expected a value\n    \"version\": ü}\n               ^"
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
}

func TestByteOrderMark(t *testing.T) {
	t.Parallel()
	read(t, "\ufeff"+file(good))
}

// TestNamesAgree: the format's names are those of the packages that own them.
func TestNamesAgree(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(assay.Variants, legacy.Prompts); diff != "" {
		t.Errorf("prompt types (-variants +ours):\n%s", diff)
	}
	if diff := cmp.Diff(assay.ErrorCategories, legacy.Categories); diff != "" {
		t.Errorf("categories (-score +ours):\n%s", diff)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(file(good))
	f.Add(file(edit(f, good, `"total": 10`, `"total": NaN`, `"success": 7`, `"successful": null`)))
	f.Add(`{"version": "3.0", "models": {"a/b~c": {"by_prompt_type": 1}, "x": 2}, "summary": {"models_tested": [1]}, "test_groups": {"g": {}}}`)
	f.Add("{\"version\": \"3.0\",\n<<<<<<< HEAD\n}")
	f.Add(written(f, sample(5)))
	f.Fuzz(func(t *testing.T, text string) {
		db, err := legacy.Read(strings.NewReader(text))
		var file any
		valid := json.Unmarshal([]byte(strings.TrimPrefix(text, "\ufeff")), &file) == nil
		if err != nil {
			if len(err.Error()) > 4000 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
			return
		}
		checkJSON(t, db)
		for _, a := range db.Aggregates {
			if c, ok := a.Counts(); ok && (c.Total != c.Success+c.Failed || c.Success != c.Full+c.Partial) {
				t.Errorf("usable counts contradict each other: %+v", c)
			}
		}
		if !valid || slices.Contains(kinds(db), "duplicate_key") {
			return // NaN, or paths that lead to several values
		}
		for _, f := range db.Findings {
			if resolve(file, f.Path) == nil {
				t.Errorf("%s: no such path: %q", f.Kind, f.Path)
			}
		}
	})
}

// FuzzStrict: what is read is JSON, or would be without the words of Python.
func FuzzStrict(f *testing.F) {
	for _, s := range []string{`{"a": [1, -0.5e3, "\u00e9"], "b": null}`, `{"a": 01}`, `[1,]`, `NaN`, "\"\x01\"", `"\ud800"`, `"\ud83d\ude00"`, "\"\xff\"", "{\"a\"\t:true}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "NaN") || strings.Contains(text, "Infinity") || strings.HasPrefix(text, "\ufeff") {
			return
		}
		got := legacy.Parses([]byte(text))
		want := json.Valid([]byte(text)) && utf8.ValidString(text)
		halves := strings.Contains(strings.ToLower(text), `\ud`) // which is refused, or a pair
		// The limits of depth and of keys need longer texts.
		if (got && !want || !got && want && !halves) && len(text) < 60 {
			t.Errorf("%q: parsed %v, valid JSON %v", text, got, want)
		}
	})
}
