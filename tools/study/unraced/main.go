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
	packages, err := parse(flag.Arg(0))
	names, left, others := make(map[string]bool), make(map[string]bool), make(map[string]bool)
	for dir, files := range packages {
		alone := !slices.ContainsFunc(files, concurrent)
		if !alone {
			others[dir] = true
		}
		for _, f := range files {
			for _, name := range unraced(f, alone, isShort) {
				names[name], left[dir] = true, true
			}
		}
	}
	if err == nil && len(names) == 0 {
		err = errors.New("no test is left out; name the root of the repository")
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

// parse returns the Go files of the packages of the module at root, by their directories.
func parse(root string) (map[string][]*ast.File, error) {
	packages := make(map[string][]*ast.File)
	module := os.DirFS(root)
	err := fs.WalkDir(module, ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			_, err := fs.Stat(module, path+"/go.mod") // of another module
			if err == nil || strings.ContainsAny(d.Name()[:1], "._") || d.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go"):
			return nil
		}
		text, err := fs.ReadFile(module, path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, text, parser.ParseComments)
		dir := "./" + filepath.Dir(path)
		packages[dir] = append(packages[dir], file)
		return err
	})
	return packages, err
}

// concurrent reports whether a file starts goroutines, or uses a package for what they share. A value
// that is computed once is only a cache, and names of HTTP are only data. A file of tests counts only
// if the race detector sees one of them.
func concurrent(file *ast.File) (found bool) {
	if tests := unraced(file, true, nil); notRaced(file) ||
		len(tests) > 0 && len(unraced(file, false, skips)) == len(tests) {
		return false
	}
	for _, i := range file.Imports {
		switch strings.Trim(i.Path.Value, `"`) {
		case "sync/atomic", "net/http/httptest", "golang.org/x/sync/errgroup":
			return true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			found = true
		case *ast.SelectorExpr:
			of, _ := n.X.(*ast.Ident)
			switch name := n.Sel.Name; {
			case name == "Go": // of a group
				found = true
			case of == nil:
			case of.Name == "sync":
				found = found || !isTest(file) && !strings.HasPrefix(name, "Once") || name == "WaitGroup"
			case of.Name == "http":
				found = found || name != "Header" && !strings.HasPrefix(name, "Status")
			}
		}
		return !found
	})
	return found
}

func isTest(file *ast.File) bool {
	return slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool { return i.Path.Value == `"testing"` })
}

// unraced returns the names of the tests in a file that the race detector leaves out: all of them, or the
// ones that have something. A test may have it in a function that it calls in the same file.
func unraced(file *ast.File, all bool, has func(ast.Node) bool) (names []string) {
	if !isTest(file) {
		return nil
	}
	all = all || notRaced(file)
	slow := make(map[string]bool)
	for range 2 { // the functions, then the tests that call them
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && mentions(f, slow, has) {
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

// isShort reports whether a test asks for -short.
func isShort(n ast.Node) bool { return calls(n, "Short") }

// skips reports whether a test does nothing with -short, instead of less.
func skips(n ast.Node) bool {
	branch, ok := n.(*ast.IfStmt)
	return ok && isShort(branch.Cond) && slices.ContainsFunc(branch.Body.List, func(s ast.Stmt) bool {
		call, ok := s.(*ast.ExprStmt)
		return ok && calls(call.X, "Skip")
	})
}

func calls(n ast.Node, method string) bool {
	call, ok := n.(*ast.CallExpr)
	if !ok {
		return false
	}
	fun, ok := call.Fun.(*ast.SelectorExpr)
	return ok && fun.Sel.Name == method
}

// mentions reports whether a function has something, or calls one of the slow functions.
func mentions(f *ast.FuncDecl, slow map[string]bool, has func(ast.Node) bool) (found bool) {
	ast.Inspect(f, func(n ast.Node) bool {
		found = found || n != nil && has != nil && has(n)
		if call, ok := n.(*ast.CallExpr); ok {
			if fun, ok := call.Fun.(*ast.Ident); ok {
				found = found || slow[fun.Name]
			}
		}
		return true
	})
	return found
}
