package plan_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/experiment/plan"
)

const publicText = `providers:
  gateway:
    base_url: ${NOWHERE}/v1
    keys: none
    models:
      llama: {hub: meta-llama/Llama-3.1-8B-Instruct}
      chat: {alias: llama}
      gpt-5: {developer: openai}
      other: {}
  second:
    base_url: http://two/v1
    keys: none
    models:
      gpt-5: {}
      llama: {hub: meta-llama/Llama-3.1-8B-Instruct}
`

// TestPublicNames checks that public names are read without the variables that only requests need, that an
// alias has those of its model, and that mistakes are refused by runs, too.
func TestPublicNames(t *testing.T) {
	t.Parallel()
	names, err := plan.PublicNames(write(t, "p.yaml", publicText))
	if err != nil {
		t.Fatal(err)
	}
	llama := plan.PublicName{Hub: "meta-llama/Llama-3.1-8B-Instruct"}
	want := map[string]plan.PublicName{"llama": llama, "chat": llama, "gpt-5": {Developer: "openai"}}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("PublicNames() (-want +got):\n%s", diff)
	}
	for _, c := range []struct{ old, new, want string }{
		{"developer: openai", "developer: open ai", `8:26: "open ai" is not a name of a developer`},
		{"hub: meta-llama/Llama-3.1-8B-Instruct", "hub: Llama", `6:20: "Llama" is not a repository of the Hub`},
		{"gpt-5: {}", "gpt-5: {developer: microsoft}", "14:14: another provider gives model gpt-5 another developer or hub"},
	} {
		path := write(t, "wrong.yaml", strings.Replace(publicText, c.old, c.new, 1))
		_, err := plan.PublicNames(path)
		_, errOfRun := plan.LoadProviders(path, env(map[string]string{"NOWHERE": "http://one"}))
		for _, err := range []error{err, errOfRun} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("with %q: %v, want %q", c.new, err, c.want)
			}
		}
	}
}
