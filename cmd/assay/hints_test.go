//go:build !race

package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
)

// TestEveryHintHasWords checks that each code of a hint is worded, and no other.
func TestEveryHintHasWords(t *testing.T) {
	t.Parallel()
	file, err := parser.ParseFile(token.NewFileSet(), repository+"/hint.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var codes []assay.Hint
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Hint") {
			codes = append(codes, assay.Hint(strings.Trim(v.Values[0].(*ast.BasicLit).Value, `"`)))
		}
		return true
	})
	for _, code := range codes {
		if hints[code] == "" {
			t.Errorf("the hint %s has no words", code)
		}
	}
	for code := range hints {
		if !slices.Contains(codes, code) {
			t.Errorf("nothing has the hint %s", code)
		}
	}
}
