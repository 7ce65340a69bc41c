package library_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// imported writes a task file and imports it with the built-in tools.
func imported(t testing.TB, tasks string, change ...func(*library.ImportOptions)) (library.Report, *library.Library, error) {
	t.Helper()
	dir := t.TempDir()
	opts := library.ImportOptions{Tasks: filepath.Join(dir, "tasks.json"), Out: filepath.Join(dir, "out.db")}
	if err := os.WriteFile(opts.Tasks, []byte(tasks), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(&opts)
	}
	report, err := library.Import(t.Context(), opts)
	if err != nil {
		if _, statErr := os.Stat(opts.Out); !errors.Is(statErr, fs.ErrNotExist) {
			t.Errorf("after the error %q the library is there: %v", err, statErr)
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
	if !strings.Contains(string(task.Inputs), `"data/input_file.csv"`) || !strings.Contains(string(task.Expected), `"filtered_records":80`) {
		t.Errorf("inputs %s, expected %s", task.Inputs, task.Expected)
	}
	if got, _ := l.Catalog().Tool("data_processing_parser"); !strings.Contains(got.Description, "raw data from various sources") {
		t.Errorf("the registry's description is gone: %q", got.Description)
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

const odd = `[
  {"id": "good", "task_type": "simple_task", "description": "Read.", "required_tools": ["file_operations_reader"],
   "test_input": {"a": 1}, "expected_output": {"b": 2}},
  {"id": "good", "task_type": "simple_task", "description": "Read.", "required_tools": ["file_operations_reader"]},
  {"id": "good", "task_type": "simple_task", "description": "Read?", "difficulty_level": "hard", "required_tools": ["file_operations_reader"]},
  {"id": "tool", "task_type": "simple_task", "description": "x", "required_tools": ["utility_cache_6"]},
  {"id": "type", "task_type": "file_processing", "description": "x", "required_tools": ["utility_cache"]},
  {"id": "kind", "task_type": "data_pipelin", "description": " ", "required_tools": []},
  {"id": "twice", "task_type": "simple_task", "description": "x", "required_tools": ["utility_cache", "utility_cache"]},
  {"id": "level", "task_type": "simple_task", "description": "x", "difficulty_level": "harder", "required_tools": ["utility_cache"]},
  {"instance_id": "order", "task_type": "api_integration", "description": "x", "inputs": [1], "expected_outputs": null,
   "required_tools": ["network_fetcher", "data_processing_validator", "data_processing_parser"]},
  {"instance_id": "gap", "task_type": "api_integration", "description": "x", "required_tools": ["network_poster"]},
  {"task_type": "simple_task", "description": "x", "required_tools": ["utility_cache"]},
  {"id": "shape", "description": 7},
  17
]`

func TestImportFindings(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	report, l, err := imported(t, odd, func(o *library.ImportOptions) { o.Name, o.Created = "odd", created })
	if err != nil {
		t.Fatal(err)
	}
	types := " is not one of simple_task, basic_task, data_pipeline, api_integration, multi_stage_pipeline"
	want := []library.Finding{
		{Kind: library.Malformed, Tasks: 3, Excludes: true, Examples: []library.Example{
			{Task: "#11", Detail: `line 14: add an "id" or "instance_id"`},
			{Task: "shape", Detail: "line 15: description must be a string, not a number"},
			{Task: "#13", Detail: "line 16: a task must be a JSON object, not a number"},
		}},
		{Kind: library.DuplicateID, Tasks: 1, Excludes: true, Examples: []library.Example{{Task: "good", Detail: "another task has this ID at difficulty easy; rename one of them"}}},
		{Kind: library.UnknownType, Tasks: 2, Excludes: true, Examples: []library.Example{
			{Task: "type", Detail: `"file_processing"` + types + "; use basic_task, the later name of this type"},
			{Task: "kind", Detail: `"data_pipelin"` + types + "; did you mean data_pipeline?"},
		}},
		{Kind: library.InvalidDifficulty, Tasks: 1, Excludes: true, Examples: []library.Example{
			{Task: "level", Detail: `"harder" is not one of very_easy, easy, medium, hard, very_hard, easy_biased, medium_biased, hard_biased; did you mean hard?`},
		}},
		{Kind: library.EmptyDescription, Tasks: 1, Excludes: true, Examples: []library.Example{{Task: "kind", Detail: `describe the task in "description"`}}},
		{Kind: library.NoRequiredTools, Tasks: 1, Excludes: true, Examples: []library.Example{{Task: "kind", Detail: `list at least one tool in "required_tools"`}}},
		{Kind: library.UnknownTool, Tasks: 1, Excludes: true, Examples: []library.Example{{Task: "tool", Detail: `"utility_cache_6" is not in the tool registry; did you mean utility_cache?`}}},
		{Kind: library.DuplicateTool, Tasks: 1, Excludes: true, Examples: []library.Example{{Task: "twice", Detail: "utility_cache is listed twice; remove one"}}},
		{Kind: library.DependencyOrder, Tasks: 2, Examples: []library.Example{
			{Task: "order", Detail: "data_processing_validator needs data_processing_parser, which comes later"},
			{Task: "gap", Detail: "network_poster needs data_processing_transformer, which is not in the list"},
		}},
	}
	if diff := cmp.Diff(want, report.Findings); diff != "" {
		t.Errorf("findings (-want +got):\n%s", diff)
	}
	if report.Read != 13 || report.Kept != 4 || report.Excluded != 9 {
		t.Errorf("read %d, kept %d, excluded %d", report.Read, report.Kept, report.Excluded)
	}
	wantGaps := library.DependencyGaps{Tasks: 2, LaterTasks: 1, Gaps: 3, LaterGaps: 1}
	if report.Gaps != wantGaps {
		t.Errorf("gaps = %+v, want %+v", report.Gaps, wantGaps)
	}
	if m := l.Meta(); m.Name != "odd" || m.Source != "import of tasks.json" || !m.Created.Equal(created) || m.Tasks != 4 {
		t.Errorf("meta = %+v", m)
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

func TestReportReads(t *testing.T) {
	t.Parallel()
	report, _, err := imported(t, odd)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	n, err := report.WriteTo(&b)
	if err != nil || int(n) != b.Len() || b.String() != report.String() {
		t.Errorf("WriteTo() = %d, %v", n, err)
	}
	for _, want := range []string{
		"13 tasks read, 4 kept, 9 excluded\n",
		"library out: " + report.Out + ", 30 tools, digest " + report.Library.Digest,
		"  simple_task           easy            1\n",
		"1 task: unknown tool required (excluded)\n  tool: \"utility_cache_6\" is not in the tool registry; did you mean utility_cache?\n",
		"2 tasks: dependency not required before the tool that needs it (kept with a warning)\n  in 1 of them a dependency comes later in the list (1 of 3 gaps)\n",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &b)
		}
	}
}

func TestImportReadsBothShapes(t *testing.T) {
	t.Parallel()
	const task = `{"id": "a", "task_type": "simple_task", "description": "x", "required_tools": ["utility_cache"]}`
	for name, text := range map[string]string{
		"list":        "[" + task + "]",
		"object":      `{"metadata": {"tasks": [1, {"x": "]"}]}, "tasks": [` + task + `], "more": "\"tasks\""}`,
		"marked":      "\xef\xbb\xbf[" + task + "]\n",
		"one a line":  "\n\n[\n" + task + "\n]\n\n",
		"two lists":   `{"tasks": [], "tasks": [` + task + `]}`,
		"both an IDs": `[{"instance_id": "a", "id": "b",` + task[len(`{"id": "a",`):] + "]",
	} {
		report, l, err := imported(t, text, func(o *library.ImportOptions) { o.Difficulty = "hard" })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := l.Task(t.Context(), "a", "hard"); err != nil || report.Kept != 1 {
			t.Errorf("%s: kept %d, %v", name, report.Kept, err)
		}
	}
}

// TestImportOfMixtures: a task may stand in a mixture and need not say at which
// of the five difficulties it is worded.
func TestImportOfMixtures(t *testing.T) {
	t.Parallel()
	const task = `{"id": "a", "task_type": "simple_task", "description": "x", "required_tools": ["utility_cache"]%s}`
	text := "[" + fmt.Sprintf(task, "") + "," + fmt.Sprintf(task, `, "difficulty_level": "hard_biased"`) + "," + fmt.Sprintf(task, `, "difficulty_level": "very_hard"`) + "]"
	report, l, err := imported(t, text, func(o *library.ImportOptions) { o.Difficulty = "medium_biased" })
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
	if line := "  simple_task           medium_biased      1\n"; !strings.Contains(report.String(), line) {
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

func TestImportNothing(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`[]`, `{"tasks": []}`, `[{"id": "a"}]`} {
		report, _, err := imported(t, text)
		if !errors.Is(err, library.ErrNothingKept) || !strings.Contains(err.Error(), "\nhint: ") {
			t.Errorf("%s: %v", text, err)
		}
		if report.Read != report.Excluded || (report.Read == 1) != (len(report.Findings) > 0) {
			t.Errorf("%s: report %+v", text, report)
		}
	}
}

func TestImportSaysWhereTheFileIsBroken(t *testing.T) {
	t.Parallel()
	const task = `{"id": "a", "task_type": "simple_task", "description": "x", "required_tools": ["utility_cache"]}`
	long := strings.Repeat("é", 5000)
	for _, tt := range []struct{ name, text, want string }{
		{
			"amid a task", "{\"tasks\": [\n  " + task + ",\n  {\"id\": \"b\" \"task_type\": 1}\n]}",
			":3:14: invalid character '\"' after object key:value pair\n    {\"id\": \"b\" \"task_type\": 1}\n               ^",
		},
		{"no comma", "[\n" + task + "\n" + "  " + task + "]", ":3:3: "},
		{"no value", "[\n" + task + ",\n]", ":3:1: "},
		{"cut in a task", "[\n{\"id\": \"a\",", ":2:12: the file ends"},
		{"cut after a task", "[" + task, fmt.Sprintf(":1:%d: the file ends", len(task)+2)},
		{"cut in the object", `{"tasks": [` + task + `]`, fmt.Sprintf(":1:%d: the file ends", len(task)+13)},
		{"empty", "", ":1:1: the file ends"},
		{"no JSON", "hello", ":1:1: invalid character 'h' looking for beginning of value\n  hello\n  ^"},
		{"a string", `"hello"`, ":1:1: a task file must be a JSON object"},
		{"text after the end", "[" + task + "]\n[]", ":2:1: unexpected text after"},
		{"no text after the end", "[" + task + "]\n  x", ":2:3: unexpected text after"},
		{"tasks is an object", `{"tasks": {}}`, ":1:11: \"tasks\" must be a list"},
		{"no tasks", `{"utility_cache": {}}`, "tasks.json: the object has no list \"tasks\"\nhint: "},
		{"wrong key", `{"a": 1, b: 2}`, ":1:10: invalid character 'b'"},
		{"bad bracket", `{"a": 1]`, ":1:8: "},
		{"a long line", `[{"id": "` + long + `", x}]`, ":1:5013: invalid character 'x'"},
		{"a pointer", "version https://git-lfs.github.com/spec/v1\n", "hint: fetch the content with `git lfs pull`"},
	} {
		_, _, err := imported(t, tt.text)
		if err == nil || !strings.Contains(err.Error(), "tasks.json") || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got\n%v\nwant\n%s", tt.name, err, tt.want)
		}
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%s: the message has %d bytes", tt.name, len(err.Error()))
		}
	}
}

func TestImportNeedsAPlaceToWrite(t *testing.T) {
	t.Parallel()
	const task = `[{"id": "a", "task_type": "simple_task", "description": "x", "required_tools": ["utility_cache"]}]`
	dir := t.TempDir()
	in, out := filepath.Join(dir, "tasks.json"), filepath.Join(dir, "out.db")
	for path, content := range map[string]string{in: task, out: "before"} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		opts library.ImportOptions
		want string
	}{
		{library.ImportOptions{Tasks: in, Out: out}, "already exists\nhint: "},
		{library.ImportOptions{Tasks: in, Out: dir, Force: true}, "is a directory"},
		{library.ImportOptions{Tasks: in, Out: in, Force: true}, "is both input and output"},
		{library.ImportOptions{Tasks: in, Out: filepath.Join(dir, "none", "out.db")}, "no such file"},
		{library.ImportOptions{Tasks: filepath.Join(dir, "none"), Out: out, Force: true}, "no such file"},
		{library.ImportOptions{Tasks: in, Tools: filepath.Join(dir, "none"), Out: out, Force: true}, "no such file"},
		{library.ImportOptions{Tasks: in, Out: out, Force: true, Difficulty: "eazy"}, "did you mean easy?"},
		{library.ImportOptions{Out: out}, "are required"},
	} {
		if _, err := library.Import(t.Context(), tt.opts); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v, want %q", tt.opts, err, tt.want)
		}
		if b, _ := os.ReadFile(out); string(b) != "before" {
			t.Fatalf("%+v: the file is now %q", tt.opts, b)
		}
	}
	if _, err := library.Import(t.Context(), library.ImportOptions{Tasks: in, Out: out, Force: true}); err != nil {
		t.Error(err)
	}
	open(t, out)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := library.Import(ctx, library.ImportOptions{Tasks: in, Out: filepath.Join(dir, "x.db")}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// FuzzTaskFile compares the streaming reader with a decoder that sees the
// whole text: both take the same files, and find the same flaw in others.
func FuzzTaskFile(f *testing.F) {
	f.Add([]byte(odd))
	f.Add([]byte(`{"metadata": {}, "tasks": [1, {}], "x": [{"y": 1}]} `))
	f.Add([]byte("{\"tasks\": [\n{\"id\": \"b\" \"x\"}"))
	f.Add([]byte("\xef\xbb\xbf[1,,"))
	f.Add([]byte("[1 2]"))
	for _, s := range []string{",A0", "[]0.", "{t0", "[1 t0", "{\"a\":1 t", "{\"a\" t", "{,", "[1:2", "[1}"} {
		f.Add([]byte(s))
	}
	f.Add([]byte("[1]}"))
	path := filepath.Join(f.TempDir(), "tasks.json")
	f.Fuzz(func(t *testing.T, text []byte) {
		path := fmt.Sprintf("%s.%d", path, os.Getpid())
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		n, err := library.CountEntries(path)
		plain := bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
		var list []json.RawMessage
		var syntax *json.SyntaxError
		whole := json.Unmarshal(plain, &list)
		switch {
		case whole == nil && list != nil && (err != nil || n != len(list)):
			t.Errorf("%d elements and %v, want %d", n, err, len(list))
		case errors.As(whole, &syntax) && err == nil:
			t.Errorf("no error, want %v", whole)
		case errors.As(whole, &syntax) && strings.HasPrefix(syntax.Error(), "invalid character"):
			line, column, perr := library.Locate(path, int64(len(text)-len(plain))+syntax.Offset-1)
			want := fmt.Sprintf("%s:%d:%d: ", path, line, column)
			if perr != nil {
				t.Fatal(perr)
			}
			// An object with a flaw after what is wrong with its shape, and a
			// number that is cut off, for which the whole decoder makes up a
			// space.
			early := strings.Contains(err.Error(), "a task file must be") || strings.Contains(err.Error(), "must be a list") ||
				strings.Contains(err.Error(), "the file ends") && syntax.Offset == int64(len(plain))
			if !early && !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%v\nwant %s%v", err, want, whole)
			}
		}
	})
}

// importSeeds are pairs of a task file and a registry; an empty one stands for
// the built-in tools.
func importSeeds() (seeds [][2]string) {
	const registry = `{"utility_cache": {"category": "utility", "operation": "cache", "description": "x", "errors": [{"code": "TIMEOUT"}],
		"parameters": [{"name": "key", "type": "string", "required": true}], "returns": [{"name": "success", "type": "boolean"}]},
		"utility_log": {"errors": [{"code": "E"}], "dependencies": ["utility_cache"], "dependency_metadata": {"execution_order": 1e9}}}`
	for _, tasks := range []string{
		odd,
		`{"metadata": {}, "tasks": [{"id": "\u0000", "task_type": "simple_task", "description": "x", "required_tools": ["utility_cache"], "inputs": {"\ud800": "<"}}]}`,
		`[{"id": "m", "task_type": "basic_task", "description": "x", "difficulty_level": "hard_biased", "required_tools": ["utility_log", "utility_cache"]}]`,
		"{\"tasks\": [\n{\"id\": \"b\" \"x\"}",
		"\xef\xbb\xbf[1,,",
	} {
		seeds = append(seeds, [2]string{tasks, ""}, [2]string{tasks, registry})
	}
	return append(
		seeds,
		[2]string{"[]", `{"a": {"errors": [{"code": "E"}], "dependencies": ["b"]}, "b": {"errors": [{"code": "E"}], "dependencies": ["a"]}}`},
		[2]string{"[]", `{"a": {}, "a": {"parameters": [{"name": "x", "type": "y"}]}}`},
		[2]string{"[]", "null"},
	)
}

func TestImportWritesWhatItKeeps(t *testing.T) {
	t.Parallel()
	for _, seed := range importSeeds() {
		opts := importFiles(t, filepath.Join(t.TempDir(), "in"), []byte(seed[0]), []byte(seed[1]))
		kept, _, _, err := library.ReadImport(opts)
		checkImport(t, opts, kept, err)
	}
}

// FuzzImport reads any two files as tasks and tools. Whatever is kept of them
// is as a library has to be. Few pairs are imported for good: to write a file
// takes a hundred times longer than to read one.
func FuzzImport(f *testing.F) {
	for _, seed := range importSeeds() {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	stem := filepath.Join(f.TempDir(), fmt.Sprint(os.Getpid()))
	f.Fuzz(func(t *testing.T, tasks, registry []byte) {
		opts := importFiles(t, stem, tasks, registry)
		kept, tools, report, err := library.ReadImport(opts)
		if err == nil {
			checkKept(t, kept, tools, report)
		}
		h := fnv.New32a()
		h.Write(tasks)
		h.Write(registry)
		if h.Sum32()>>8%512 == 0 {
			checkImport(t, opts, kept, err)
		}
	})
}

// importFiles writes the files of an import.
func importFiles(t *testing.T, stem string, tasks, registry []byte) library.ImportOptions {
	opts := library.ImportOptions{Difficulty: "easy", Tasks: stem + ".tasks"}
	err := os.WriteFile(opts.Tasks, tasks, 0o600)
	if len(registry) > 0 {
		opts.Tools = stem + ".tools"
		err = errors.Join(err, os.WriteFile(opts.Tools, registry, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return opts
}

// checkKept holds what is true of the tasks and tools of every library.
func checkKept(t *testing.T, kept []assay.Task, tools []assay.Tool, report library.Report) {
	if report.Read != report.Kept+report.Excluded || report.Kept != len(kept) {
		t.Errorf("%d tasks, but report %+v", len(kept), report)
	}
	if problems := library.CheckTools(tools); len(problems) > 0 {
		t.Errorf("tools are kept of which %q", problems)
	}
	catalog := assay.NewCatalog(tools)
	seen := make(map[string]bool)
	for _, task := range kept {
		key := fmt.Sprintf("%q %s", task.ID, task.Difficulty)
		difficulties := slices.Concat(assay.Difficulties, assay.Mixtures)
		if task.ID == "" || seen[key] || !slices.Contains(assay.TaskTypes, task.Type) || !slices.Contains(difficulties, task.Difficulty) {
			t.Errorf("kept is %+v", task)
		}
		seen[key] = true
		if strings.TrimSpace(task.Description) == "" || len(task.Required) == 0 {
			t.Errorf("nothing is to be done in %+v", task)
		}
		for i, name := range task.Required {
			if _, ok := catalog.Tool(name); !ok || slices.Contains(task.Required[:i], name) {
				t.Errorf("%q cannot be required as number %d of %q", name, i, task.Required)
			}
		}
		task.Digest() // panics on what is no JSON
	}
}

// checkImport imports for good what was read as kept, or as err.
func checkImport(t *testing.T, opts library.ImportOptions, kept []assay.Task, readErr error) {
	dir := t.TempDir()
	opts.Out = filepath.Join(dir, "out.db")
	_, err := library.Import(t.Context(), opts)
	if (err != nil) != (readErr != nil || len(kept) == 0) {
		t.Errorf("%d tasks are kept with %v, but the import ends in %v", len(kept), readErr, err)
	}
	if err != nil {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("after %v there is %v", err, entries)
		}
		return
	}
	l := open(t, opts.Out)
	if err := l.Verify(t.Context()); err != nil || l.Meta().Tasks != len(kept) {
		t.Errorf("%v, of %d tasks %d were written", err, len(kept), l.Meta().Tasks)
	}
	for _, want := range kept {
		if got, err := l.Task(t.Context(), want.ID, want.Difficulty); err != nil || got.Digest() != want.Digest() {
			t.Errorf("Task(%q) = %+v, %v", want.ID, got, err)
		}
	}
}
