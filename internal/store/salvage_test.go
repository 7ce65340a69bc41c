//go:build !race

package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

const pageSize = 4096

// A mapped store knows on which pages the rows are that prove an attempt.
type mapped struct {
	file  []byte
	pages map[string]map[int]bool // by the worker of the attempt
	shows string
}

// mappedStore has attempts whose rows can be found in the file.
func mappedStore(t *testing.T) mapped {
	t.Helper()
	db, path := create(t)
	for i := range 120 {
		a := outcome(i)
		a.Worker = fmt.Sprintf("worker-%04d", i)
		must(t, db.Save(t.Context(), a, longTranscript(i)))
	}
	must(t, errors.Join(db.EndRun(t.Context(), "r1", nil), db.Close()))
	b, err := os.ReadFile(path)
	must(t, err)
	m := mapped{file: b, pages: make(map[string]map[int]bool)}
	m.shows, err = shown(t, path)
	must(t, err)
	var runs int // the page with the row of their run
	must(t, raw(t, path, "").QueryRow(
		"SELECT rootpage - 1 FROM sqlite_schema WHERE name = 'runs'").Scan(&runs))
	rows, err := raw(t, path, "").Query(`SELECT worker, task, sum FROM attempts a
		JOIN trials t ON t.id = a.trial JOIN attempt_seals s ON s.attempt = a.id`)
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var worker, task string
		var seal []byte
		must(t, rows.Scan(&worker, &task, &seal))
		m.pages[worker] = map[int]bool{runs: true}
		for _, text := range []string{worker, task, string(seal), `{"name": "e"}`} {
			for page := range len(b) / pageSize { // unused space may have a copy
				if bytes.Contains(b[page*pageSize:][:pageSize], []byte(text)) {
					m.pages[worker][page] = true
				}
			}
		}
	}
	return m
}

// shown returns the content of a store as readers show it.
func shown(t *testing.T, path string) (string, error) {
	db, err := store.OpenReadOnly(t.Context(), path)
	if err != nil {
		return "", err
	}
	defer db.Close()
	db.SkipDamage(func(error) {})
	var b strings.Builder
	err = db.SkipGone(t.Context())
	n := 0
	for a, failed := range db.Transcripts(t.Context(), store.Filter{}) {
		text, _ := json.Marshal(a)
		b.Write(text)
		if n++; n < 5 { // alone, which takes longer
			script, missing := db.Transcript(t.Context(), a.Attempt.ID, a.Attempt.Number)
			text, _ := json.Marshal(script)
			b.Write(text)
			err = errors.Join(err, missing)
		}
		err = errors.Join(err, failed)
	}
	runs, failed := db.Runs(t.Context(), "")
	fmt.Fprintf(&b, "%+v", runs)
	if n := db.Skipped() + db.SkippedRows(); n > 0 {
		failed = errors.Join(failed, fmt.Errorf("%d rows are left out", n))
	}
	return b.String(), errors.Join(err, failed)
}

// recovers checks that a damaged copy of the store shows no wrong data, and that recovery keeps all
// attempts that have no row on a lost page.
func (m mapped) recovers(t *testing.T, b []byte, isLost func(page int) bool) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "hurt.db")
	must(t, os.WriteFile(path, b, 0o644))
	if got, err := shown(t, path); err == nil && got != m.shows {
		t.Error("readers show something else, and say nothing")
	}
	want := make(map[string]bool)
	for worker, pages := range m.pages {
		lost := false
		for page := range pages {
			lost = lost || isLost(page)
		}
		if !lost {
			want[worker] = true
		}
	}
	sum, err := store.Recover(t.Context(), path+"-new", path, quiet)
	if err != nil {
		if len(want) > 0 {
			t.Errorf("%d attempts are intact, but %v", len(want), err)
		}
		return
	}
	intact(t, path+"-new")
	for _, a := range all(t, openReadOnly(t, path+"-new"), store.Filter{}) {
		delete(want, a.Worker)
	}
	if len(want) > 0 {
		t.Errorf("%d intact attempts are lost, such as %v; lost: %.500v", len(want), want, sum.LostList)
	}
}

