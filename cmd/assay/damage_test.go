//go:build !race

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// A damaged store shows the figures of the intact one, or a command lists the omissions and ends
// with another exit code than 0. The race detector would make this test take minutes.
func TestNoDamageIsSilent(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("-short: shows 100 damaged stores")
	}
	dir := t.TempDir()
	name := func(i int) string { return filepath.Join(dir, fmt.Sprintf("%03d.db", i)) }
	clean := name(0)
	b := soundStore(t, clean)
	commands := readings(t, clean)
	want := make([]result, len(commands))
	for i, args := range commands {
		want[i] = call(t, nil, append(args, "--store", clean)...)
		if want[i].code == exitError {
			t.Fatalf("%v: %s", args, want[i].err)
		}
	}
	view, err := viewed(t, clean)
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(3, 4))
	for i := range 100 {
		path := name(i + 1)
		t.Run(fmt.Sprint(i, " ", hurt(t, random, i, path, b)), func(t *testing.T) {
			t.Parallel()
			for i, args := range commands {
				got := call(t, nil, append(args, "--store", path)...)
				if got.code != exitOK && got.err != "" {
					continue
				}
				is, was := figures(got.out, path), figures(want[i].out, clean)
				if got.code != want[i].code || is != was {
					t.Errorf("%v: exit code %d, other figures, and only %q\n%s", args, got.code, got.err,
						firstDifference(was, is))
				}
			}
			if got, err := viewed(t, path); err == nil && got != view {
				t.Errorf("view shows %.200s", firstDifference(view, got))
			}
		})
	}
}

// soundStore makes a store with outcomes, a fault and a later verdict, and returns its bytes.
func soundStore(t *testing.T, path string) []byte {
	t.Helper()
	e := file(t, t.TempDir(), "e.yaml", "name: sound\nmodels: [sim/expert, sim/obedient]\n"+
		"variants: [baseline, optimal]\nreliabilities: [0.7]\ntasks_per_type: 1\nrepeats: 2\n")
	must(t, nil, "run", e, "--store", path, "--sim-latency", "0", "--quiet")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		later := store.Rescored{
			Trial: a.ID, Number: a.Number, Outcome: a.Outcome, At: time.Now(), Program: "test",
		}
		later.Outcome.ErrorCategory = "other"
		later.Outcome.Level = assay.Failure
		fault := assay.Attempt{
			Trial: a.Trial, Experiment: a.Experiment, Run: a.Run, Lane: a.Lane,
			FaultKind: assay.Server, FaultDetail: "500", StartedAt: time.Now(), FinishedAt: time.Now(),
		}
		err = errors.Join(db.Rescore(t.Context(), []store.Rescored{later}),
			db.Save(t.Context(), &fault, nil))
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// readings returns commands that read a store.
func readings(t *testing.T, path string) [][]string {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	models, err := db.Models(t.Context())
	if err != nil || len(models) < 2 {
		t.Fatal(models, err)
	}
	var trial string
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		trial = string(a.ID)
		break
	}
	return [][]string{
		{"report"},
		{"status"},
		{"export"},
		{"show", trial},
		{"compare", models[0], models[1]},
		{"gate", models[0], "--baseline", models[1], "--allow", "judges,worlds"},
	}
}

// viewed returns the data that the pages of assay view read, or an error if they show that rows are
// left out.
func viewed(t *testing.T, path string) (string, error) {
	t.Helper()
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		return "", err
	}
	defer db.Close()
	db.SkipDamage(func(error) {})
	var text strings.Builder
	err = db.SkipGone(t.Context())
	runs, failed := db.Runs(t.Context(), "")
	l, listed := db.List(t.Context(), "")
	b, invalid := json.Marshal(runs)
	if err = errors.Join(err, failed, listed, invalid); err != nil {
		return "", err
	}
	text.Write(b)
	for a, failed := range l.All {
		b, invalid := json.Marshal(a)
		fmt.Fprintf(&text, "%s\n", b)
		err = errors.Join(err, failed, invalid)
	}
	if n := db.Skipped() + db.SkippedRows(); n > 0 {
		err = errors.Join(err, fmt.Errorf("%d rows are left out", n))
	}
	return text.String(), err
}

// hurt writes a damaged copy of a store, and returns a description of the damage.
func hurt(t *testing.T, random *rand.Rand, i int, path string, clean []byte) string {
	t.Helper()
	const page = 4096
	b := bytes.Clone(clean)
	pages := len(b) / page
	x, y := random.IntN(pages), random.IntN(pages)
	var name, change string
	switch i % 5 {
	case 0:
		at := random.IntN(len(b))
		b[at] ^= 1 << random.IntN(8)
		name = fmt.Sprint("flipped byte ", at)
	case 1:
		copy(b[x*page:(x+1)*page], clean[y*page:])
		copy(b[y*page:(y+1)*page], clean[x*page:])
		name = fmt.Sprint("swapped pages ", x, " ", y)
	case 2:
		b = b[:random.IntN(len(b))]
		name = fmt.Sprint("cut off at ", len(b))
	case 3:
		clear(b[x*page : (x+1)*page])
		name = fmt.Sprint("cleared page ", x)
	case 4:
		tables := []string{
			"attempts", "trials", "runs", "attempt_seals", "seals", "transcripts",
			"specs", "ends", "dictionaries", "scores", "libraries",
		}
		table := tables[i/10%len(tables)]
		name = "DELETE FROM " + table
		if i%10 == 4 {
			name = "UPDATE " + table + " SET " + map[string]string{
				"attempts": "level = '', ended = '', loop = '', loop_turn = 0, fault = 'server' WHERE fault = ''",
				"trials":   "model = model || 'x' WHERE", "runs": "started_at = '2020-01-01T00:00:00Z' WHERE",
				"attempt_seals": "sum = zeroblob(16) WHERE", "seals": "sum = zeroblob(16) WHERE",
				"transcripts": "body = zeroblob(20) WHERE", "ends": "attempts = 3 WHERE",
				"specs":        "spec = '{}' WHERE",
				"dictionaries": "body = zeroblob(20) WHERE", "libraries": "body = zeroblob(20) WHERE",
				"scores": "body = replace(body, 'failure', 'full_success') WHERE",
			}[table]
			name = strings.TrimSuffix(name, " WHERE")
		}
		change = name
		if table == "attempts" || table == "trials" {
			change += map[bool]string{true: " AND", false: " WHERE"}[strings.Contains(name, "WHERE")] +
				fmt.Sprint(" rowid % 7 = ", random.IntN(7))
		}
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	if change != "" {
		meddle(t, path, change)
	}
	return name
}

var timeOfReport = regexp.MustCompile(`(?m)^reported .*$`)

// figures returns a command's output without the path of the store and the time.
func figures(out, path string) string {
	return timeOfReport.ReplaceAllString(strings.ReplaceAll(out, path, "STORE"), "reported")
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("-%.400s\n+%.400s", w[i], g[i])
		}
	}
	return fmt.Sprint(len(w), " and ", len(g), " lines")
}
