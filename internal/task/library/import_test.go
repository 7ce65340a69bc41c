package library_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// imported writes a task file and imports it, with the built-in tools unless change replaces them.
func imported(
	t testing.TB, tasks string, change ...func(*library.ImportOptions),
) (library.Report, *library.Library, error) {
	t.Helper()
	dir := t.TempDir()
	opts := library.ImportOptions{
		Tasks: filepath.Join(dir, "tasks.json"),
		Out:   filepath.Join(dir, "out.db"),
	}
	if err := os.WriteFile(opts.Tasks, []byte(tasks), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&opts)
	}
	report, err := library.Import(t.Context(), opts)
	if err != nil {
		if _, statErr := os.Stat(opts.Out); !errors.Is(statErr, fs.ErrNotExist) {
			t.Errorf("the error %q left a library behind: %v", err, statErr)
		}
		return report, nil, err
	}
	return report, open(t, opts.Out), nil
}

func finding(r library.Report, kind library.FindingKind) library.Finding {
	for _, f := range r.Findings {
		if f.Kind == kind {
			return f
		}
	}
	return library.Finding{}
}

func TestImportOfTheOriginal630(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "pilot.db")
	report, err := library.Import(t.Context(), library.ImportOptions{
		Tasks: pilotFile(t, "task_library_630.json"),
		Tools: pilotFile(t, "tool_registry.json"),
		Out:   out,
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Read != 630 || report.Kept != 630 || report.Excluded != 0 {
		t.Errorf("read %d, kept %d, excluded %d", report.Read, report.Kept, report.Excluded)
	}
	wantGaps := library.DependencyGaps{Tasks: 390, LaterTasks: 117, Gaps: 778, LaterGaps: 118}
	if diff := cmp.Diff(wantGaps, report.Gaps); diff != "" {
		t.Errorf("gaps (-want +got):\n%s", diff)
	}
	repeated := finding(report, library.RepeatedDescription)
	truths := finding(report, library.SeveralTruths)
	if repeated.Tasks != 84 || truths.Tasks != 12 || truths.Excludes {
		t.Errorf("%d tasks share descriptions and %d of them have other truths, want 84 and 12",
			repeated.Tasks, truths.Tasks)
	}
	wantCounts := []library.Count{
		{Type: "simple_task", Difficulty: "easy", Tasks: 40},
		{Type: "basic_task", Difficulty: "easy", Tasks: 150},
		{Type: "data_pipeline", Difficulty: "easy", Tasks: 190},
		{Type: "api_integration", Difficulty: "easy", Tasks: 170},
		{Type: "multi_stage_pipeline", Difficulty: "easy", Tasks: 80},
	}
	if diff := cmp.Diff(wantCounts, report.Counts); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	l := open(t, out)
	counts, err := l.Counts(t.Context())
	if diff := cmp.Diff(wantCounts, counts); diff != "" || err != nil {
		t.Errorf("counts of the library, %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(report.Library, l.Meta()); diff != "" {
		t.Errorf("meta (-report +library):\n%s", diff)
	}
	task, err := l.Task(t.Context(), "task_dee2d02d", "easy")
	want := []string{"file_operations_reader", "data_processing_parser", "data_processing_filter"}
	if diff := cmp.Diff(want, task.Required); diff != "" || err != nil {
		t.Errorf("required tools, %v (-want +got):\n%s", err, diff)
	}
	if !strings.Contains(string(task.Inputs), `"data/input_file.csv"`) {
		t.Errorf("inputs = %s", task.Inputs)
	}
	if !strings.Contains(string(task.Expected), `"filtered_records":80`) {
		t.Errorf("expected = %s", task.Expected)
	}
	parser, _ := l.Catalog().Tool("data_processing_parser")
	if !strings.Contains(parser.Description, "raw data from various sources") {
		t.Errorf("the description is not from the registry: %q", parser.Description)
	}
}

func TestImportOfTheOriginal500(t *testing.T) {
	t.Parallel()
	report, err := library.Import(t.Context(), library.ImportOptions{
		Tasks: pilotFile(t, "task_library_500.json"),
		Out:   filepath.Join(t.TempDir(), "pilot.db"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if report.Read != 500 || report.Kept != 479 || report.Excluded != 21 {
		t.Errorf("read %d, kept %d, excluded %d", report.Read, report.Kept, report.Excluded)
	}
	f := finding(report, library.DuplicateTool)
	if f.Tasks != 21 || !f.Excludes || len(f.Examples) != 3 {
		t.Errorf("duplicate tools: %+v", f)
	}
}

// odd returns a task file with every kind of finding.
func odd(t testing.TB) string {
	t.Helper()
	text, err := os.ReadFile("testdata/odd.json")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestImportFindings checks what the report says about each kind of finding.
func TestImportFindings(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	report, l, err := imported(t, odd(t), func(o *library.ImportOptions) {
		o.Name, o.Created = "odd", created
	})
	if err != nil {
		t.Fatal(err)
	}
	digest := report.Library.Digest
	text := strings.NewReplacer(report.Out, "out.db", digest, "DIGEST").Replace(report.String())
	golden.Assert(t, text, "odd.txt")

	wantMeta := library.Meta{
		Name: "odd", Source: "import of tasks.json", Created: created,
		Digest: digest, Tools: 30, Tasks: 4,
	}
	if diff := cmp.Diff(wantMeta, l.Meta()); diff != "" {
		t.Errorf("meta (-want +got):\n%s", diff)
	}
	got, err := l.Task(t.Context(), "good", "easy")
	wantTask := assay.Task{
		ID: "good", Type: "simple_task", Difficulty: "easy", Description: "Read.",
		Inputs: json.RawMessage(`{"a":1}`), Expected: json.RawMessage(`{"b":2}`),
		Required: []string{"file_operations_reader"},
	}
	if diff := cmp.Diff(wantTask, got); diff != "" || err != nil {
		t.Errorf("task, %v (-want +got):\n%s", err, diff)
	}
	got, err = l.Task(t.Context(), "order", "easy")
	if string(got.Inputs) != "[1]" || got.Expected != nil || err != nil {
		t.Errorf("task = %+v, %v", got, err)
	}
}

// task is a valid task. Its ID is followed by taskRest.
const (
	taskRest = `"task_type": "simple_task", "description": "x", ` +
		`"required_tools": ["utility_cache"]}`
	task = `{"id": "a", ` + taskRest
)

func TestImportReadsBothShapes(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"list": "[" + task + "]",
		"object": `{"metadata": {"tasks": [1, {"x": "]"}]}, "tasks": [` + task + `],
			"more": "\"tasks\""}`,
		"byte order mark": "\xef\xbb\xbf[" + task + "]\n",
		"separate lines":  "\n\n[\n" + task + "\n]\n\n",
		"two lists":       `{"tasks": [], "tasks": [` + task + `]}`,
		"both IDs":        `[{"instance_id": "a", "id": "b", ` + taskRest + "]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, l, err := imported(t, text, func(o *library.ImportOptions) {
				o.Difficulty = "hard"
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := l.Task(t.Context(), "a", "hard"); err != nil || report.Kept != 1 {
				t.Errorf("kept %d, %v", report.Kept, err)
			}
		})
	}
}

// A task may belong to a mixture without stating which of the five difficulties it has.
func TestImportKeepsMixtures(t *testing.T) {
	t.Parallel()
	with := func(difficulty string) string {
		return `{"id": "a", "difficulty_level": "` + difficulty + `", ` + taskRest
	}
	text := "[" + task + "," + with("hard_biased") + "," + with("very_hard") + "]"
	report, l, err := imported(t, text, func(o *library.ImportOptions) {
		o.Difficulty = "medium_biased"
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []library.Count{
		{Type: "simple_task", Difficulty: "very_hard", Tasks: 1},
		{Type: "simple_task", Difficulty: "medium_biased", Tasks: 1},
		{Type: "simple_task", Difficulty: "hard_biased", Tasks: 1},
	}
	counts, err := l.Counts(t.Context())
	if diff := cmp.Diff(want, counts); diff != "" || err != nil {
		t.Errorf("counts, %v (-want +got):\n%s", err, diff)
	}
	if diff := cmp.Diff(want, report.Counts); diff != "" {
		t.Errorf("report (-want +got):\n%s", diff)
	}
	line := "  simple_task           medium_biased      1\n"
	if !strings.Contains(report.String(), line) {
		t.Errorf("the report lacks %q:\n%s", line, report)
	}
	if _, err := l.Task(t.Context(), "a", "hard_biased"); err != nil {
		t.Error(err)
	}
	_, err = l.Task(t.Context(), "a", "easy")
	if err == nil || !strings.HasSuffix(err.Error(), "at very_hard, medium_biased, hard_biased") {
		t.Errorf("Task() = %v", err)
	}
}

func TestImportWithoutUsableTasksFails(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"empty list": `[]`, "empty object": `{"tasks": []}`, "invalid task": `[{"id": "a"}]`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			report, _, err := imported(t, text)
			want := library.ErrNothingKept
			if !errors.Is(err, want) || !strings.Contains(err.Error(), "\nhint: ") {
				t.Errorf("got %v, want %v and a hint", err, want)
			}
			found := len(report.Findings) > 0
			if report.Read != report.Excluded || (report.Read == 1) != found {
				t.Errorf("report = %+v", report)
			}
		})
	}
}

func TestImportLocatesBrokenJSON(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 5000)
	for _, tt := range []struct{ name, text, want string }{
		{
			"in a task", "{\"tasks\": [\n  " + task + ",\n  {\"id\": \"b\" \"task_type\": 1}\n]}",
			":3:14: invalid character '\"' after object key:value pair\n" +
				"  3 |   {\"id\": \"b\" \"task_type\": 1}\n    |              ^",
		},
		{"no comma", "[\n" + task + "\n" + "  " + task + "]", ":3:3: "},
		{"no value", "[\n" + task + ",\n]", ":3:1: "},
		{"cut in a task", "[\n{\"id\": \"a\",", ":2:12: the file ends"},
		{"cut after a task", "[" + task, fmt.Sprintf(":1:%d: the file ends", len(task)+2)},
		{
			"cut in the object", `{"tasks": [` + task + `]`,
			fmt.Sprintf(":1:%d: the file ends", len(task)+13),
		},
		{"empty", "", ":1:1: the file ends"},
		{
			"not JSON", "hello",
			":1:1: invalid character 'h' looking for beginning of value\n  1 | hello\n    | ^",
		},
		{"a string", `"hello"`, ":1:1: a task file must be a JSON object"},
		{"JSON after the end", "[" + task + "]\n[]", ":2:1: invalid character '[' after"},
		{"text after the end", "[" + task + "]\n  x", ":2:3: invalid character 'x' after"},
		{"tasks is an object", `{"tasks": {}}`, ":1:11: \"tasks\" must be a list"},
		{
			"no tasks", `{"utility_cache": {}}`,
			":1:1: the object has no list \"tasks\"\n  1 | {\"utility_cache\": {}}\n    | ^\nhint: ",
		},
		{"wrong key", `{"a": 1, b: 2}`, ":1:10: invalid character 'b'"},
		{"wrong bracket", `{"a": 1]`, ":1:8: "},
		{"a long line", `[{"id": "` + long + `", x}]`, ":1:5013: invalid character 'x'"},
		{
			"LFS pointer", "version https://git-lfs.github.com/spec/v1\n",
			"hint: fetch the content with `git lfs pull`",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, _, err := imported(t, tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got\n%v\nwant\n%s", err, tt.want)
			}
			if !strings.Contains(err.Error(), "tasks.json") || len(err.Error()) > 600 {
				t.Errorf("the message doesn't name the file or is too long: %v", err)
			}
		})
	}
}

