package main

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"gotest.tools/v3/golden"
)

// The tests of this file pin what a change of structure must leave alone: if a trial's ID
// changes, every user's store runs its trials again; if a prompt or a verdict changes, new
// results can't be compared with old ones. The digests in testdata/pinned were taken before
// the packages moved into wings. A change that is meant to alter one of them updates it with
// `go test ./cmd/assay -run TestPinned -update` and says so in the changelog.

// digest sums up values in order.
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

// pins are named digests, one a line.
type pins struct{ strings.Builder }

func (p *pins) add(name string, d *digest) { fmt.Fprintf(p, "%s: %s\n", name, d) }

func builtinLibrary(t testing.TB) *library.Library {
	t.Helper()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	return lib
}

func TestPinnedTrials(t *testing.T) {
	t.Parallel()
	var p pins
	pin := func(name string, e *plan.Experiment) {
		j, err := job.Open(t.Context(), e, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer j.Close()
		planned := j.Plan
		d := newDigest()
		for _, m := range e.Models {
			for trial := range planned.Trials(m) {
				d.add(t, trial.ID, trial.Seed, trial.Cell, trial.Task)
			}
		}
		p.add(name, d)
	}
	for _, name := range []string{"a.yaml", "b.yaml", "c.yaml"} {
		e, err := plan.Load(filepath.Join("testdata", "pinned", name))
		if err != nil {
			t.Fatal(err)
		}
		pin(name, e)
	}
	for i, name := range plan.Suites {
		e, err := plan.Suite(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.SetModels([]string{"sim/optimal", "sim/expert"}); err != nil {
			t.Fatal(err)
		}
		pin(fmt.Sprintf("suite %d", i+1), e)
	}
	pin("quickstart", plan.Quickstart())
	tasks := newDigest()
	for task := range library.Generate() {
		tasks.add(t, task, task.Digest())
	}
	p.add("tasks", tasks)
	tools := newDigest()
	tools.add(t, library.Tools())
	p.add("tools", tools)
	golden.Assert(t, p.String(), "pinned/trials.txt")
}

// recorder keeps the first request of an episode and ends it.
type recorder struct{ first assay.Request }

var errRecorded = &assay.Fault{Kind: assay.Interrupted, Detail: "recorded"}

func (r *recorder) Chat(_ context.Context, req assay.Request) (assay.Response, error) {
	r.first = req
	return assay.Response{}, errRecorded
}

// put is one way to put a task to a model.
type put struct{ world, variant, severity, protocol, tools string }

// puts lists every way.
func puts() (all []put) {
	for _, w := range world.Names {
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
		Model: model, Variant: p.variant, Severity: p.severity, Difficulty: task.Difficulty, TaskType: task.Type, Reliability: .8,
	}
	set := assay.Setting{World: p.world, Protocol: p.protocol, Tools: p.tools, Turns: 10}
	return assay.NewTrial(cell, assay.TaskRef{ID: task.ID, Digest: task.Digest()}, set, 2025, 1)
}

// TestPinnedPrompts renders each of the 630 built-in tasks in a rotating share of all ways,
// and every fortieth task in every way.
func TestPinnedPrompts(t *testing.T) {
	t.Parallel()
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
			if i%40 != 0 && (i+k)%16 != 0 {
				continue
			}
			if flaw, flawed := assay.FlawOf(way.variant); flawed && !workflow.Applies(lib.Catalog(), way.world, &task, flaw) {
				continue
			}
			trial := way.trial("m", &task)
			var r recorder
			a, _ := runner.Run(t.Context(), &r, &trial, &task)
			if a.FaultKind != assay.Interrupted {
				t.Fatalf("%+v: %s", way, a.FaultDetail)
			}
			name := strings.Join([]string{way.world, way.protocol, way.tools}, " ")
			if sums[name] == nil {
				sums[name] = newDigest()
			}
			sums[name].add(t, r.first.Messages, r.first.Functions)
		}
	}
	var p pins
	for _, w := range world.Names {
		for _, protocol := range assay.Protocols {
			for _, tools := range []string{assay.Discover, assay.Listed} {
				name := strings.Join([]string{w, protocol, tools}, " ")
				p.add(name, sums[name])
			}
		}
	}
	fmt.Fprintf(&p, "templates: %s\n", episode.TemplatesHash)
	golden.Assert(t, p.String(), "pinned/prompts.txt")
}

