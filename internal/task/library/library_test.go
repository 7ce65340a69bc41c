package library_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

func open(t testing.TB, path string) *library.Library {
	t.Helper()
	l, err := library.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l
}

// numbered yields n small tasks.
func numbered(n int) iter.Seq[assay.Task] {
	return func(yield func(assay.Task) bool) {
		for i := range n {
			if !yield(assay.Task{
				ID:          assay.TaskID(fmt.Sprintf("task-%06d", i)),
				Type:        assay.TaskTypes[i%5],
				Difficulty:  assay.Difficulties[i/5%5],
				Description: "Read file " + strings.Repeat("x", 500) + ".",
				Required:    []string{"file_operations_reader"},
			}) {
				return
			}
		}
	}
}

func create(t testing.TB, tasks iter.Seq[assay.Task]) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "lib.db")
	meta := library.Meta{Name: "lib", Source: "test"}
	if err := library.Create(t.Context(), path, meta, library.Tools(), tasks); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestLibraryKeepsWhatItWasGiven(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		tasks := rapid.SliceOfNDistinct(rapid.Custom(anyTask), 1, 8, func(k assay.Task) string {
			return string(k.ID) + "\n" + k.Difficulty
		}).Draw(rt, "tasks")
		path := filepath.Join(dir, "lib ?#%.db")
		meta := library.Meta{Name: "any", Source: "rapid", Created: time.Unix(1750000000, 0).UTC()}
		err := library.Create(t.Context(), path, meta, library.Tools()[:1], slices.Values(tasks))
		if err != nil {
			rt.Fatal(err)
		}
		l, err := library.Open(t.Context(), path)
		if err != nil {
			rt.Fatal(err)
		}
		defer l.Close()
		if err := l.Verify(t.Context()); err != nil {
			rt.Error(err)
		}
		meta.Digest, meta.Tools, meta.Tasks = l.Meta().Digest, 1, len(tasks)
		if diff := cmp.Diff(meta, l.Meta()); diff != "" {
			rt.Errorf("meta (-want +got):\n%s", diff)
		}
		for _, want := range tasks {
			got, err := l.Task(t.Context(), want.ID, want.Difficulty)
			if err != nil {
				rt.Fatal(err)
			}
			same := got.Description == want.Description && slices.Equal(got.Required, want.Required)
			if !same || got.Digest() != want.Digest() {
				rt.Errorf("Task() = %+v, want %+v", got, want)
			}
		}
		checkRefs(rt, l, tasks)
	})
}

func anyTask(t *rapid.T) assay.Task {
	task := assay.Task{
		ID:          assay.TaskID(rapid.String().Draw(t, "id")),
		Type:        rapid.SampledFrom(assay.TaskTypes).Draw(t, "type"),
		Difficulty:  rapid.SampledFrom(assay.Difficulties).Draw(t, "difficulty"),
		Description: rapid.String().Draw(t, "description"),
		Required:    rapid.SliceOf(rapid.SampledFrom([]string{"a", "b"})).Draw(t, "required"),
	}
	if rapid.Bool().Draw(t, "with inputs") {
		inputs := rapid.MapOf(rapid.String(), rapid.Int()).Draw(t, "inputs")
		b, err := json.MarshalIndent(inputs, " ", "\t")
		if err != nil {
			t.Fatal(err)
		}
		task.Inputs = b
	}
	return task
}

func checkRefs(t *rapid.T, l *library.Library, tasks []assay.Task) {
	total := 0
	counts, err := l.Counts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		var want []assay.TaskRef
		for _, task := range tasks {
			if task.Type == c.Type && task.Difficulty == c.Difficulty {
				want = append(want, assay.TaskRef{ID: task.ID, Digest: l.Digest(&task)})
			}
		}
		slices.SortFunc(want, func(a, b assay.TaskRef) int {
			return strings.Compare(string(a.ID), string(b.ID))
		})
		got, err := l.Refs(context.Background(), c.Type, c.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" || len(got) != c.Tasks {
			t.Errorf("Refs(%s, %s), %d counted (-want +got):\n%s",
				c.Type, c.Difficulty, c.Tasks, diff)
		}
		total += c.Tasks
	}
	if total != len(tasks) {
		t.Errorf("the sum of the counts is %d, want %d", total, len(tasks))
	}
}