func TestImportChecksItsOptions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in, out := filepath.Join(dir, "tasks.json"), filepath.Join(dir, "out.db")
	for path, content := range map[string]string{in: "[" + task + "]", out: "before"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	none := filepath.Join(dir, "none")
	type options = library.ImportOptions
	for _, tt := range []struct {
		name string
		opts options
		want string
	}{
		{"output exists", options{Tasks: in, Out: out}, "already exists\nhint: "},
		{"output is a directory", options{Tasks: in, Out: dir, Force: true}, "is a directory"},
		{"output is the input", options{Tasks: in, Out: in, Force: true}, "both input and output"},
		{"no directory", options{Tasks: in, Out: filepath.Join(none, "x.db")}, "no such file"},
		{"no task file", options{Tasks: none, Out: out, Force: true}, "no such file"},
		{"no registry", options{Tasks: in, Tools: none, Out: out, Force: true}, "no such file"},
		{
			"unknown difficulty",
			options{Tasks: in, Out: out, Force: true, Difficulty: "eazy"},
			"did you mean easy?",
		},
		{"no input given", options{Out: out}, "are required"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := library.Import(t.Context(), tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if b, _ := os.ReadFile(out); string(b) != "before" {
				t.Fatalf("the output file is now %q", b)
			}
		})
	}

	_, err := library.Import(t.Context(), options{Tasks: in, Out: out, Force: true})
	if err != nil {
		t.Error(err)
	}
	open(t, out)
}

func TestImportReturnsTheContextsError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	opts := importFiles(t, filepath.Join(t.TempDir(), "in"), []byte("["+task+"]"), nil)
	opts.Out = filepath.Join(t.TempDir(), "x.db")
	if _, err := library.Import(ctx, opts); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
