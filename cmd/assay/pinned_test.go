//go:build !race

// The tests of this file use one goroutine each, and the race detector would make them take
// minutes.

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
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/score"
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
		t.Skip("-short: plays thousands of episodes")
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
		i := 0
		for task := range library.Generate() {
			if i++; i%24 != 0 {
				continue
			}
			way := ways[(i/24*7+m)%len(ways)]
			if !way.applies(lib, &task) {
				continue
			}
			trial := way.trial(model, &task)
			a, tr := runner.Run(t.Context(), models, &trial, &task)
			if !a.Settles() {
				t.Fatalf("%s, %+v: %s", model, way, a.FaultDetail)
			}
			for k := range tr.Turns { // times depend on the machine
				tr.Turns[k].QueuedMS, tr.Turns[k].WorkingMS = 0, 0
			}
			d.add(t, a.Outcome, tr)
		}
		p.add(model, d)
	}
	golden.Assert(t, p.String(), "pinned/episodes.txt")
}

// pinnedStore unpacks a store that an early version wrote, and brings it up to date.
func pinnedStore(t testing.TB) string {
	t.Helper()
	if golden.FlagUpdate() {
		renewed.Do(func() { renewStore(t) })
	}
	f, err := os.Open(pinnedFile)
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
	path := file(t, t.TempDir(), "pinned.db", string(b))
	db, err := store.Open(t.Context(), path, store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

var (
	pinnedFile = filepath.Join("testdata", "pinned", "store.db.zst")
	renewed    sync.Once
)

// renewStore runs two of the pinned experiments and keeps their store.
func renewStore(t testing.TB) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "new.db")
	for _, name := range []string{"a.yaml", "b.yaml"} {
		must(t, nil, "run", filepath.Join("testdata", "pinned", name), "--store", path,
			"--display", "json")
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedBestCompression))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(pinnedFile, w.EncodeAll(b, nil), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestPinnedVerdicts judges stored transcripts again. Each gets the outcome that is stored.
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
		today := judge.Outcome(&a.Trial, &task, &tr)
		if diff := cmp.Diff(a.Outcome, today, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("trial %s has another outcome today (-stored +today):\n%s", a.ID, diff)
		}
	}
	if n < 200 {
		t.Errorf("judged %d attempts, want at least 200", n)
	}
}

// TestPinnedStore opens a store with results of an early version. Every seal holds, exports are
// equal byte for byte, and the experiments that wrote the store have no pending trials.
func TestPinnedStore(t *testing.T) {
	t.Parallel()
	path := pinnedStore(t)
	dir := filepath.Dir(path)
	if v := verifyJSON(t, path, exitOK); len(v.Problems) > 0 {
		t.Errorf("problems %v", v.Problems)
	}

	var p pins
	add := func(name, path string) {
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		d := newDigest()
		d.n = len(content)
		d.Write(content)
		p.add(name, d)
	}
	for _, format := range []string{"jsonl", "csv", "parquet"} {
		a, c := filepath.Join(dir, "a."+format), filepath.Join(dir, "c."+format)
		must(t, nil, "export", "--store", path, "--format", format, "-o", a, "--calls", c)
		add("attempts as "+format, a)
		add("calls as "+format, c)
	}
	for _, format := range []string{"v3", "csv50"} {
		a := filepath.Join(dir, "a."+format)
		must(t, nil, "export", "--store", path, "--format", format,
			"--experiment", "pinned-pilot", "-o", a)
		add(format, a)
	}
	p.add("samples of logs for Inspect", inspectSamples(t, path))
	golden.Assert(t, p.String(), "pinned/exports.txt")

	for _, name := range []string{"a.yaml", "b.yaml"} {
		t.Run(name, func(t *testing.T) {
			r := must(t, nil, "run", filepath.Join("testdata", "pinned", name), "--store", path,
				"--display", "json")
			if e := lastEvent(t, r.out); e["settled"] != 0. || e["done"] != e["planned"] {
				t.Errorf("trials run again: %v settled, %v of %v done",
					e["settled"], e["done"], e["planned"])
			}
		})
	}
}

// inspectSamples hashes the samples in the logs that a store exports for Inspect.
func inspectSamples(t *testing.T, store string) *digest {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "logs")
	must(t, nil, "export", "--store", store, "--format", "inspect", "-o", dir)
	logs, err := filepath.Glob(filepath.Join(dir, "*.eval"))
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
	return samples
}

// zipped returns the files in an archive whose names begin with prefix, ordered by name.
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

// The whole report of a run in each world stays the same, but for times and the IDs of runs.
func TestPinnedReports(t *testing.T) {
	t.Parallel()
	desk := filepath.Join(t.TempDir(), "desk")
	must(t, nil, "init", "desk", desk)
	for world, experiment := range map[string]string{
		"pilot":   filepath.Join("testdata", "pinned", "pilot-report.yaml"),
		"assay-1": filepath.Join("testdata", "pinned", "assay-1-report.yaml"),
		"own-1":   filepath.Join(desk, "experiment.yaml"),
	} {
		t.Run(world, func(t *testing.T) {
			t.Parallel()
			db := filepath.Join(t.TempDir(), "assay.db")
			must(t, nil, "run", experiment, "--store", db, "--sim-latency", "0", "--display", "none")
			r := must(t, nil, "report", "--store", db, "--json")
			var report map[string]any
			if err := json.Unmarshal([]byte(strings.ReplaceAll(r.out, db, "STORE")), &report); err != nil {
				t.Fatal(err)
			}
			golden.Assert(t, lines(t, report), "pinned/report-"+world+".txt")
		})
	}
}

// lines returns a line for each part of a report, without the parts that differ between two runs.
func lines(t *testing.T, report map[string]any) string {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(report)) {
		if slices.Contains([]string{"lanes", "reproduction", "speed"}, name) {
			continue
		}
		parts, several := report[name].([]any)
		if !several {
			parts = []any{report[name]}
		}
		for _, part := range parts {
			text, err := json.Marshal(constant(part))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "%s %s\n", name, text)
		}
	}
	return b.String()
}

// constant returns a value of a report without its times. It rounds numbers, because the last
// digits of sums depend on the order of the attempts.
func constant(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "working_s_per_trial")
		if v["label"] == "Run" {
			delete(v, "text")
		}
		for name := range v {
			v[name] = constant(v[name])
		}
	case []any:
		for i := range v {
			v[i] = constant(v[i])
		}
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', 9, 64))
	}
	return v
}
