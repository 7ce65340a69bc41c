package library_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

// importSeeds returns pairs of a task file and a registry. An empty registry stands for the
// built-in tools.
func importSeeds(t testing.TB) (seeds [][2]string) {
	const registry = `{
		"utility_cache": {
			"category": "utility", "operation": "cache", "description": "x",
			"errors": [{"code": "TIMEOUT"}],
			"parameters": [{"name": "key", "type": "string", "required": true}],
			"returns": [{"name": "success", "type": "boolean"}]
		},
		"utility_log": {
			"errors": [{"code": "E"}], "dependencies": ["utility_cache"],
			"dependency_metadata": {"execution_order": 1e9}
		}
	}`
	for _, tasks := range []string{
		odd(t),
		`{"metadata": {}, "tasks": [{"id": "\u0000", "task_type": "simple_task", "description": "x",
			"required_tools": ["utility_cache"], "inputs": {"\ud800": "<"}}]}`,
		`[{"id": "m", "task_type": "basic_task", "description": "x",
			"difficulty_level": "hard_biased",
			"required_tools": ["utility_log", "utility_cache"]}]`,
		"{\"tasks\": [\n{\"id\": \"b\" \"x\"}",
		"\xef\xbb\xbf[1,,",
	} {
		seeds = append(seeds, [2]string{tasks, ""}, [2]string{tasks, registry})
	}
	return append(
		seeds,
		[2]string{"[]", `{"a": {"errors": [{"code": "E"}], "dependencies": ["b"]},
			"b": {"errors": [{"code": "E"}], "dependencies": ["a"]}}`},
		[2]string{"[]", `{"a": {}, "a": {"parameters": [{"name": "x", "type": "y"}]}}`},
		[2]string{"[]", "null"},
	)
}

func TestImportWritesWhatItKeeps(t *testing.T) {
	t.Parallel()
	for _, seed := range importSeeds(t) {
		opts := importFiles(t, filepath.Join(t.TempDir(), "in"), []byte(seed[0]), []byte(seed[1]))
		kept, _, _, err := library.ReadImport(opts)
		checkImport(t, opts, kept, err)
	}
}

// FuzzImport reads any two files as tasks and tools. Whatever it keeps must be valid in a library.
// It writes a library only for one input in 512, because writing takes a hundred times longer than
// reading.
func FuzzImport(f *testing.F) {
	for _, seed := range importSeeds(f) {
		f.Add([]byte(seed[0]), []byte(seed[1]))
	}
	for _, seed := range yamldoctest.JSON(2000) {
		f.Add([]byte(seed), []byte("{}"))
		f.Add([]byte("[]"), []byte(seed))
	}
	for _, seed := range importSeeds(f) {
		for _, tasks := range yamldoctest.Mutations(25, seed[0]) {
			f.Add([]byte(tasks), []byte(seed[1]))
		}
		for _, registry := range yamldoctest.Mutations(25, seed[1]) {
			f.Add([]byte(seed[0]), []byte(registry))
		}
	}
	stem := filepath.Join(f.TempDir(), fmt.Sprint(os.Getpid()))
	f.Fuzz(func(t *testing.T, tasks, registry []byte) {
		opts := importFiles(t, stem, tasks, registry)
		var kept []assay.Task
		var tools []assay.Tool
		var report library.Report
		err := yamldoctest.Check(t, func() (err error) {
			kept, tools, report, err = library.ReadImport(opts)
			return err
		})
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

// checkKept checks conditions that hold for the tasks and tools of every library.
func checkKept(t *testing.T, kept []assay.Task, tools []assay.Tool, report library.Report) {
	if report.Read != report.Kept+report.Excluded || report.Kept != len(kept) {
		t.Errorf("%d tasks are kept, but the report is %+v", len(kept), report)
	}
	if problems := library.CheckTools(tools); len(problems) > 0 {
		t.Errorf("kept tools with the problems %v", problems)
	}
	catalog := assay.NewCatalog(tools)
	difficulties := slices.Concat(assay.Difficulties, assay.Mixtures)
	seen := make(map[string]bool)
	for _, task := range kept {
		key := fmt.Sprintf("%q %s", task.ID, task.Difficulty)
		known := slices.Contains(assay.TaskTypes, task.Type) &&
			slices.Contains(difficulties, task.Difficulty)
		if task.ID == "" || seen[key] || !known {
			t.Errorf("kept the invalid task %+v", task)
		}
		seen[key] = true
		if strings.TrimSpace(task.Description) == "" || len(task.Required) == 0 {
			t.Errorf("kept a task without description or tools: %+v", task)
		}
		for i, name := range task.Required {
			if _, ok := catalog.Tool(name); !ok || slices.Contains(task.Required[:i], name) {
				t.Errorf("required tool %d of %q is unknown or repeated", i, task.Required)
			}
		}
		task.Digest() // panics if the task contains invalid JSON
	}
}

// checkImport imports the files and compares the result with a previous reading.
func checkImport(t *testing.T, opts library.ImportOptions, kept []assay.Task, readErr error) {
	dir := t.TempDir()
	opts.Out = filepath.Join(dir, "out.db")
	_, err := library.Import(t.Context(), opts)
	if (err != nil) != (readErr != nil || len(kept) == 0) {
		t.Errorf("reading kept %d tasks with the error %v, but the import returned %v",
			len(kept), readErr, err)
	}
	if err != nil {
		if entries, _ := os.ReadDir(dir); len(entries) > 0 {
			t.Errorf("the error %v left behind %v", err, entries)
		}
		return
	}
	l := open(t, opts.Out)
	if err := l.Verify(t.Context()); err != nil || l.Meta().Tasks != len(kept) {
		t.Errorf("wrote %d of %d tasks, %v", l.Meta().Tasks, len(kept), err)
	}
	for _, want := range kept {
		got, err := l.Task(t.Context(), want.ID, want.Difficulty)
		if err != nil || got.Digest() != want.Digest() {
			t.Errorf("Task(%q) = %+v, %v", want.ID, got, err)
		}
	}
}