func TestLibraryDigestIgnoresTheOrderOfTasks(t *testing.T) {
	t.Parallel()
	tasks := slices.Collect(numbered(50))
	first := open(t, create(t, slices.Values(tasks))).Meta().Digest
	slices.Reverse(tasks)
	if got := open(t, create(t, slices.Values(tasks))).Meta().Digest; got != first {
		t.Errorf("digest = %s, but %s in reverse order", first, got)
	}
	tasks[7].Description += " "
	if got := open(t, create(t, slices.Values(tasks))).Meta().Digest; got == first {
		t.Errorf("digest is still %s after a task changed", got)
	}
}

func TestLibraryKeepsItsTools(t *testing.T) {
	t.Parallel()
	l := open(t, create(t, numbered(1)))
	if diff := cmp.Diff(library.Tools(), l.Catalog().All()); diff != "" {
		t.Errorf("catalog (-want +got):\n%s", diff)
	}
}

func TestTaskNotFound(t *testing.T) {
	t.Parallel()
	l := open(t, create(t, numbered(3)))
	_, err := l.Task(t.Context(), "task-000001", "hard")
	const hint = "hint: the library has this task at very_easy"
	if !errors.Is(err, library.ErrTaskNotFound) || !strings.Contains(err.Error(), hint) {
		t.Errorf("another difficulty: %v", err)
	}
	_, err = l.Task(t.Context(), "nope", "easy")
	if !errors.Is(err, library.ErrTaskNotFound) || !strings.Contains(err.Error(), "library lib") {
		t.Errorf("another ID: %v", err)
	}
	refs, err := l.Refs(t.Context(), "simple_task", "very_hard")
	if len(refs) != 0 || err != nil {
		t.Errorf("Refs() = %v, %v", refs, err)
	}
}

func TestTaskIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	l := open(t, create(t, numbered(200)))
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := g; i < 200; i += 3 {
				id := assay.TaskID(fmt.Sprintf("task-%06d", i))
				got, err := l.Task(t.Context(), id, assay.Difficulties[i/5%5])
				if err != nil || got.ID != id {
					t.Errorf("Task(%s) = %s, %v", id, got.ID, err)
				}
			}
		})
	}
	wg.Wait()
}

