//go:build !race

package library_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

// TestJSONIsLimited checks where the importer stops in files of tasks and of tools.
func TestJSONIsLimited(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	for name, c := range map[string]struct{ tasks, registry, want string }{
		"tasks": {
			"{\"tasks\": [\n{\"id\": \"[[\\\"[\", \"inputs\": " + deep(100) + "}]}", "",
			".tasks:2:124: nested more than 100 levels deep",
		},
		"deep enough": {`[{"id": "a", "inputs": ` + deep(98) + "}]", "", ""},
		"beside the tasks": {
			`{"a": ` + deep(20_000) + `, "tasks": []}`, "", ".tasks:1:106: nested more than 100 levels",
		},
		"registry": {"[]", "\xef\xbb\xbf{\"a\":\n " + deep(20_000) + "}", ".tools:2:101: nested more"},
		"wide registry": {
			"[]", "[" + strings.Repeat("1,", 1<<18) + "1]", ".tools:1:",
		},
		"wide task": {`[1, {"a": [` + strings.Repeat("1,", 1<<18) + "1]}]", "", "too many values"},
		"many":      {"[" + strings.Repeat("1,", 1<<18) + "1]", "", ""},
	} {
		opts := importFiles(t, filepath.Join(t.TempDir(), "in"), []byte(c.tasks), []byte(c.registry))
		_, _, _, err := library.ReadImport(opts)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error = %v, want %s", name, err, c.want)
		}
	}
}

// TestHostileImports checks that findings and errors are short, whatever the files hold.
func TestHostileImports(t *testing.T) {
	t.Parallel()
	size := 1 << 18
	if testing.Short() {
		size = 1 << 14
	}
	for name, text := range yamldoctest.JSON(size) {
		for _, registry := range []bool{false, true} {
			tasks, tools := text, ""
			if registry {
				tasks, tools = "[]", text
			}
			opts := importFiles(t, filepath.Join(t.TempDir(), "in"), []byte(tasks), []byte(tools))
			_, _, report, err := library.ReadImport(opts)
			if err != nil && len(err.Error()) > 4096 {
				t.Errorf("%s: an error of %d bytes", name, len(err.Error()))
			}
			if n := len(report.String()); n > 8192 {
				t.Errorf("%s: a report of %d bytes", name, n)
			}
			os.Remove(opts.Tasks)
		}
	}
}
