package main

import (
	"go/ast"
	"go/parser"
	"go/token"
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
			got := unraced(parsed(t, head+"package x\n\nimport \"testing\"\n\n"+text), false)
			if !all && !slices.Equal(got, want) || all && !slices.Contains(got, "TestA") {
				t.Errorf("%s%s: %v", head, text, got)
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		`import "sync"`:         true,
		`func f() { go f() }`:   true,
		`func f() { g.Go(h) }`:  true,
		`import "net/http"`:     true,
		`import "net/url"`:      false,
		`func f() { go2 := 1 }`: false,
	} {
		if got := concurrent(parsed(t, "package x\n\n"+text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func parsed(t *testing.T, text string) *ast.File {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "x.go", text, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return file
}
