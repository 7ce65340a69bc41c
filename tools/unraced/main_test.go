package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestUnraced(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		`func TestA(t *testing.T) { if testing.Short() { t.Skip() } }; func TestB(t *testing.T) {}`:         {"TestA"},
		`func slow(t *testing.T) { if testing.Short() { t.Skip() } }; func TestA(t *testing.T) { slow(t) }`: {"TestA"},
		`func FuzzB(f *testing.F) { if testing.Short() { f.Skip() } }; func TestA(t *testing.T) {}`:         {"FuzzB"},
		`func TestA(t *testing.T) {}`: nil,
	} {
		for head, all := range map[string]bool{"": false, "//go:build linux\n\n": false, "//go:build !race\n\n": true} {
			path := filepath.Join(t.TempDir(), "x_test.go")
			if err := os.WriteFile(path, []byte(head+"package x\n\n"+text), 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := unraced(path)
			if err != nil || !all && !slices.Equal(got, want) || all && !slices.Contains(got, "TestA") {
				t.Errorf("%s%s: %v, %v", head, text, got, err)
			}
		}
	}
}
