package assay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// unsynced lists the functions that may give a file a new name without syncing its directory.
var unsynced = map[string]string{
	"createBuiltin": "the name has the sum of the content, which is made again if it does not match",
	"WriteCache":    "what is missing in a cache is computed again",
	"renew":         "a run's journal is for a kill, which takes nothing away that was written",
}

// A name that was given to a complete file survives a power cut only if its directory is synced.
func TestNewNamesAreSynced(t *testing.T) {
	t.Parallel()
	renames := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "examples" || d.Name() == ".cache"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, decl := range file.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			called := make(map[string]bool)
			ast.Inspect(f, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					called[nameOf(call.Fun)] = true
				}
				return true
			})
			if !called["os.Rename"] && !called["os.Link"] && !called["os.Symlink"] {
				continue
			}
			renames++
			_, exempt := unsynced[f.Name.Name]
			if synced := called["SyncDir"] || called["syncDir"] || called["store.SyncDir"]; synced == exempt {
				t.Errorf("%s: %s gives a file a name; it syncs the directory: %v, and is exempt: %v",
					path, f.Name.Name, synced, exempt)
			}
		}
		return nil
	})
	if err != nil || renames < 4 {
		t.Errorf("%d functions rename files, %v; the test has lost sight of them", renames, err)
	}
}

// nameOf returns the name of a called function, with its package if it has one.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	}
	return ""
}
