package score_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// ofAgents are the categories that only foreign agents have.
var ofAgents = map[string]bool{
	assay.CategoryTimeout: true, assay.CategoryAgentFailure: true, assay.CategoryFramework: true,
}

func TestAgentThatFailsHasItsOwnCategory(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	for ended, want := range map[assay.Ended]string{
		assay.AgentError: assay.CategoryAgentFailure, assay.AgentTimeout: assay.CategoryTimeout,
	} {
		for _, name := range world.Names {
			trial := &assay.Trial{Setting: assay.Setting{World: name}}
			task := task("basic_task", "read", "parse")
			tr := episode("read+")
			tr.Ended = ended
			o := judge.Outcome(trial, &task, tr)
			if o.Level != assay.Failure || o.ErrorCategory != want {
				t.Errorf("%s in %s: %s, %s; want failure, %s", ended, name, o.Level,
					o.ErrorCategory, want)
			}
		}
	}
}

// A mistake in arguments that the framework changed is the framework's, but not bad luck or a
// mistake in other arguments.
func TestChangedCallsAreTheFrameworks(t *testing.T) {
	t.Parallel()
	judge := score.New(catalog)
	trial, task := trialIn(world.Simulated[0]), task("basic_task", "read", "parse")
	for path, own := range map[string]bool{"read?": true, "read-": false, "read+ parse+": false} {
		for _, asked := range []string{"", `read {"n": 1}`} {
			tr := episode(path)
			tr.Calls[0].Asked = asked
			o := judge.Outcome(trial, &task, tr)
			if is := o.ErrorCategory == assay.CategoryFramework; is != (own && asked != "") {
				t.Errorf("%s, asked %q: category %q", path, asked, o.ErrorCategory)
			}
		}
	}
}
