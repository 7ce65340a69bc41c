package assay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// command matches the name of a command of the program.
var command = regexp.MustCompile(`\bassay (run|plan|show|report|status|failures|compare|gate|check|view|` +
	`ctl|worker|export|library|store|init|sim|publish|cite|repeat|judge|fork|debug)\b`)

// mayName lists texts that look like a command, with the reason why they stay.
var mayName = map[string]string{
	"not an assay store":            "it is the name of a kind of file",
	"assay library 1":               "it is a part of digests",
	"assay judge 1\x00%d\x00%s":     "it is a part of digests",
	"assay library commitment 1":    "it is a part of digests",
	"assay worker ":                 "workers of other versions give this name to their server",
	"assay run":                     "workers of other versions give this name to their server",
	"and %d more: assay ctl status": "the live view draws what a run in any program sends",
}

// TestOnlyMainNamesCommands checks that a command can be renamed in cmd/assay alone. An error has the
// code of a hint instead; see [assay.WithHint]. Results still name commands in their warnings.
func TestOnlyMainNamesCommands(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	err := filepath.WalkDir("internal", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && path == filepath.Join("internal", "result") {
			return filepath.SkipDir
		}
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, _ := strconv.Unquote(literal.Value)
			switch name := command.FindString(text); {
			case mayName[text] != "":
				seen[text] = true
			case name != "":
				t.Errorf("%s: the text names the command %q; give the error a code of hint.go, or take "+
					"assay.Words, and word it in cmd/assay/hints.go", files.Position(literal.Pos()), name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for text := range mayName {
		if !seen[text] {
			t.Errorf("nothing says %q any more; remove it from mayName", text)
		}
	}
}
