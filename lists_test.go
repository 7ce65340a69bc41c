package assay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"testing"

	"github.com/assay-eval/assay"
)

// Each value of an enumeration is in its list, so that tables, schemas and filters know it.
func TestListsAreComplete(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]int)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				if of, ok := v.Type.(*ast.Ident); ok {
					values[of.Name] += len(v.Names)
				}
			}
			return true
		})
	}
	for of, listed := range map[string]int{
		"Stop": len(assay.Stops), "Ended": len(assay.Ends), "Cause": len(assay.Causes),
		"FaultKind": len(assay.FaultKinds), "Level": len(assay.Levels), "ToolFault": len(assay.ToolFaults),
		"ModelFault": len(assay.ModelFaults), "Harm": len(assay.Harms),
	} {
		if values[of] != listed || listed == 0 {
			t.Errorf("there are %d values of %s, and its list has %d", values[of], of, listed)
		}
	}
}
