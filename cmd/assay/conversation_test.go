//go:build !race

package main

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/assay-eval/assay"
)

// A sentence is what a verdict says, for comparisons.
type sentence struct {
	Conversation, Undecided string
	Level                   assay.Level
	Cause                   assay.Cause
	Withheld                string `json:"cause_undecided"`
	Trial                   assay.TrialID
	Attempt                 int
	Origin                  struct{ File, Format, Digest string }
}

// TestOwnTrialsAreJudgedAlike runs an experiment with flawed plans and every kind of fault that own tools can
// have, exports it in each format, and judges the files. Trajectories and logs say all that decides level and
// cause. Spans lack the seed, the plans that are drawn and the end, so a cause may be withheld, and is never
// another one.
func TestOwnTrialsAreJudgedAlike(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	var spans bytes.Buffer
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m collector.ExportTraceServiceRequest
		raw, err := io.ReadAll(r.Body)
		if err == nil {
			err = proto.Unmarshal(raw, &m)
		}
		// A collector's file exporter writes such lines, except that its IDs are hexadecimal.
		line, asJSON := protojson.MarshalOptions{UseEnumNumbers: true}.Marshal(&m)
		if err != nil || asJSON != nil {
			t.Error(err, asJSON)
		}
		mu.Lock()
		defer mu.Unlock()
		spans.Write(append(line, '\n'))
	}))
	defer server.Close()
	mustProgram(t, "init", filepath.Join(dir, "desk"))
	tasks := filepath.Join(dir, "desk", "tasks.yaml")
	experiment := file(t, filepath.Join(dir, "desk"), "e.yaml", `library: tasks.yaml
models: [sim/optimal, sim/listed, sim/claimer, sim/careful]
variants: [baseline, optimal, hasty, flawed_missing_step, flawed_redundant_operations]
reliabilities: [1, 0.6]
failures:
  kinds: {before: 0.2, after: 0.2, slow: 0.1, stale: 0.1, wrong_shape: 0.1, wrong_value: 0.1, down: 0.1, throttled: 0.1}
`)
	store := filepath.Join(dir, "a.db")
	cmd := program(t, "run", experiment, "--store", store, "--display", "none", "--sim-latency", "0")
	cmd.Env = append(cmd.Environ(), "OTEL_EXPORTER_OTLP_ENDPOINT="+server.URL,
		"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	of := make(map[string]sentence) // by trial/attempt, as stored
	failed := 0
	for _, s := range sentences(t, exportedBytes(t, store)) {
		of[fmt.Sprintf("%s/%d", s.Trial, s.Attempt)] = s
		if s.Level != assay.FullSuccess {
			failed++
		}
	}
	if failed < 50 || failed == len(of) {
		t.Fatalf("%d of %d trials failed, which proves little", failed, len(of))
	}
	files := map[string]string{"atif": filepath.Join(dir, "t.jsonl"), "otlp": file(t, dir, "spans.jsonl", spans.String())}
	mustProgram(t, "export", "--store", store, "--format", "atif", "-o", files["atif"])
	mustProgram(t, "export", "--store", store, "--format", "inspect", "-o", filepath.Join(dir, "logs"))
	logs, err := filepath.Glob(filepath.Join(dir, "logs", "*.eval"))
	if err != nil || len(logs) != 4 {
		t.Fatalf("%d logs, %v", len(logs), err)
	}
	for i, log := range logs {
		files[fmt.Sprint("inspect ", i)] = log
	}
	seen := make(map[string]int)
	withheld := 0
	for name, path := range files {
		format, _, _ := strings.Cut(name, " ")
		var keys map[string]string
		if format == "inspect" {
			keys = keysIn(t, path)
		}
		for _, s := range judged(t, path, tasks) {
			key := strings.Replace(s.Conversation, "-", "/", 1)
			if format == "inspect" {
				key = keys[s.Origin.File]
			}
			want, known := of[key]
			seen[format]++
			switch {
			case !known || s.Level != want.Level || s.Origin.Format != format || len(s.Origin.Digest) != 64:
				t.Errorf("%s: %+v, want %+v", format, s, want)
			case format == "otlp" && s.Withheld != "":
				withheld++
			case s.Cause != want.Cause || s.Withheld != "":
				t.Errorf("%s: cause %q (%s) of %s, want %q", format, s.Cause, s.Withheld, key, want.Cause)
			}
		}
	}
	for _, format := range []string{"atif", "otlp", "inspect"} {
		if seen[format] != len(of) {
			t.Errorf("%d of %d trials were judged from %s", seen[format], len(of), format)
		}
	}
	if withheld == 0 || withheld > failed/2 {
		t.Errorf("%d causes of %d failures were withheld from spans", withheld, failed)
	}
}

// keysIn returns the trial and attempt of each sample in a log, by the names that origins have.
func keysIn(t *testing.T, log string) map[string]string {
	t.Helper()
	z, err := zip.OpenReader(log)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	keys := make(map[string]string)
	for _, f := range z.File {
		var sample struct{ Metadata sentence }
		if !strings.HasPrefix(f.Name, "samples/") {
			continue
		}
		r, err := f.Open()
		if err == nil {
			err = json.NewDecoder(r).Decode(&sample)
		}
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		keys[filepath.ToSlash(log)+"/"+f.Name] = fmt.Sprintf("%s/%d", sample.Metadata.Trial, sample.Metadata.Attempt)
	}
	return keys
}

// judged returns the verdicts on a file. All of them have to be decided.
func judged(t *testing.T, path, tasks string) []sentence {
	t.Helper()
	out := filepath.Join(t.TempDir(), "judged.jsonl")
	if text, err := program(t, "judge", path, "--library", tasks, "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, text)
	}
	raw, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	return sentences(t, raw)
}

func sentences(t *testing.T, lines []byte) (all []sentence) {
	t.Helper()
	for line := range bytes.Lines(lines) {
		var s sentence
		if err := json.Unmarshal(line, &s); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, s)
	}
	return all
}

// TestArgumentsBesideCommands checks that a command that takes a file can also have commands.
func TestArgumentsBesideCommands(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"file.json": "file.json", "below": "below",
		"a b": "was given 2 arguments", "belwo b": "did you mean below?",
	} {
		got := ""
		cmd := &cobra.Command{
			Use: "judge FILE", Args: cobra.ExactArgs(1), SilenceErrors: true, SilenceUsage: true,
			RunE: func(_ *cobra.Command, args []string) error { got = args[0]; return nil },
		}
		cmd.AddCommand(&cobra.Command{Use: "below", Args: cobra.NoArgs, Run: func(*cobra.Command, []string) { got = "below" }})
		wrapArgs(cmd)
		cmd.SetArgs(strings.Fields(args))
		if err := cmd.Execute(); err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}
