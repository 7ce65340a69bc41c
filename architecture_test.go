package assay_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestArchitectureNamesFiles makes sure that the files which a row of ARCHITECTURE.md names exist: below
// the root, below internal, or in or below a folder that the row names, too.
func TestArchitectureNamesFiles(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	quoted := regexp.MustCompile("`([^` ]+)`")
	file := regexp.MustCompile(`\.(go|json|tmpl|css|txt|yaml|md|sh)$`)
	files := 0
	for n, row := range strings.Split(string(text), "\n") {
		if !strings.HasPrefix(row, "| ") {
			continue
		}
		var names []string
		folders := []string{".", "internal"}
		for _, m := range quoted.FindAllStringSubmatch(row, -1) {
			name := m[1]
			folder := name
			if file.MatchString(name) {
				names = append(names, name)
				folder = filepath.Dir(name)
			}
			for _, root := range []string{".", "internal"} {
				folders = append(folders, filepath.Join(root, folder), filepath.Join(root, filepath.Dir(folder)))
			}
		}
		for _, name := range names {
			files++
			found := false
			for _, folder := range folders {
				here, _ := filepath.Glob(filepath.Join(folder, name))
				below, _ := filepath.Glob(filepath.Join(folder, "*", name)) // as each world has it
				found = found || len(here)+len(below) > 0
			}
			if !found {
				t.Errorf("ARCHITECTURE.md:%d: there is no file %s", n+1, name)
			}
		}
	}
	if files < 50 {
		t.Errorf("only %d files were found in the tables", files)
	}
}
