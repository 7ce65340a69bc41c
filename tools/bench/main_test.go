package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// scratch is a directory that is removed after the tests.
var scratch string

// TestMain runs the tests, or a child process of a measurement.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && children[os.Args[1]] != nil {
		main()
		return
	}
	var err error
	if scratch, err = os.MkdirTemp("", "assay-bench-test"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(scratch)
	os.Exit(code)
}

// assayPath returns the path of assay, which is built once. From then on, the cache of built-in tasks
// is not the user's.
var assayPath = sync.OnceValues(func() (string, error) {
	path, err := build(context.Background(), scratch)
	return path, errors.Join(err, os.Setenv("XDG_CACHE_HOME", filepath.Join(scratch, "cache")))
})

func newRig(t *testing.T) *rig {
	t.Helper()
	assay, err := assayPath()
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return &rig{assay: assay, self: self, dir: t.TempDir()}
}

// TestQuickMeasurements runs small measurements, and checks that all rows are there and plausible. CI
// has a step for measurements that need the machine for themselves.
func TestQuickMeasurements(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: measures for 10 s")
	}
	t.Parallel()
	chosen, err := choose("3,5")
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{rig: newRig(t), quick: true}
	all, err := b.measure(t.Context(), chosen, io.Discard)
	if err != nil || len(all) != 6 {
		t.Fatalf("%d rows, want 6: %v", len(all), err)
	}
	for _, r := range all {
		if (r.number == "5") != (r.value == 0) {
			t.Errorf("%s: %s", r.what, r.unit.text(r.value))
		}
	}
}

// TestRefusedRunIsReported checks that a run that ends before its first request is not waited for.
func TestRefusedRunIsReported(t *testing.T) {
	t.Parallel()
	s := workload{model: "sim/mute", trials: 5, text: "limits: {turns: 0}", stop: time.Hour}
	_, err := newRig(t).runScenario(t.Context(), s)
	if !errors.Is(err, errEnded) || !strings.Contains(err.Error(), "turns is 0") {
		t.Errorf("error %v, want the run's error", err)
	}
}

func TestOnlySelectsByPrefix(t *testing.T) {
	t.Parallel()
	for only, want := range map[string]string{
		"": "2a 2c 2d 2e 2f 2h 2i 2j 2k 2l 3 5", "5,2c": "2c 5", "2z,3": "",
	} {
		chosen, err := choose(only)
		var ids []string
		for _, m := range chosen {
			ids = append(ids, m.id)
		}
		if got := strings.Join(ids, " "); got != want || (err != nil) != (want == "") {
			t.Errorf("choose(%q) = %s, %v, want %s", only, got, err, want)
		}
	}
}
