//go:build !race

// The tests of this file use one goroutine each, and the race detector would make them take
// minutes.

package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"gotest.tools/v3/golden"
)

// The tests in this file pin the results that a change of structure must not alter. If a trial's ID
// changes, every user's store runs its trials again. If a prompt or a verdict changes, new results
// can't be compared with old ones. The digests in testdata/pinned are older than the present layout
// of the packages. If a change alters one of them on purpose, update it with
// `go test ./cmd/assay -run TestPinned -update` and mention it in the changelog.

// A digest hashes values in order.
type digest struct {
	hash.Hash
	n int
}

func newDigest() *digest { return &digest{Hash: sha256.New()} }

func (d *digest) add(t testing.TB, values ...any) {
	t.Helper()
	d.n++
	for _, v := range values {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		d.Write(append(b, '\n'))
	}
}

func (d *digest) String() string {
	return fmt.Sprintf("%d, sha256 %s", d.n, hex.EncodeToString(d.Sum(nil)[:16]))
}

// pins is a list of named digests, one per line.
type pins struct{ strings.Builder }

func (p *pins) add(name string, d *digest) { fmt.Fprintf(p, "%s: %s\n", name, d) }

// The IDs, seeds and cells of all trials stay the same, and so do the built-in tasks and tools.
func TestPinnedTrials(t *testing.T) {
	t.Parallel()
	var p pins
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} {
		e, err := plan.Load(filepath.Join("testdata", "pinned", name))
		if err != nil {
			t.Fatal(err)
		}
		p.add(name, trialsOf(t, e))
	}
	for i, name := range plan.Suites {
		e, err := plan.Suite(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.SetModels([]string{"sim/optimal", "sim/expert"}); err != nil {
			t.Fatal(err)
		}
		p.add(fmt.Sprintf("suite %d", i+1), trialsOf(t, e))
	}
	p.add("quickstart", trialsOf(t, plan.Quickstart()))

	tasks, tools := newDigest(), newDigest()
	for task := range library.Generate() {
		tasks.add(t, task, task.Digest())
	}
	p.add("tasks", tasks)
	tools.add(t, library.Tools())
	p.add("tools", tools)
	golden.Assert(t, p.String(), "pinned/trials.txt")
}

// trialsOf hashes the trials of an experiment.
func trialsOf(t *testing.T, e *plan.Experiment) *digest {
	t.Helper()
	j, err := job.Open(t.Context(), e, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	d := newDigest()
	for _, m := range e.Models {
		for trial := range j.Plan.Trials(m) {
			d.add(t, trial.ID, trial.Seed, trial.Cell, trial.Task)
		}
	}
	return d
}

// A recorder keeps the first request of an episode and ends the episode.
type recorder struct{ first assay.Request }

var errRecorded = &assay.Fault{Kind: assay.Interrupted, Detail: "recorded"}

func (r *recorder) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	r.first = *req
	return &assay.Response{}, errRecorded
}

// A put is a way to put a task to a model.
type put struct{ world, variant, severity, protocol, tools string }

// puts returns all ways to put a task.
func puts() (all []put) {
	for _, w := range world.Simulated {
		for _, variant := range assay.Variants {
			severities := []string{""}
			if _, flawed := assay.FlawOf(variant); flawed {
				severities = assay.Severities
			}
			for _, severity := range severities {
				for _, protocol := range assay.Protocols {
					for _, tools := range []string{assay.Discover, assay.Listed} {
						all = append(all, put{w, variant, severity, protocol, tools})
					}
				}
			}
		}
	}
	return all
}

func (p put) trial(model string, task *assay.Task) assay.Trial {
	cell := assay.Cell{
		Model: model, Variant: p.variant, Severity: p.severity,
		Difficulty: task.Difficulty, TaskType: task.Type, Reliability: .8,
	}
	set := assay.Setting{World: p.world, Protocol: p.protocol, Tools: p.tools, Turns: 10}
	return assay.NewTrial(cell, assay.TaskRef{ID: task.ID, Digest: task.Digest()}, set, 2025, 1)
}

// applies reports whether a task can have the variant's flaw.
func (p put) applies(lib *library.Library, task *assay.Task) bool {
	flaw, flawed := assay.FlawOf(p.variant)
	return !flawed || workflow.Applies(lib.Catalog(), p.world, task, flaw, p.severity)
}

// setting names the parts of a put that the prompts are pinned by.
func (p put) setting() string { return p.world + " " + p.protocol + " " + p.tools }

// TestPinnedPrompts renders easy tasks and every eighth of the others in a rotating selection of
// ways, and every 120th task in all ways.
func TestPinnedPrompts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: writes thousands of prompts")
	}
	lib := builtinLibrary(t)
	runner := episode.NewRunner(lib.Catalog(), 0)
	ways := puts()
	sums := make(map[string]*digest)
	i := 0
	for task := range library.Generate() {
		if i++; task.Difficulty != "easy" && i%8 != 0 {
			continue
		}
		for k, way := range ways {
			if i%120 != 0 && (i+k)%48 != 0 || !way.applies(lib, &task) {
				continue
			}
			trial := way.trial("m", &task)
			var r recorder
			a, _ := runner.Run(t.Context(), &r, &trial, &task)
			if a.FaultKind != assay.Interrupted {
				t.Fatalf("%+v: %s", way, a.FaultDetail)
			}
			if sums[way.setting()] == nil {
				sums[way.setting()] = newDigest()
			}
			sums[way.setting()].add(t, r.first.Messages, r.first.Functions)
		}
	}

	var p pins
	for _, way := range ways {
		if d := sums[way.setting()]; d != nil {
			p.add(way.setting(), d)
			delete(sums, way.setting())
		}
	}
	fmt.Fprintf(&p, "templates: %s\n", episode.TemplatesHash)
	golden.Assert(t, p.String(), "pinned/prompts.txt")
}

// TestPinnedEpisodes plays complete conversations with each simulated agent. They contain
// corrections, tool results, searches, plans and verdicts.
func TestPinnedEpisodes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: plays a thousand episodes")
	}
	var tasks []assay.Task
	i := 0
	for task := range library.Generate() {
		if i++; i%96 == 0 {
			tasks = append(tasks, task)
		}
	}
	lib := builtinLibrary(t)
	runner := episode.NewRunner(lib.Catalog(), 0)
	models := sim.New(lib.Catalog(), sim.Latency{})
	ways := puts()
	var p pins
	for m, model := range sim.Names {
		if model == sim.Judge {
			continue // it answers `assay store classify`, not tasks
		}
		d := newDigest()
		for i := range tasks {
			task, way := &tasks[i], ways[(i*7+m)%len(ways)]
			if !way.applies(lib, task) {
				continue
			}
			trial := way.trial(model, task)
			a, tr := runner.Run(t.Context(), models, &trial, task)
			if !a.Settles() {
				t.Fatalf("%s, %+v: %s", model, way, a.FaultDetail)
			}
			for k := range tr.Turns { // times depend on the machine
				tr.Turns[k].QueuedMS, tr.Turns[k].WorkingMS = 0, 0
			}
			a.ScoreVersion = "" // causes of foreign agents change it, too
			d.add(t, a.Outcome, tr)
		}
		p.add(model, d)
	}
	golden.Assert(t, p.String(), "pinned/episodes.txt")
}
