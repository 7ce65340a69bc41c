//go:build !race

// The tests of this file use one goroutine each, and the race detector would make them take
// minutes.

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
	"gotest.tools/v3/golden"
)

// pinnedStore unpacks a store that an early version wrote. No command and no version may ever need
// another one: it is opened for ever.
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

// TestPinnedVerdicts judges stored transcripts of models again. Each gets the outcome that is stored,
// but for the version of the rules, the cause, which later rules may name better, and the harm, which early
// rules did not judge.
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
		rules := cmpopts.IgnoreFields(assay.Outcome{}, "ScoreVersion", "Cause", "ErrorCategory", "Harm",
			"FaultsDelivered", "FaultsDetected", "FaultsRecovered", "FaultsRepeated") // which early stores lack
		if diff := cmp.Diff(a.Outcome, today, cmpopts.EquateEmpty(), rules); diff != "" {
			t.Errorf("trial %s has another outcome today (-stored +today):\n%s", a.ID, diff)
		}
	}
	if n < 200 {
		t.Errorf("judged %d attempts, want at least 200", n)
	}
}

// TestPinnedStore opens a store with results of an early version. Every seal holds, exports are
// equal byte for byte, and the experiments that wrote the store have no pending trials. Runs write to
// it, and every seal still holds.
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
	v3 := filepath.Join(dir, "a.v3")
	must(t, nil, "export", "--store", path, "--format", "v3", "--experiment", "pinned-pilot", "-o", v3)
	add("v3", v3)
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
	must(t, nil, "run", filepath.Join("testdata", "pinned", "pilot-report.yaml"), "--store", path, "--limit", "3",
		"--sim-latency", "0", "--display", "none")
	if v := verifyJSON(t, path, exitOK); len(v.Problems) > 0 || v.Attempts <= 278 {
		t.Errorf("after a run: %d attempts, problems %v", v.Attempts, v.Problems)
	}
}

// TestPinnedOutputs shows what an early version stored, in every format that people and programs read.
// A change of structure alters none of it.
func TestPinnedOutputs(t *testing.T) {
	t.Parallel()
	path := pinnedStore(t)
	// Lines of a report end where its paths let them, so the path is as long as anywhere else.
	const length = 120
	alike := filepath.Join(filepath.Dir(path), strings.Repeat("p", max(1, length-len(filepath.Dir(path))-1)))
	if err := os.Rename(path, alike); err != nil {
		t.Fatal(err)
	}
	path = alike
	moment := regexp.MustCompile(`20\d\d-\d\d-\d\dT[\d:.]+Z`)
	var p pins
	for _, command := range []string{
		"report --format text", "report --format md --details", "report --format json",
		"report --format html --transcripts 2", "report --where reliability=0.9 --format md",
		"report pinned-assay-1 --details", "report pinned-assay-1 --format json",
		"compare sim/expert sim/obedient", "compare sim/expert sim/obedient --json",
		"gate pinned-pilot --at-least 50% --json", "gate sim/expert --at-least 50%",
		"failures", "failures --json", "status", "status --json", "store verify --json",
		"show 0baf1890", "show 0baf1890 --json",
	} {
		args := strings.Fields(command)
		r := call(t, nil, append(args, "--store", path)...)
		d := newDigest()
		text := moment.ReplaceAllString(strings.ReplaceAll(r.out+r.err, path, "STORE"), "TIME")
		d.n = len(text)
		d.Write([]byte(text))
		p.add(fmt.Sprintf("%s, exit code %d", command, r.code), d)
	}
	golden.Assert(t, p.String(), "pinned/outputs.txt")
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
