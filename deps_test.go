package assay_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/assay-eval/assay"

// wings lists the wings of the house from top to bottom, with the wings that each may import
// beside itself and the nouns in the root package. Imports point down this list, never up.
// It is a decision, not a record: change it only together with ARCHITECTURE.md.
var wings = []struct {
	path, owns string
	imports    []string
}{
	{
		"cmd/assay", "flags, printing, exit codes",
		[]string{"run", "result", "experiment", "agent", "model", "store", "task"},
	},
	{
		"tools/bench", "measures assay from outside",
		[]string{"run", "experiment", "model", "store", "task"},
	},
	{
		"tools/simulate", "simulates runs with everything around them",
		[]string{"run", "result", "experiment", "agent", "model", "store", "task"},
	},
	{
		"tools/agree", "compares what people read with a second computation",
		[]string{"result", "experiment", "store"},
	},
	{
		"internal/run", "carries out an experiment",
		[]string{"result", "experiment", "agent", "model", "store", "task", "durable"},
	},
	{
		"internal/result", "turns attempts into what people read",
		[]string{"experiment", "agent/episode", "store", "task", "durable"},
	},
	{
		"internal/experiment", "what is to be done",
		[]string{"result/stat", "agent", "model", "store", "task"},
	},
	{"internal/agent", "who acts", []string{"task", "model/gateway", "model/protocol", "model/wire"}},
	{"internal/model", "who answers", []string{"task"}},
	{"internal/store", "the record", []string{"durable"}},
	{"internal/task", "what is asked and how it is judged", []string{"durable"}},
	{"internal/durable", "files that survive a power cut", nil},
	{"", "the nouns that all of them share", nil},
}

// apart lists packages that stay apart although their wings would let them meet.
var apart = []struct{ pkg, from, because string }{
	{"internal/run/engine", "internal", "it takes functions, so tests and workers can drive it"},
	{"internal/run/fleet", "internal/model", "requests go through the lanes of the run"},
	{"internal/run/fleet", "internal/store", "the run stores attempts, wherever they are carried out"},
	{"internal/run/terminal", "internal/run", "a view can lag or die without the run noticing"},
	{"internal/run/terminal", "internal/store", "it shows what the run says, not what is stored"},
	{"internal/run/session", "internal/result/document", "it prints nothing"},
	{"internal/result/stat", "internal", "formulas know numbers only"},
	{"internal/result/report", "internal/store", "it reads attempts from any source"},
	{"internal/result/sections", "internal/store", "it shows figures from any source"},
	{"internal/result/export", "internal/store", "it reads attempts from any source"},
	{"internal/result/atomicfile", "internal/result", "it writes files whatever they contain"},
	{"internal/result/document", "internal", "it knows sections and tables, not their subject"},
	{"internal/model/limit", "internal", "limits are the same whoever answers"},
	{"internal/model/wire", "internal", "it serves every protocol"},
	{"internal/model/gateway", "internal", "it serves every protocol"},
	{"internal/task/library", "internal/task/world", "tasks are the same in every world"},
}

// protocols lists the packages of wire protocols. They do not know each other: each imports only
// package wire, for its client, and package gateway, for the server's side.
var protocols = []string{
	"internal/model/protocol/openai", "internal/model/protocol/responses", "internal/model/protocol/anthropic",
	"internal/model/protocol/gemini",
}

// small lists libraries without dependencies: a map that keeps the latest values, special functions,
// binomial coefficients and draws from distributions.
var small = []string{
	"github.com/hashicorp/golang-lru/v2", "gonum.org/v1/gonum/mathext",
	"gonum.org/v1/gonum/stat/combin", "gonum.org/v1/gonum/stat/distuv",
}

// plain lists packages that need the standard library, this module and small libraries only.
var plain = []string{
	".", "internal/task/bm25", "internal/task/policy", "internal/task/world",
	"internal/task/world/spec", "internal/task/world/assay1", "internal/task/world/pilot",
	"internal/task/world/own",
	"internal/task/workflow", "internal/task/score",
	"internal/agent/episode", "internal/run/engine", "internal/model/lane", "internal/model/limit",
	"internal/result/stat",
}

func TestImportsPointDown(t *testing.T) {
	format := `{{.ImportPath}} {{join .Imports " "}}`
	out, err := exec.CommandContext(t.Context(), "go", "list", "-f", format, "./...").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		pkg := local(words[0])
		for _, imported := range words[1:] {
			if why := forbidden(pkg, imported); why != "" {
				t.Errorf("%s imports %s: %s", pkg, imported, why)
			}
		}
	}
	for _, a := range apart {
		if !strings.Contains(string(out), module+"/"+a.pkg+" ") {
			t.Errorf("apart names %s, which does not exist", a.pkg)
		}
	}
}

// forbidden returns the reason why a package must not import another, or "".
func forbidden(pkg, imported string) string {
	if imported != module && !strings.HasPrefix(imported, module+"/") {
		library := strings.Contains(strings.Split(imported, "/")[0], ".")
		if library && !slices.Contains(small, imported) && slices.Contains(plain, pkg) {
			return "it needs the standard library and small libraries only"
		}
		return ""
	}
	imported = local(imported)
	if imported == "." {
		return ""
	}
	if slices.Contains(protocols, pkg) && imported != "internal/model/wire" &&
		imported != "internal/model/gateway" {
		return "a protocol needs only packages wire and gateway"
	}
	for _, a := range apart {
		if a.pkg == pkg && within(imported, a.from) {
			return a.because
		}
	}
	for _, w := range wings {
		if !within(pkg, w.path) {
			continue
		}
		if within(imported, w.path) && w.path != "" {
			return ""
		}
		for _, lower := range w.imports {
			if within(imported, "internal/"+lower) {
				return ""
			}
		}
		return "wing " + w.path + " does not import it; see the table in deps_test.go"
	}
	return ""
}

// within reports whether a package is a folder or lies in it. Every package lies in "".
func within(pkg, folder string) bool {
	return folder == "" || pkg == folder || strings.HasPrefix(pkg, folder+"/")
}

func local(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}
