package check_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/agent/bridge/agenttest"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/check"
)

// asAgent is the first argument of a test binary that acts as an agent.
const asAgent = "act-as-an-agent"

func init() {
	if len(os.Args) > 2 && os.Args[1] == asAgent {
		agenttest.Act(os.Args[2])
		os.Exit(0)
	}
}

// agents checks agents of the test's program with these modes, which are their names, too.
func agents(t *testing.T, world string, modes ...string) map[string]check.Agent {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	text := "agents:\n"
	for _, m := range modes {
		text += "  " + m + ": {command: ['" + program + "', " + asAgent + ", '" +
			strings.ReplaceAll(m, "_", " ") + "'], model: sim/listed, timeout: 20s}\n"
	}
	path := filepath.Join(dir, "providers.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	experiment := filepath.Join(dir, "e.yaml")
	if err := os.WriteFile(experiment, []byte("world: "+world+"\nmodels: ["+strings.Join(modes, ", ")+
		"]\nproviders: providers.yaml\ntask_types: [basic_task]\nvariants: [optimal]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e, err := plan.Load(experiment)
	if err != nil {
		t.Fatal(err)
	}
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	pools, err := j.Pools(os.LookupEnv, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pools.Close()
	all, err := check.Agents(context.Background(), j, pools, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := make(map[string]check.Agent)
	for _, a := range all {
		found[a.Agent] = a
	}
	return found
}

// TestOneToolFails checks that no tool fails in the first start of an agent, and the first one
// that it needs in the second, in each world whose luck is ours.
func TestOneToolFails(t *testing.T) {
	for _, world := range []string{"assay-1", "pilot"} {
		found := agents(t, world, "work", "work_until_a_tool_fails", "exit")
		a := found["work"]
		if a.Calm.Failed != 0 || a.Planted.Failed != 1 || !a.Calm.Ok || !a.Planted.Ok ||
			len(a.Changes) > 0 {
			t.Errorf("%s: %+v", world, a)
		}
		f := found["work_until_a_tool_fails"]
		if !f.Calm.Ok || f.Planted.Ok || f.Planted.Printed != "gave up" ||
			!strings.Contains(strings.Join(f.Changes, ""), "one failing tool ends the program") {
			t.Errorf("%s: %+v", world, f)
		}
		x := found["exit"]
		if !x.Calm.Started || x.Calm.Listed || x.Calm.Ended != "exit status 1" || x.Calm.Fault == nil ||
			len(x.Changes) != 1 {
			t.Errorf("%s: %+v", world, x)
		}
	}
}