// TestPinnedEpisodes plays whole conversations with each simulated agent: corrections, tool
// results, searches, plans and verdicts are in them.
func TestPinnedEpisodes(t *testing.T) {
	t.Parallel()
	lib := builtinLibrary(t)
	runner := episode.NewRunner(lib.Catalog(), 0)
	models := sim.New(lib.Catalog(), sim.Latency{})
	ways := puts()
	var p pins
	for m, model := range sim.Names {
		if model == sim.Judge {
			continue // answers `assay classify`, not tasks
		}
		d := newDigest()
		i := 0
		for task := range library.Generate() {
			if i++; i%6 != 0 {
				continue
			}
			way := ways[(i/6*7+m)%len(ways)]
			if flaw, flawed := assay.FlawOf(way.variant); flawed && !workflow.Applies(lib.Catalog(), way.world, &task, flaw) {
				continue
			}
			trial := way.trial(model, &task)
			a, tr := runner.Run(t.Context(), models, &trial, &task)
			if !a.Settles() {
				t.Fatalf("%s, %+v: %s", model, way, a.FaultDetail)
			}
			for k := range tr.Turns { // times are of the machine
				tr.Turns[k].QueuedMS, tr.Turns[k].WorkingMS = 0, 0
			}
			d.add(t, a.Outcome, tr)
		}
		p.add(model, d)
	}
	golden.Assert(t, p.String(), "pinned/episodes.txt")
}

// pinnedStore unpacks the store that an early program wrote.
func pinnedStore(t testing.TB) string {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", "pinned", "store.db.zst"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := zstd.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return file(t, t.TempDir(), "pinned.db", string(b))
}

// TestPinnedVerdicts judges the stored transcripts again: each has the outcome that was stored.
func TestPinnedVerdicts(t *testing.T) {
	t.Parallel()
	lib := builtinLibrary(t)
	judge := score.New(lib.Catalog())
	db, err := store.OpenReadOnly(t.Context(), pinnedStore(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	n := 0
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !a.Settles() {
			continue
		}
		n++
		task, err := lib.Task(t.Context(), a.Task, a.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := db.Transcript(t.Context(), a.ID, a.Number)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(a.Outcome, judge.Outcome(&a.Trial, &task, &tr), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("trial %s: its transcript earns another outcome than the stored one:\n%s", a.ID, diff)
		}
	}
	if n < 200 {
		t.Errorf("judged %d attempts, want the fixture's", n)
	}
}

// TestPinnedStore opens a store that an early program wrote: every seal holds, all of its
// trials are done for the experiments that wrote it, and exports are equal byte for byte.
func TestPinnedStore(t *testing.T) {
	t.Parallel()
	path := pinnedStore(t)
	dir := filepath.Dir(path)
	if v := verifyJSON(t, path, exitOK); len(v.Problems) > 0 {
		t.Errorf("problems %v", v.Problems)
	}
	var p pins
	add := func(name string, content []byte) {
		d := newDigest()
		d.n = len(content)
		d.Write(content)
		p.add(name, d)
	}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for _, format := range []string{"jsonl", "csv", "parquet"} {
		must(t, nil, "export", "--store", path, "--format", format, "-o", filepath.Join(dir, "a."+format), "--calls", filepath.Join(dir, "c."+format))
		add("attempts as "+format, read("a."+format))
		add("calls as "+format, read("c."+format))
	}
	for _, format := range []string{"v3", "csv50"} {
		must(t, nil, "export", "--store", path, "--format", format, "--experiment", "pinned-pilot", "-o", filepath.Join(dir, "a."+format))
		add(format, read("a."+format))
	}
	must(t, nil, "export", "--store", path, "--format", "inspect", "-o", filepath.Join(dir, "logs"))
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*.eval"))
	if err != nil || len(logs) == 0 {
		t.Fatalf("logs %v, %v", logs, err)
	}
	samples := newDigest()
	for _, name := range slices.Sorted(slices.Values(logs)) {
		for _, b := range zipped(t, name, "samples/") {
			samples.n++
			samples.Write(b)
		}
	}
	p.add("samples of logs for Inspect", samples)
	golden.Assert(t, p.String(), "pinned/exports.txt")

	// The experiments that wrote it have nothing left to run.
	for _, name := range []string{"a.yaml", "b.yaml"} {
		r := must(t, nil, "run", filepath.Join("testdata", "pinned", name), "--store", path, "--display", "json", "--log-dir", "none")
		if e := lastEvent(t, r.out); e["settled"] != 0. || e["done"] != e["planned"] {
			t.Errorf("%s runs trials again: %v settled, %v of %v done", name, e["settled"], e["done"], e["planned"])
		}
	}
}

// zipped returns the files of an archive whose names begin with prefix, in order of name.
func zipped(t testing.TB, path, prefix string) (contents [][]byte) {
	t.Helper()
	z, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	slices.SortFunc(z.File, func(a, b *zip.File) int { return strings.Compare(a.Name, b.Name) })
	for _, f := range z.File {
		if !strings.HasPrefix(f.Name, prefix) {
			continue
		}
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := io.Copy(&b, r); err != nil {
			t.Fatal(errors.Join(err, r.Close()))
		}
		r.Close()
		contents = append(contents, b.Bytes())
	}
	return contents
}
