//go:build !race

package library_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
)

func TestCreateRefusesInvalidContent(t *testing.T) {
	t.Parallel()
	twice := func(yield func(assay.Task) bool) {
		for range 2 {
			for task := range numbered(3) {
				if !yield(task) {
					return
				}
			}
		}
	}
	broken := slices.Values([]assay.Task{{ID: "x", Inputs: json.RawMessage("{")}})
	doubled := append(library.Tools(), library.Tools()[0])
	for _, tt := range []struct {
		name  string
		tools []assay.Tool
		tasks iter.Seq[assay.Task]
		want  string
	}{
		{"no tasks", library.Tools(), numbered(0), "no tasks"},
		{"no tools", nil, numbered(1), "no tools"},
		{
			"a task twice", library.Tools(), twice,
			`"task-000000" at difficulty "very_easy" occurs twice`,
		},
		{"a tool twice", doubled, numbered(1), "file_operations_reader is defined twice"},
		{"broken JSON", library.Tools(), broken, `task "x"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(dir, "lib.db")
			if err := os.WriteFile(path, []byte("before"), 0o600); err != nil {
				t.Fatal(err)
			}
			err := library.Create(t.Context(), path, library.Meta{}, tt.tools, tt.tasks)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Create() = %v, want %q", err, tt.want)
			}
			b, _ := os.ReadFile(path)
			entries, _ := os.ReadDir(dir)
			if string(b) != "before" || len(entries) != 1 {
				t.Errorf("left behind %v, and the file is now %q", entries, b)
			}
		})
	}
}

func TestCancelledCreateLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	endless := func(yield func(assay.Task) bool) {
		for task := range numbered(1 << 30) {
			if task.ID == "task-000100" {
				cancel()
			}
			if !yield(task) {
				return
			}
		}
	}
	path := filepath.Join(dir, "lib.db")
	err := library.Create(ctx, path, library.Meta{}, library.Tools(), endless)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("Create() = %v, want %v", err, context.Canceled)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 0 {
		t.Errorf("left behind %v", entries)
	}
}
