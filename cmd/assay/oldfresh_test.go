//go:build !race

package main

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestOldFreshLibrary uses a library that grammar 1 drew. It is played as before, and whoever asks
// for its seed again is told to keep it.
func TestOldFreshLibrary(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/fresh-1.db.gz")
	if err != nil {
		t.Fatal(err)
	}
	zipped, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(zipped)
	if err != nil {
		t.Fatal(err)
	}
	r := reader{dir: t.TempDir()}
	file(t, r.dir, "fresh-1.db", string(content))
	file(t, r.dir, "experiment.yaml", "name: old\nlibrary: fresh-1.db\nmodels: [sim/optimal]\n"+
		"variants: [optimal]\ndifficulties: [medium, very_hard]\nreliabilities: [1]\ntasks_per_type: all\n")
	for line, want := range map[string]string{
		"assay library inspect fresh-1.db":  "digest 5025721ca48f09f7dc13e2044dcef4b0",
		"assay library validate fresh-1.db": "sound",
	} {
		if out := r.run(t, line); !strings.Contains(out, want) {
			t.Errorf("%s: %s\nwant %q", line, out, want)
		}
	}
	if out := r.run(t, "assay library inspect fresh-1.db"); !strings.Contains(out, "keep the file") {
		t.Errorf("inspect does not say that its seed gives other tasks: %s", out)
	}
	r.run(t, "assay run experiment.yaml")
	if out := r.run(t, "assay report"); !strings.Contains(out, "100.0 %") {
		t.Errorf("the best policy does not solve all tasks:\n%s", out)
	}
	path := filepath.Join(r.dir, "fresh-1.db")
	wantError(t, 1, "already exists; its tasks are of grammar 1, and a seed now gives those of grammar 2: keep",
		"library", "generate", "--seed", "7", "-o", path)
}
