package assay_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/assay-eval/assay"

// policy says which packages of this module each package may import. It is a
// decision, not a record: change it only together with ARCHITECTURE.md.
//
// The root package is not listed: all may import it. What is missing on
// purpose: engine knows no store, no provider and no lane; report and export
// know no store; adapters under provider do not know each other, and only the
// simulated models know plans, because following one is their trade.
const policy = `
	.                   :
	internal/bm25       :
	internal/nearest    :
	internal/stat       :
	internal/golden     :
	internal/world      : internal/bm25
	internal/workflow   : internal/world
	internal/score      : internal/workflow internal/world
	internal/episode    : internal/score internal/workflow internal/world
	internal/library    : internal/nearest
	internal/lane       :
	internal/engine     :
	internal/gate       : internal/plan
	internal/provider/openai :
	internal/provider/sim    : internal/bm25 internal/workflow internal/world
	internal/simserver  : internal/nearest
	internal/plan       : internal/episode internal/lane internal/nearest internal/stat internal/workflow internal/world
	internal/claim      :
	internal/store      : internal/claim
	internal/export     : internal/nearest
	internal/document   :
	internal/report     : internal/document internal/stat
	internal/legacy     : internal/nearest
	internal/evallog    :
	internal/classify   :
	internal/live       :
	internal/runlog     :
	internal/bench      : internal/simserver
	cmd/assay           : *
`

// rootOnlyStandard and these packages may import nothing but the standard
// library and this module.
var standardOnly = []string{".", "internal/bm25", "internal/nearest", "internal/stat", "internal/world", "internal/workflow", "internal/score", "internal/episode", "internal/engine", "internal/lane"}

func TestImportPolicy(t *testing.T) {
	allowed := make(map[string][]string)
	for line := range strings.Lines(policy) {
		if name, imports, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			allowed[strings.TrimSpace(name)] = strings.Fields(imports)
		}
	}
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", `{{.ImportPath}} {{join .Imports " "}}`, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		name := local(words[0])
		policy, known := allowed[name]
		if !known {
			t.Errorf("package %s is not in the policy", name)
			continue
		}
		delete(allowed, name)
		for _, imp := range words[1:] {
			checkImport(t, name, imp, policy)
		}
	}
	for name := range allowed {
		t.Errorf("the policy names %s, which does not exist", name)
	}
}

func checkImport(t *testing.T, name, imp string, policy []string) {
	t.Helper()
	ours := imp == module || strings.HasPrefix(imp, module+"/")
	switch {
	case ours && imp == module:
	case ours && !slices.Contains(policy, "*") && !slices.Contains(policy, local(imp)):
		t.Errorf("%s imports %s, against the policy", name, local(imp))
	case !ours && strings.Contains(strings.Split(imp, "/")[0], ".") && slices.Contains(standardOnly, name):
		t.Errorf("%s imports %s, but needs only the standard library", name, imp)
	}
}

func local(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}