// Pages in the wrong place show no wrong data, here the first pages of each two tables and indexes.
func TestReadersNoticeSwappedTables(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: swaps all pairs of tables")
	}
	t.Parallel()
	db, path := create(t)
	one, again := outcome(0), outcome(2)
	again.Round = 1
	save(t, db, one, fault(1), outcome(2), again)
	rescore(t, db, rescored(one, better(0)))
	must(t, errors.Join(db.EndRun(t.Context(), "r1", nil), db.Close()))
	want, err := shown(t, path)
	must(t, err)
	file, err := os.ReadFile(path)
	must(t, err)
	roots, err := raw(t, path, "").Query(
		"SELECT rootpage - 1, name FROM sqlite_schema WHERE rootpage > 0")
	must(t, err)
	defer roots.Close()
	names := make(map[int]string)
	for roots.Next() {
		var page int
		var name string
		must(t, roots.Scan(&page, &name))
		names[page] = name
	}
	pages := slices.Sorted(maps.Keys(names))
	if len(pages) < 20 {
		t.Fatalf("the store has the tables and indexes %v", names)
	}
	for i, x := range pages {
		for _, y := range pages[:i] {
			hurt := filepath.Join(t.TempDir(), "hurt.db")
			must(t, os.WriteFile(hurt, swapped(file, x, y), 0o644))
			if got, err := shown(t, hurt); err == nil && got != want {
				t.Errorf("%s in the place of %s: readers show something else, and say nothing",
					names[x], names[y])
			}
		}
	}
}

// swapped returns a copy of a file of which two pages changed places.
func swapped(file []byte, x, y int) []byte {
	b := bytes.Clone(file)
	copy(b[x*pageSize:], file[y*pageSize:][:pageSize])
	copy(b[y*pageSize:], file[x*pageSize:][:pageSize])
	return b
}

// A damaged page costs the rows on it, and one of an index none. The pages that tell where others are
// may cost any.
func TestRecoverCopiesWhatSQLiteReads(t *testing.T) {
	t.Parallel()
	m := mappedStore(t)
	path := filepath.Join(t.TempDir(), "whole.db")
	must(t, os.WriteFile(path, m.file, 0o644))
	rows, err := raw(t, path, "").Query(`SELECT pageno - 1, p.name, p.pagetype, s.type = 'index'
		FROM dbstat p JOIN sqlite_schema s ON s.name = p.name`)
	must(t, err)
	defer rows.Close()
	tested := make(map[string]int)
	for rows.Next() {
		var page int
		var of, kind string
		var isIndex bool
		must(t, rows.Scan(&page, &of, &kind, &isIndex))
		if tested[of+kind]++; tested[of+kind] > 2 {
			continue
		}
		t.Run(fmt.Sprint(kind, " page ", page, " of ", of), func(t *testing.T) {
			t.Parallel()
			b := bytes.Clone(m.file)
			clear(b[page*pageSize:][:pageSize])
			m.recovers(t, b, func(n int) bool { return !isIndex && (n == page || kind == "internal") })
		})
	}
	must(t, rows.Err())
	if tested["attemptsleaf"] < 10 || tested["attemptsinternal"] == 0 {
		t.Errorf("the store has too few pages: %v", tested)
	}
}

// Whatever happens to the file, recovery copies nothing wrong.
func TestRecoverCopiesNothingWrong(t *testing.T) {
	t.Parallel()
	m := mappedStore(t)
	random := rand.New(rand.NewPCG(1, 2))
	n := len(m.file) / pageSize
	flips, few := 40, 10
	if testing.Short() {
		flips, few = 5, 2
	}
	anything := func(int) bool { return true }
	for i := range few {
		t.Run(fmt.Sprint("cut off ", i), func(t *testing.T) {
			t.Parallel()
			m.recovers(t, m.file[:len(m.file)*(2*i+1)/(2*few)], anything)
		})
		x, y := 1+random.IntN(n-1), 1+random.IntN(n-1)
		t.Run(fmt.Sprint("swapped ", x, " ", y), func(t *testing.T) {
			t.Parallel()
			m.recovers(t, swapped(m.file, x, y), anything)
		})
	}
	for range flips {
		at, bit := random.IntN(len(m.file)), byte(1)<<random.IntN(8)
		t.Run(fmt.Sprint("flipped ", at, " ", bit), func(t *testing.T) {
			t.Parallel()
			b := bytes.Clone(m.file)
			b[at] ^= bit
			m.recovers(t, b, anything)
		})
	}
}

// A file that SQLite cannot read is refused, with the tool that may read it.
func TestRecoverNamesTheShell(t *testing.T) {
	t.Parallel()
	for hint, damage := range map[assay.Hint]func([]byte){
		assay.HintPerhaps: func(b []byte) { clear(b[:100]) },
		assay.HintNoRuns:  func(b []byte) { clear(b[100:pageSize]) },
	} {
		path := planted(t, whole(t), corruption{bytes: func(b []byte) []byte { damage(b); return b }})
		_, err := store.Recover(t.Context(), path+"-new", path, quiet)
		if err == nil || !strings.Contains(said(err), fmt.Sprint(hint, []string{path, path})) {
			t.Errorf("Recover() = %v, want the hint %s", err, hint)
		}
	}
}
