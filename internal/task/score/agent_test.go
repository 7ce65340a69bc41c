package score_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world"
)

// ofAgents are the categories that only foreign agents have.
var ofAgents = map[string]bool{assay.CategoryTimeout: true, assay.CategoryAgentFailure: true}

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
