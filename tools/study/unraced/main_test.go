package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
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
			got := unraced(parsed(t, head+"package x\n\nimport \"testing\"\n\n"+text), false, isShort)
			if !all && !slices.Equal(got, want) || all && !slices.Contains(got, "TestA") {
				t.Errorf("%s%s: %v", head, text, got)
			}
		}
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	const test = `import "testing"; func TestA(t *testing.T) `
	for text, want := range map[string]bool{
		`func f() { go f() }`:                      true,
		`func f() { g.Go(h) }`:                     true,
		`func f() { go2 := 1 }`:                    false,
		`import "sync/atomic"`:                     true,
		`import "net/url"`:                         false,
		`type t struct{ mu sync.Mutex }`:           true,
		`var f = sync.OnceValue(g)`:                false,
		`var c http.Client`:                        true,
		`var h = http.Header{}`:                    false,
		`const c = http.StatusOK`:                  false,
		test + `{ g.Go(h) }`:                       true,
		test + `{ var wg sync.WaitGroup }`:         true,
		test + `{ var mu sync.Mutex }`:             false,
		test + `{ if short { n = 1 }; go f() }`:    true,
		test + `{ if short { t.Skip() }; go f() }`: false,
		`import "testing"; func TestA() {}; func TestB() { if short { t.Skip() }; go f() }`: true,
	} {
		text = strings.ReplaceAll(text, "short", "testing.Short()")
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
