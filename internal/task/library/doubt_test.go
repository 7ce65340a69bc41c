//go:build !race

package library_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// TestDoubtfulTasks checks that an import finds the doubtful parts of tasks that it keeps.
func TestDoubtfulTasks(t *testing.T) {
	t.Parallel()
	const tasks = `[
	  {"id": "a", "task_type": "simple_task", "description": "Read.",
	   "difficulty_level": "easy", "complexity": "hard", "required_tools": ["file_operations_reader"]},
	  {"id": "b", "task_type": "simple_task", "description": "Cache.",
	   "difficulty_level": "easy", "complexity": "easy", "required_tools": ["utility_cache"]},
	  {"id": "c", "task_type": "simple_task", "description": " Read. ",
	   "complexity": "hard", "required_tools": ["file_operations_reader"]},
	  {"id": "d", "task_type": "simple_task", "description": "Cache.",
	   "difficulty_level": "easy", "complexity": 7, "required_tools": ["utility_cache"]},
	  {"id": "e", "task_type": "simple_task", "description": "Read.",
	   "difficulty_level": "hard", "difficulty": "very_hard", "complexity": "intricate",
	   "required_tools": ["file_operations_scanner"]},
	  {"id": "f", "task_type": "simple_task", "description": "Log.",
	   "difficulty_level": "easy", "required_tools": ["utility_logger"]},
	  {"id": "excluded", "task_type": "simple_task", "description": "Log.",
	   "required_tools": ["utility_diary"]}
	]`
	asked := 0
	report, _, err := imported(t, tasks, func(o *library.ImportOptions) {
		o.Solvable = func(catalog *assay.Catalog, required []string) bool {
			asked++
			return catalog != nil && required[0] != "utility_logger"
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	example := func(task, detail string) []library.Example {
		return []library.Example{{Task: task, Detail: detail}}
	}
	want := []library.Finding{
		{Kind: library.DifficultyClash, Tasks: 2, Examples: []library.Example{
			{Task: "a", Detail: "difficulty_level is easy, but complexity is hard; difficulty_level is used"},
			{Task: "e", Detail: "difficulty_level is hard, but difficulty is very_hard; difficulty_level is used"},
		}},
		{Kind: library.RepeatedDescription, Tasks: 5, Examples: []library.Example{
			{Task: "a", Detail: "c has the same description"},
			{Task: "b", Detail: "d has the same description"},
		}},
		{Kind: library.SeveralTruths, Tasks: 3, Examples: example("a",
			"requires file_operations_reader, but e requires file_operations_scanner")},
		{Kind: library.Unsolvable, Tasks: 1, Examples: example("f", "requires utility_logger")},
	}
	got := slices.DeleteFunc(report.Findings, func(f library.Finding) bool { return f.Excludes })
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if report.Kept != 6 || asked != 4 {
		t.Errorf("kept %d tasks, asked about %d lists of tools, want 6 and 4", report.Kept, asked)
	}
	for _, text := range []string{
		"5 tasks: description of another task, too (kept with a warning)",
		"1 task: no policy can solve it with the default world and limits (kept with a warning)",
	} {
		if !strings.Contains(report.String(), text+"\n") {
			t.Errorf("the report does not contain %q:\n%s", text, report)
		}
	}
}

// TestImportNotesWorkflows checks that a library remembers that its tasks had their own plans.
func TestImportNotesWorkflows(t *testing.T) {
	t.Parallel()
	const task = `[{"id": "a", "task_type": "simple_task", "description": "Read.",
	  "required_tools": ["file_operations_reader"]%s}]`
	for field, want := range map[string]string{
		"": "import of tasks.json",
		`, "workflow": ["file_operations_reader"]`: "import of tasks.json; 1 task had a workflow, " +
			"which is not used: plans are made from required_tools",
	} {
		report, lib, err := imported(t, fmt.Sprintf(task, field))
		if err != nil {
			t.Fatal(err)
		}
		if got := lib.Meta().Source; got != want || report.Library.Source != want {
			t.Errorf("source %q, and %q in the report, want %q", got, report.Library.Source, want)
		}
	}
}
