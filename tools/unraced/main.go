// Command unraced prints the tests that the race detector leaves out, as a pattern and packages for
// go test: the ones that skip with -short, the ones in files with the build constraint !race, and all of
// a package that starts no goroutine and knows no lock. A test or its package says that itself, so there
// is no list to keep. With -watched it prints the other packages.
package main

import (
	"errors"
	"flag"
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
	watched := flag.Bool("watched", false, "print the packages that the race detector watches")
	flag.Parse()
	packages, err := parse()
	names, left, others := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for dir, files := range packages {
		alone := !slices.ContainsFunc(files, concurrent)
		if !alone {
			others[dir] = true
		}
		for _, f := range files {
			for _, name := range unraced(f, alone) {
				names[name], left[dir] = true, true
			}
		}
	}
	if err == nil && len(names) == 0 {
		err = errors.New("no test is left out; run it in the root of the repository")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "unraced:", err)
		os.Exit(1)
	}
	if *watched {
		fmt.Println(list(others, " "))
		return
	}
	fmt.Printf("-run ^(%s)$ %s\n", list(names, "|"), list(left, " "))
}

func list(of map[string]bool, separator string) string {
	return strings.Join(slices.Sorted(maps.Keys(of)), separator)
}

// parse returns the Go files of the packages below this directory, by their directories.
func parse() (map[string][]*ast.File, error) {
	packages := make(map[string][]*ast.File)
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (len(path) > 1 && strings.ContainsAny(d.Name()[:1], "._") || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		dir := "./" + filepath.Dir(path)
		packages[dir] = append(packages[dir], file)
		return err
	})
	return packages, err
}

// concurrent reports whether a file starts goroutines, or imports a package for what they share, which
// in a test is only a cache.
func concurrent(file *ast.File) (found bool) {
	for _, i := range file.Imports {
		if isTest(file) && i.Path.Value == `"sync"` {
			continue
		}
		switch strings.Trim(i.Path.Value, `"`) {
		case "sync", "sync/atomic", "net/http", "net/http/httptest", "golang.org/x/sync/errgroup":
			return true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr: // of a group
			found = found || n.Sel.Name == "Go"
		}
		return !found
	})
	return found
}

func isTest(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
}

// unraced returns the names of the tests in a file that the race detector leaves out: all of them, or
// some. A test that skips with -short may do so in a function that it calls in the same file.
func unraced(file *ast.File, all bool) (names []string) {
	if !isTest(file) {
		return nil
	}
	all = all || notRaced(file)
	slow := make(map[string]bool)
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
	return names
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
