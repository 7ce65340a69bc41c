package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// logged reads the logs of a store. Each log is a list of records.
func logged(t *testing.T, store string) (logs [][]map[string]any) {
	t.Helper()
	names, err := filepath.Glob(store + ".logs/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var records []map[string]any
		for line := range bytes.Lines(b) {
			var r map[string]any
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatalf("%s: %v: %s", name, err, line)
			}
			records = append(records, r)
		}
		logs = append(logs, records)
	}
	return logs
}

func hasMessage(records []map[string]any, msg string) bool {
	return slices.ContainsFunc(records, func(r map[string]any) bool {
		return r["msg"] == msg
	})
}

// TestEachRunHasALog checks that each run logs its beginning, faults and end in a separate file,
// that level error keeps exactly the errors, that --debug-trials writes episodes, and that logs can
// be turned off.
func TestEachRunHasALog(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "l.db")
	refusing := serve(t, "--key", "SOME_OTHER_KEY")
	file(t, dir, "p.yaml", providersFile(refusing.url, "{concurrency: 2}"))
	const text = "name: e\nmodels: [sim/listed, sim/optimal]\ntasks_per_type: 1\n" +
		"providers: p.yaml\n"
	experiment := file(t, dir, "e.yaml", text)
	env := map[string]string{"SIM_KEY": "a-key-that-is-refused"}
	run := func(args ...string) {
		all := []string{"run", experiment, "--store", db, "--display", "none", "--sim-latency", "0"}
		r := call(t, env, append(all, args...)...)
		if r.code != exitIncomplete {
			t.Fatalf("exit code %d\n%s", r.code, r.err)
		}
	}
	run("--debug-trials", "all")
	run("--log-level", "error")
	file(t, dir, "e.yaml", text+"logs: none\n")
	run()
	logs := logged(t, db)
	if len(logs) != 2 {
		t.Fatalf("%d logs, want 2", len(logs))
	}
	for _, msg := range []string{
		"run begins", "lane", "request failed", "model closed", "run ends",
	} {
		if !hasMessage(logs[0], msg) {
			t.Errorf("the log lacks %q: %v", msg, logs[0])
		}
	}
	for _, r := range logs[1] {
		if r["level"] != "ERROR" {
			t.Errorf("level error logged %v", r)
		}
	}
	if !hasMessage(logs[1], "model closed") {
		t.Errorf("level error lacks an error: %v", logs[1])
	}
	episodes, err := filepath.Glob(db + ".logs/*-trials/*.json")
	if n := len(attempts(t, db)); len(episodes) == 0 || len(episodes) > n || err != nil {
		t.Errorf("%d episodes of %d attempts, %v", len(episodes), n, err)
	}
	r := call(t, env, "run", experiment, "--log-level", "loud")
	if r.code != exitUsage || !strings.Contains(r.err, "debug, info, warn or error") {
		t.Errorf("an unknown level: %d, %s", r.code, r.err)
	}
}
