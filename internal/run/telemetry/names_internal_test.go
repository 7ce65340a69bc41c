package telemetry

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// conventions are the attributes and values of the conventions that spans have, by the file that
// defines them. The files of open-telemetry/semantic-conventions-genai were read in 2026-11, before
// its first release, at commits 002c8a6e and 4172e394. Later changes are those of its pull requests
// 440, which renamed cache_creation, and 322, which took the version from agents in the same process;
// opentelemetry-util-genai 1.3b0, whose repository pins those conventions, also sends
// gen_ai.request.reasoning.level. The others are in open-telemetry/semantic-conventions 1.44.0.
var conventions = map[string]string{
	"model/gen-ai/registry.yaml": `
		gen_ai.agent.name gen_ai.agent.version gen_ai.conversation.id gen_ai.evaluation.explanation
		gen_ai.evaluation.name gen_ai.evaluation.score.label gen_ai.evaluation.score.value
		gen_ai.input.messages gen_ai.operation.name gen_ai.output.messages gen_ai.output.type
		gen_ai.provider.name gen_ai.request.max_tokens gen_ai.request.model
		gen_ai.request.reasoning.level gen_ai.request.seed gen_ai.request.temperature
		gen_ai.request.top_p gen_ai.response.finish_reasons gen_ai.response.id gen_ai.response.model
		gen_ai.tool.call.arguments gen_ai.tool.call.id gen_ai.tool.call.result gen_ai.tool.definitions
		gen_ai.tool.name gen_ai.tool.type gen_ai.usage.cache_read.input_tokens
		gen_ai.usage.cache_write.input_tokens gen_ai.usage.input_tokens gen_ai.usage.output_tokens
		gen_ai.usage.reasoning.output_tokens`,
	"model/gen-ai/events.yaml":       "gen_ai.evaluation.result",
	"model/gen-ai/registry.yaml ops": "chat execute_tool invoke_agent",
	"model/mcp/registry.yaml":        "mcp.method.name",
	"core error":                     "error.type",
	"core server":                    "server.address server.port",
	"core network":                   "network.transport",
	"core test":                      "test.case.name test.case.result.status test.suite.name test.suite.run.status",
}

// TestNamesAreInConventions compares the names in names.go with the conventions. Names of Assay's own
// begin with assay.
func TestNamesAreInConventions(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var sent []string
	for _, d := range file.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.CONST {
			continue
		}
		ast.Inspect(decl, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(lit.Value)
				if !strings.HasPrefix(name, "assay.") && name != CaptureContent {
					sent = append(sent, name)
				}
			}
			return true
		})
	}
	slices.Sort(sent)
	want := strings.Fields(strings.Join(slices.Collect(maps.Values(conventions)), " "))
	slices.Sort(want)
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("names (-conventions +sent):\n%s", diff)
	}
}
