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
}

// A name that was given to a complete file survives a power cut only if its directory is synced.
func TestNewNamesAreSynced(t *testing.T) {
	t.Parallel()
	renames := 0
	for _, f := range functions(t) {
		named := f.lastOf(".Rename", ".Link", ".Symlink", ".CloseAtomicallyReplace")
		if named == token.NoPos || strings.HasSuffix(filepath.Dir(f.path), "test") {
			continue
		}
		renames++
		_, exempt := unsynced[f.name]
		if synced := f.lastOf("durable.SyncDir") > named; synced == exempt {
			t.Errorf("%s: %s gives a file a name; it then syncs the directory: %v, and is exempt: %v",
				f.path, f.name, synced, exempt)
		}
	}
	if renames < 6 {
		t.Errorf("%d functions rename files; the test has lost sight of them", renames)
	}
}

// Temporary directories are those that the next process removes if this one is killed.
func TestTemporaryDirectoriesAreLocked(t *testing.T) {
	t.Parallel()
	for _, f := range functions(t) {
		if f.calls["os.MkdirTemp"] != token.NoPos && f.name != "NewFolder" && !strings.HasPrefix(f.path, "tools") {
			t.Errorf("%s: %s makes a directory that is left behind if the process is killed; "+
				"child.NewFolder makes one that is not", f.path, f.name)
		}
	}
}

// A function is one of the program, with the names of what it calls, and the place of the last call.
type function struct {
	path, name string
	calls      map[string]token.Pos
}

// lastOf returns the place of the last call of functions whose names end so.
func (f *function) lastOf(names ...string) (last token.Pos) {
	for call, at := range f.calls {
		for _, name := range names {
			if strings.HasSuffix(call, name) {
				last = max(last, at)
			}
		}
	}
	return last
}

func functions(t *testing.T) (all []function) {
	t.Helper()
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
			if f, ok := decl.(*ast.FuncDecl); ok {
				all = append(all, function{path, f.Name.Name, callsOf(f)})
			}
		}
		return nil
	})
	if err != nil || len(all) < 1000 {
		t.Fatalf("there are %d functions, %v", len(all), err)
	}
	return all
}

func callsOf(f *ast.FuncDecl) map[string]token.Pos {
	calls := make(map[string]token.Pos)
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			calls[nameOf(call.Fun)] = call.Pos() // in the order of the text
		}
		return true
	})
	return calls
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