func TestTaskWorksAfterACancelledCall(t *testing.T) {
	t.Parallel()
	l := open(t, create(t, numbered(1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Task(ctx, "task-000000", "very_easy"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := l.Task(t.Context(), "task-000000", "very_easy"); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestOpenLeavesTheDirectoryAlone(t *testing.T) {
	t.Parallel()
	path := create(t, numbered(3))
	dir := filepath.Dir(path)
	if err := errors.Join(os.Chmod(path, 0o444), os.Chmod(dir, 0o555)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(dir, 0o755) })
	l := open(t, path)
	if _, err := l.Task(t.Context(), "task-000002", "very_easy"); err != nil {
		t.Error(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory contains %v, %v", entries, err)
	}
}

func TestOpenRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good, err := os.ReadFile(create(t, numbered(100)))
	if err != nil {
		t.Fatal(err)
	}
	newer := slices.Clone(good)
	newer[63] = library.FormatVersion + 1
	damaged := slices.Clone(good)
	for i := 100; i < len(damaged); i++ {
		damaged[i] = 0xff
	}
	importJSON := "import_file[" + filepath.Join(dir, "tasks.json") + "]"
	const lfs = "version https://git-lfs.github.com/spec/v1\noid sha256:00\n"
	for _, tt := range []struct{ name, path, want, hint string }{
		{"missing", filepath.Join(dir, "none.db"), "no such file", "builtin"},
		{"directory", dir, "directory", "name the library file"},
		{"empty", write("empty", ""), "empty", "import"},
		{"JSON", write("tasks.json", "\n {\"tasks\": []}"), "JSON", importJSON},
		{"JSON with mark", write("mark.json", "\xef\xbb\xbf[]"), "JSON", "import_file"},
		{"LFS pointer", write("pointer.json", lfs), "LFS", "git lfs pull"},
		{"text", write("text", "hello"), "not an SQLite file", "new_library"},
		{"cut header", write("short.db", string(good[:50])), "cut off", "again"},
		{"newer format", write("newer.db", string(newer)), "format 2", "update assay"},
		{"cut", write("half.db", string(good[:len(good)/2/4096*4096])), "damaged", "again"},
		{"damaged", write("damaged.db", string(damaged)), "damaged", "again"},
		{"other database", otherDatabase(t, dir), "not an Assay library", "not_results"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, err := library.Open(t.Context(), tt.path)
			if err == nil {
				// Open may not read the missing part, but Verify must notice.
				err = errors.Join(l.Verify(t.Context()), l.Close())
			}
			if err == nil {
				t.Fatal("no error")
			}
			text, hint, _ := strings.Cut(err.Error(), "\nhint: ")
			if hinted, ok := errors.AsType[*assay.HintedError](err); ok {
				hint = fmt.Sprint(hinted.Hint, hinted.Facts)
			}
			if !strings.Contains(text, tt.want) || !strings.Contains(text, tt.path) {
				t.Errorf("got %v, want %q and the path", err, tt.want)
			}
			if !strings.Contains(hint, tt.hint) {
				t.Errorf("got the hint %q, want %q", hint, tt.hint)
			}
		})
	}
}

// otherDatabase creates an SQLite database that is not a library.
func otherDatabase(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "other.db")
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("CREATE TABLE t (x)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestOpenReturnsTheCauseOfCancellation(t *testing.T) {
	t.Parallel()
	path := create(t, numbered(1))
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	_, err := library.Open(ctx, path)
	if err == nil || !strings.Contains(err.Error(), "enough") {
		t.Fatalf("Open() = %v, want the cause", err)
	}
	if strings.Contains(err.Error(), "damaged") {
		t.Errorf("Open() reports damage: %v", err)
	}
}

// Flipped bytes anywhere in a library cause an error or no harm, but never a different task.
func TestDamageNeverChangesATask(t *testing.T) {
	t.Parallel()
	want := slices.Collect(numbered(40))
	good, err := os.ReadFile(create(t, slices.Values(want)))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "bad.db")
	rapid.Check(t, func(rt *rapid.T) {
		bad := slices.Clone(good)
		at := rapid.IntRange(100, len(bad)-1).Draw(rt, "at")
		bad[at] ^= byte(rapid.IntRange(1, 255).Draw(rt, "flip"))
		if err := os.WriteFile(path, bad, 0o600); err != nil {
			rt.Fatal(err)
		}
		l, err := library.Open(t.Context(), path)
		if err != nil {
			return
		}
		defer l.Close()
		for _, w := range want {
			got, err := l.Task(t.Context(), w.ID, w.Difficulty)
			if err == nil && got.Digest() != w.Digest() {
				rt.Errorf("Task(%s) = %+v", w.ID, got)
			}
		}
	})
}

// BenchmarkOpen shows that the cost of opening a library doesn't depend on its number of tasks.
func BenchmarkOpen(b *testing.B) {
	for _, n := range []int{500, 50_000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			path := create(b, numbered(n))
			b.ReportAllocs()
			for b.Loop() {
				l, err := library.Open(b.Context(), path)
				if err != nil {
					b.Fatal(err)
				}
				_, err = l.Task(b.Context(), "task-000321", assay.Difficulties[321/5%5])
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Close(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTask(b *testing.B) {
	l := open(b, create(b, numbered(50_000)))
	i := 0
	for b.Loop() {
		i = (i + 7919) % 50_000
		id := assay.TaskID(fmt.Sprintf("task-%06d", i))
		if _, err := l.Task(b.Context(), id, assay.Difficulties[i/5%5]); err != nil {
			b.Fatal(err)
		}
	}
}

// Different tools make a different task. With the built-in tools the digest is the task's own.
func TestTaskDigestDependsOnTheTools(t *testing.T) {
	t.Parallel()
	task := assay.Task{
		ID: "t", Type: "simple_task", Difficulty: "easy", Description: "Read.",
		Required: []string{"file_operations_reader"},
	}
	digest := func(tools []assay.Tool) string {
		path := filepath.Join(t.TempDir(), "l.db")
		tasks := slices.Values([]assay.Task{task})
		err := library.Create(t.Context(), path, library.Meta{Name: "l"}, tools, tasks)
		if err != nil {
			t.Fatal(err)
		}
		refs, err := open(t, path).Refs(t.Context(), "simple_task", "easy")
		if err != nil || len(refs) != 1 {
			t.Fatalf("Refs() = %v, %v", refs, err)
		}
		return refs[0].Digest
	}
	other := library.Tools()
	other[0].Dependencies = []string{"network_fetcher"}
	reworded := library.Tools()
	reworded[3].Description += " Or so."
	if got := digest(library.Tools()); got != task.Digest() {
		t.Errorf("with the built-in tools the digest is %s, want %s", got, task.Digest())
	}
	a, b := digest(other), digest(reworded)
	if a == task.Digest() || b == task.Digest() || a == b {
		t.Errorf("with other tools the digests are %s and %s, with the built-in tools %s",
			a, b, task.Digest())
	}
}
