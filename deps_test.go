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
	internal/task/bm25       :
	internal/nearest    :
	internal/result/stat       :
	internal/golden     :
	internal/task/world      : internal/task/bm25
	internal/task/workflow   : internal/task/world
	internal/task/score      : internal/task/workflow internal/task/world
	internal/agent/episode    : internal/task/score internal/task/workflow internal/task/world
	internal/task/library    : internal/nearest
	internal/model/lane       :
	internal/run/engine     :
	internal/run/gate       : internal/run/plan
	internal/model/openai :
	internal/model/sim    : internal/task/bm25 internal/task/workflow internal/task/world
	internal/model/simserver  : internal/nearest
	internal/run/plan       : internal/agent/episode internal/model/lane internal/nearest internal/result/stat internal/task/workflow internal/task/world
	internal/claim      :
	internal/store      : internal/claim
	internal/result/export     : internal/nearest
	internal/result/document   :
	internal/result/report     : internal/result/document internal/result/stat
	internal/result/legacy     : internal/nearest
	internal/result/evallog    :
	internal/agent/classify   :
	internal/run/live       :
	internal/run/runlog     :
	internal/bench      : internal/model/simserver
	cmd/assay           : *
`

// rootOnlyStandard and these packages may import nothing but the standard
// library and this module.
var standardOnly = []string{".", "internal/task/bm25", "internal/nearest", "internal/result/stat", "internal/task/world", "internal/task/workflow", "internal/task/score", "internal/agent/episode", "internal/run/engine", "internal/model/lane"}

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
