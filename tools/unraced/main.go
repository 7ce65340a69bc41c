// Command unraced prints the tests that the race detector leaves out, as a pattern and packages for
// go test: the ones that skip with -short, and the ones in files with the build constraint !race. A
// test says that itself, so there is no list to keep.
package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	names, dirs := make(map[string]bool), make(map[string]bool)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && len(d.Name()) > 1 && strings.ContainsAny(d.Name()[:1], "._"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, "_test.go"):
			return nil
		}
		tests, err := unraced(path)
		for _, name := range tests {
			names[name], dirs["./"+filepath.Dir(path)] = true, true
		}
		return err
	})
	if err == nil && len(names) == 0 {
		err = errors.New("no test is left out; run it in the root of the repository")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "unraced:", err)
		os.Exit(1)
	}
	fmt.Printf("-run ^(%s)$ %s\n", strings.Join(slices.Sorted(maps.Keys(names)), "|"),
		strings.Join(slices.Sorted(maps.Keys(dirs)), " "))
}

// unraced returns the names of the tests in a file that the race detector leaves out. A test that
// skips with -short may do so in a function that it calls in the same file.
func unraced(path string) (names []string, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	all, slow := notRaced(file), make(map[string]bool)
	for range 2 { // the functions, then the tests that call them
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && mentions(f, slow) {
				slow[f.Name.Name] = true
			}
		}
	}
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !all && !slow[f.Name.Name] {
			continue
		}
		// go test runs the seeds of fuzzers.
		if name := f.Name.Name; strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz") {
			names = append(names, name)
		}
	}
	return names, nil
}

// notRaced reports whether a file is only built without the race detector.
func notRaced(file *ast.File) bool {
	for _, group := range file.Comments {
		for _, c := range group.List {
			if x, err := constraint.Parse(c.Text); err == nil {
				return !x.Eval(func(tag string) bool { return true }) &&
					x.Eval(func(tag string) bool { return tag != "race" })
			}
		}
	}
	return false
}

// mentions reports whether a function calls testing.Short or one of the slow functions.
func mentions(f *ast.FuncDecl, slow map[string]bool) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		if call, ok := n.(*ast.CallExpr); ok {
			switch fun := call.Fun.(type) {
			case *ast.SelectorExpr:
				found = found || fun.Sel.Name == "Short"
			case *ast.Ident:
				found = found || slow[fun.Name]
			}
		}
		return true
	})
	return found
}
