package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
)

// TestAgentsBehindFaultyProviders runs hundreds of attempts of a program that works or crashes, 68
// at once, with every row of faultMatrix behind its gateway, and one endpoint that repeats the key.
// Outcomes are the same as without faults: no fault of a provider is a verdict, and no crash is a
// fault. No agent sees a provider's key, can use the token of another attempt, or is left behind.
// ASSAY_SOAK makes it a thousand attempts.
func TestAgentsBehindFaultyProviders(t *testing.T) {
	t.Parallel()
	// One request in twenty meets the fault of its row.
	rig := newMatrixRig(t, func(_ misbehaviour, n int64) bool { return n%20 == 9 })
	rig.mux.HandleFunc("/echo/", echoKey)
	tasks := 3
	if os.Getenv("ASSAY_SOAK") != "" {
		tasks = 15
	}
	all := agentsOfMatrix(t, rig, tasks)

	calm := make(map[assay.TaskID]assay.Outcome)
	for _, a := range all {
		if a.Model == "calm" {
			calm[a.Task] = a.Outcome
		}
	}
	var outcomes, crashes, faulted, retried int
	for _, a := range all {
		noScore(t, a)
		for kind, n := range a.Retried {
			retried += n
			rightKind(t, a, kind)
		}
		switch {
		case !a.Settles():
			faulted++
			rightKind(t, a, a.FaultKind)
			continue
		case a.Ended == assay.AgentError:
			crashes++
		}
		outcomes++
		if diff := cmp.Diff(calm[a.Task], a.Outcome); diff != "" && a.Model != "echo" {
			t.Errorf("%s, task %s (-calm +got):\n%s", a.Model, a.Task, diff)
		}
	}
	t.Logf("%d attempts: %d outcomes, %d of them crashes, and %d faults; %d requests were repeated",
		len(all), outcomes, crashes, faulted, retried)
	if crashes == 0 || crashes == outcomes || faulted == 0 || retried == 0 {
		t.Error("the test is too weak")
	}
	rig.noConnections(t)
}

// rightKind checks that a fault has the kind of the attempt's row.
func rightKind(t *testing.T, a assay.Attempt, kind assay.FaultKind) {
	t.Helper()
	i := slices.IndexFunc(faultMatrix, func(m misbehaviour) bool { return "agent-"+m.name == a.Model })
	if a.Model != "echo" && kind != assay.Timeout && (i < 0 || kind != faultMatrix[i].kind) {
		t.Errorf("%s met %s: %s", a.Model, kind, a.FaultDetail)
	}
}

// agentsOfMatrix runs the built program and returns its attempts.
func agentsOfMatrix(t *testing.T, rig *matrixRig, tasks int) []assay.Attempt {
	t.Helper()
	tmp, seen := filepath.Join(rig.dir, "tmp"), filepath.Join(rig.dir, "seen")
	for _, dir := range []string{tmp, seen} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	s := situation{
		broken: true, skip: misbehaviour.isAddress, width: func(misbehaviour) int { return 8 },
	}
	providers := rig.providers(s) + fmt.Sprintf("  echo:\n    base_url: %s/echo/v1\n"+
		"    keys: [KEY]\n    models:\n      echo-model: {deployments: [sim/listed]}\n", rig.url)
	models := []string{"calm", "echo"}
	agents := "agents:\n"
	add := func(name, model string) {
		agents += fmt.Sprintf("  %q: {command: [agent, watch, %s], model: %q, concurrency: 2, sandbox: none}\n",
			name, seen, model)
	}
	add("calm", "sim/optimal")
	add("echo", "echo-model")
	for _, m := range rig.rows(s) {
		models = append(models, "agent-"+m.name)
		add("agent-"+m.name, m.name)
	}
	file(t, rig.dir, "providers.yaml", providers+agents)
	experiment := file(t, rig.dir, "agents.yaml", fmt.Sprintf(`
models: [%s]
variants: [optimal]
reliabilities: [0.8]
task_types: [simple_task, basic_task]
tasks_per_type: %d
limits: {request: 2s}
providers: providers.yaml
`, strings.Join(models, ", "), tasks))
	db := filepath.Join(rig.dir, "assay.db")
	cmd := program(t, "run", experiment, "--store", db, "--display", "json",
		"--log-level", "debug", "--debug-trials", "all", "--sim-latency", "0")
	cmd.Env = append(os.Environ(), "TMPDIR="+tmp, "KEY="+canary, "OPENAI_API_KEY="+canary)
	out, err := cmd.CombinedOutput()
	if code := cmd.ProcessState.ExitCode(); code != exitOK && code != exitIncomplete {
		t.Fatalf("%v\n%s", err, out)
	}
	noCanary(t, "the output of the run", string(out))
	nothingLeft(t, tmp)
	onlyOwnTokens(t, seen)
	for _, args := range [][]string{
		{"report", "--format", "html", "--output", filepath.Join(rig.dir, "r.html")},
		{"report", "--format", "md", "--output", filepath.Join(rig.dir, "r.md")},
		{"export", "--output", filepath.Join(rig.dir, "e.jsonl")},
	} {
		mustProgram(t, append(args, "--store", db)...)
	}
	noFileHasCanary(t, rig.dir)
	return attempts(t, db)
}

// onlyOwnTokens checks that agents were refused with the token of another attempt.
func onlyOwnTokens(t *testing.T, seen string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(seen, "seen*"))
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, path := range files {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, end, ok := strings.Cut(string(b), "TOKEN OF ANOTHER: "); ok {
			tried++
			if strings.Count(end, fmt.Sprint(http.StatusUnauthorized)) < 2 {
				t.Errorf("with the token of another attempt: %s", end)
			}
		}
	}
	if tried == 0 {
		t.Error("no agent tried the token of another attempt")
	}
}
