//go:build !race

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeyAppearsNowhere plants a key and searches everything that a user can see: files, output,
// exports and transcripts. The servers echo the key wherever a server can.
func TestKeyAppearsNowhere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "canary.db")
	echo := httptest.NewServer(http.HandlerFunc(echoKey))
	defer echo.Close()
	runWithCanary(t, dir, db, "echo", echo.URL)
	refusing := serve(t, "--key", "SOME_OTHER_KEY") // its 401 repeats the key
	runWithCanary(t, dir, db, "refused", refusing.url)

	all := attempts(t, db)
	if len(all) == 0 {
		t.Fatal("no attempt was stored")
	}
	sawEcho := false
	for _, a := range all {
		show := must(t, nil, "show", string(a.ID), "--attempt", fmt.Sprint(a.Number), "--store", db)
		noCanary(t, "show", show.out)
		sawEcho = sawEcho || strings.Contains(show.out, "[redacted]")
	}
	if !sawEcho {
		t.Error("no transcript was redacted, so the server did not echo the key")
	}

	for _, args := range [][]string{
		{"status"},
		{"export", "--format", "csv"},
		{
			"export", "--format", "parquet", "--output", filepath.Join(dir, "a.parquet"),
			"--calls", filepath.Join(dir, "c.parquet"),
		},
		{"export", "--format", "inspect", "--output", filepath.Join(dir, "logs")},
		{"export", "--format", "eee", "--output", filepath.Join(dir, "records")},
		{"export", "--format", "atif"},
		{"report", "echo", "--format", "html", "--transcripts", "9"},
		{"publish", filepath.Join(dir, "site"), "--transcripts", "9"},
		{"cite", "echo"},
	} {
		noCanary(t, args[0], must(t, nil, append(args, "--store", db)...).out)
	}
	noFileHasCanary(t, dir)
}

// runWithCanary runs an experiment twice with all logs, and checks its output.
func runWithCanary(t *testing.T, dir, db, name, url string) {
	t.Helper()
	file(t, dir, name+"-providers.yaml", providersFile(url, "{concurrency: 4}"))
	experiment := file(t, dir, name+".yaml", "name: "+name+
		"\nmodels: [sim/listed]\ntasks_per_type: 1\nproviders: "+name+"-providers.yaml\n")
	for _, display := range []string{"plain", "json"} {
		r := call(t, map[string]string{"SIM_KEY": canary}, "run", experiment, "--store", db,
			"--display", display, "--log-level", "debug", "--debug-trials", "all")
		if name == "refused" && r.code != exitIncomplete {
			t.Errorf("exit code %d after a refused key, want %d\n%s%s",
				r.code, exitIncomplete, r.out, r.err)
		}
		if name == "refused" && strings.Contains(r.out, "It took") {
			t.Errorf("a run without an outcome is called fast or slow:\n%s", r.out)
		}
		noCanary(t, name+" run", r.out+r.err)
	}
}
