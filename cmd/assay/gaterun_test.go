package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/store"
)

// The first signal lets the episodes of a gate that runs its candidate finish, as in a run. The
// baseline is the experiment of the same name, whatever else its store has.
func TestGateFinishesItsEpisodes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	base, next := filepath.Join(dir, "base.db"), filepath.Join(dir, "next.db")
	const text = "models: [sim/listed]\nvariants: [optimal]\ntasks_per_type: 20\n"
	experiment := file(t, dir, "g.yaml", "name: g\n"+text)
	must(t, nil, "run", experiment, "--store", base, "--sim-latency", "0", "--quiet")
	other := file(t, dir, "other.yaml", "name: other\n"+text)
	must(t, nil, "run", other, "--store", base, "--sim-latency", "0", "--quiet")

	inFlight := regexp.MustCompile(`[1-9][0-9]* episodes in flight`)
	signals := make(chan os.Signal, 2)
	var errs bytes.Buffer
	code := make(chan int)
	go func() {
		code <- run([]string{
			"gate", experiment, "--revision", "v2", "--store", next, "--baseline", base,
			"--sim-latency", "300ms",
		}, &process{
			in: strings.NewReader(""), out: new(bytes.Buffer), err: &errs, name: "assay",
			env: os.LookupEnv, signals: signals,
		})
	}()
	waitFor(t, func() bool {
		return inFlight.MatchString(call(t, nil, "ctl", "status", "--store", next).out)
	})
	signals <- os.Interrupt
	if got := <-code; got != exitInterrupted ||
		!strings.Contains(errs.String(), "interrupted before the verdict") {
		t.Fatalf("exit code %d\n%s", got, errs.String())
	}
	db, err := store.OpenReadOnly(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	outcomes := 0
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if !a.Settles() {
			t.Errorf("an episode was aborted: %s", a.FaultDetail)
		}
		outcomes++
	}
	if outcomes == 0 || outcomes >= 100 {
		t.Errorf("%d outcomes", outcomes)
	}
}
