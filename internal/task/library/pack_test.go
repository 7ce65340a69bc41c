//go:build !race

package library_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

// Whatever tasks of a library are packed, in however many parts, come out as they were, with the
// digests that their trials have.
func TestUnpackReturnsWhatWasPacked(t *testing.T) {
	t.Parallel()
	l, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	refs, err := l.Refs(t.Context(), "simple_task", "easy")
	if err != nil {
		t.Fatal(err)
	}
	keys := func(refs []assay.TaskRef) (all []library.TaskKey) {
		for _, r := range refs {
			all = append(all, library.TaskKey{ID: r.ID, Difficulty: "easy"})
		}
		return all
	}
	var parts [][]byte
	for _, some := range [][]assay.TaskRef{refs[3:9], refs[:6]} { // they overlap
		part, err := l.Pack(t.Context(), slices.Values(keys(some)))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
	}
	path := filepath.Join(t.TempDir(), "gone.db")
	kept, err := library.Unpack(t.Context(), parts, l.Meta().Digest, path)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()

	got, err := kept.Refs(t.Context(), "simple_task", "easy")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(refs[:9], got); diff != "" {
		t.Errorf("Refs() (-want +got):\n%s", diff)
	}
	for _, r := range got {
		want, err := l.Task(t.Context(), r.ID, "easy")
		if err != nil {
			t.Fatal(err)
		}
		task, err := kept.Task(t.Context(), r.ID, "easy")
		if diff := cmp.Diff(want, task); err != nil || diff != "" {
			t.Fatalf("Task(%s): %v (-want +got):\n%s", r.ID, err, diff)
		}
	}
	if kept.Path() != path || kept.Meta().Digest != l.Meta().Digest ||
		kept.Meta().Name != l.Meta().Name {
		t.Errorf("Path() = %s, Meta() = %+v, want those of %+v", kept.Path(), kept.Meta(), l.Meta())
	}
	packed, err := library.Packed(parts)
	if err != nil || len(packed) != 9 {
		t.Errorf("Packed() = %d tasks, %v, want 9", len(packed), err)
	}
}

func FuzzUnpack(f *testing.F) {
	l, err := library.Builtin(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	defer l.Close()
	part, err := l.Pack(f.Context(), slices.Values([]library.TaskKey(nil)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(part)
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, part []byte) {
		if kept, err := library.Unpack(t.Context(), [][]byte{part}, "d", "p"); err == nil {
			kept.Close()
		}
	})
}
