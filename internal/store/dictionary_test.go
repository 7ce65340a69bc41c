package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// enough is how many long transcripts let a session choose its dictionary and use it.
const enough = 40

// kinds of experiments share no text.
var kinds = []func(int) *assay.Transcript{
	longTranscript,
	func(i int) *assay.Transcript { return translated(i, "qwertyuiopasdfghjklzxcvbnm") },
	func(i int) *assay.Transcript { return translated(i, "mnbvcxzlkjhgfdsapoiuytrewq") },
}

// translated returns a long transcript in other letters.
func translated(i int, letters string) *assay.Transcript {
	t := longTranscript(i)
	for m := range t.Messages {
		t.Messages[m].Content = strings.Map(func(r rune) rune {
			if 'a' <= r && r <= 'z' {
				return rune(letters[r-'a'])
			}
			return r
		}, t.Messages[m].Content)
	}
	return t
}

// kept has the saved transcripts by trial.
type kept map[assay.TrialID]*assay.Transcript

// session opens the store and saves n transcripts of a kind.
func (k kept) session(t *testing.T, path string, kind func(int) *assay.Transcript, n int) {
	t.Helper()
	db := open(t, path)
	run := assay.RunID(fmt.Sprint("session-", len(k)))
	begin(t, db, run)
	for range n {
		k.save(t, db, run, kind)
	}
	must(t, db.Close())
}

func (k kept) save(t *testing.T, db *store.DB, run assay.RunID, kind func(int) *assay.Transcript) {
	t.Helper()
	a := outcome(len(k))
	a.Run = run
	script := kind(len(k))
	must(t, db.Save(t.Context(), a, script))
	k[a.ID] = script
}

// in checks that db holds all saved transcripts.
func (k kept) in(t *testing.T, db *store.DB) {
	t.Helper()
	found := 0
	for s, err := range db.Transcripts(t.Context(), store.Filter{}) {
		want := k[s.Attempt.ID]
		if want == nil {
			continue
		}
		must(t, err)
		found++
		if !reflect.DeepEqual(want, s.Transcript) { // cmp is slow
			t.Fatalf("transcript of %s (-want +got):\n%s", s.Attempt.ID, cmp.Diff(want, s.Transcript))
		}
	}
	if found != len(k) {
		t.Fatalf("%d of %d transcripts are stored", found, len(k))
	}
}

// needs returns how many transcripts in a store need each dictionary, and how many dictionaries it
// has.
func needs(t *testing.T, path string) (transcripts map[uint32]int, stored int) {
	t.Helper()
	db := raw(t, path, "")
	defer db.Close()
	must(t, db.QueryRow("SELECT count(*) FROM dictionaries").Scan(&stored))
	rows, err := db.Query("SELECT body FROM transcripts")
	must(t, err)
	defer rows.Close()
	transcripts = make(map[uint32]int)
	for rows.Next() {
		var body []byte
		var h zstd.Header
		must(t, errors.Join(rows.Scan(&body), h.Decode(body)))
		transcripts[h.DictionaryID]++
	}
	return transcripts, stored
}

func TestOneDictionaryForEachKindOfText(t *testing.T) {
	t.Parallel()
	path := createClosed(t)
	reader := openReadOnly(t, path) // before there are any dictionaries
	scripts := kept{}
	for step, s := range []struct {
		kind, saves, dictionaries int
	}{
		{0, 5, 0}, // too few
		{0, enough, 1},
		{1, enough, 2},
		{0, enough, 2}, // the older one is chosen again
		{2, 5, 2},
	} {
		before, _ := needs(t, path)
		scripts.session(t, path, kinds[s.kind], s.saves)
		after, stored := needs(t, path)
		if stored != s.dictionaries {
			t.Errorf("session %d: %d dictionaries, want %d", step, stored, s.dictionaries)
		}
		right := uint32(s.kind + 1)
		if used := after[right] - before[right]; s.saves == enough && used < enough/3 {
			t.Errorf("session %d: %d transcripts use dictionary %d, want most of %d",
				step, used, right, enough)
		}
	}
	scripts.in(t, reader)
	scripts.in(t, open(t, path))
}

func createClosed(t *testing.T) string {
	t.Helper()
	db, path := create(t)
	must(t, db.Close())
	return path
}

func TestNoDictionaryForUnrelatedTexts(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 100 {
		script := transcript(0)
		noise := make([]byte, 16_000)
		for i := range noise {
			noise[i] = byte(' ' + random.IntN('~'-' ')) // as random as text can be
		}
		script.Messages[0].Content = string(noise)
		must(t, db.Save(t.Context(), outcome(i), script))
	}
	if _, stored := needs(t, path); stored != 0 {
		t.Errorf("%d dictionaries, want none", stored)
	}
}

func TestDictionaryRoundTripProperty(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	scripts := kept{}
	for range enough {
		scripts.save(t, db, "r1", longTranscript)
	}
	common := longTranscript(1).Messages[0].Content
	reader := openReadOnly(t, path)
	next := enough
	rapid.Check(t, func(r *rapid.T) {
		// Up to several hundred kilobytes, which is more than a block and a window.
		piece := rapid.OneOf(rapid.String(), rapid.Just(common),
			rapid.Custom(func(r *rapid.T) string {
				return strings.Repeat(rapid.StringN(1, 20, -1).Draw(r, "repeated"),
					rapid.IntRange(1, 5000).Draw(r, "times"))
			}))
		script := longTranscript(next)
		for m := range script.Messages {
			script.Messages[m].Content = strings.Join(rapid.SliceOfN(piece, 0, 4).Draw(r,
				"content"), " ")
		}
		a := outcome(next)
		next++
		must(r, db.Save(t.Context(), a, script))
		got, err := reader.Transcript(t.Context(), a.ID, 1)
		if diff := cmp.Diff(*script, got); diff != "" || err != nil {
			r.Fatalf("%v (-want +got):\n%s", err, diff)
		}
	})
	if used, stored := needs(t, path); stored != 1 || used[1] < enough/3 {
		t.Errorf("%d dictionaries, transcripts by dictionary %v", stored, used)
	}
}

// The test copies the store after each save, as a kill would leave it.
func TestDictionaryIsOnDiskBeforeItIsUsed(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	scripts := kept{}
	before := 0
	for range enough {
		scripts.save(t, db, "r1", longTranscript)
		killed := filepath.Join(t.TempDir(), "assay.db")
		copyFiles(t, path, killed)
		if len(scripts) > enough/2 && len(scripts)%5 != 0 { // the dictionary is long in use
			continue
		}
		scripts.in(t, openReadOnly(t, killed))
		if _, stored := needs(t, killed); stored > before {
			before = stored
			more := kept{}
			for id, script := range scripts {
				more[id] = script
			}
			more.session(t, killed, longTranscript, 5)
			more.in(t, openReadOnly(t, killed))
			if used, _ := needs(t, killed); used[1] < 5 {
				t.Errorf("%d transcripts use the dictionary, want at least 5 of the next session",
					used[1])
			}
		}
	}
	if before != 1 {
		t.Errorf("%d dictionaries, want 1", before)
	}
}

// The disk becomes full at every page around the dictionary.
func TestFullDiskDuringDictionary(t *testing.T) {
	t.Parallel()
	const page = 4096
	path := createClosed(t)
	fi, err := os.Stat(path)
	must(t, err)
	with, without := 0, 0
	for limit := fi.Size(); with < 5; limit += page {
		db, path := create(t)
		db.LimitSize(t, limit)
		scripts := kept{}
		var err error
		for i := 0; err == nil; i++ {
			a, script := outcome(i), longTranscript(i)
			if err = db.Save(t.Context(), a, script); err == nil {
				scripts[a.ID] = script
			}
		}
		if !errors.Is(err, store.ErrDiskFull) {
			t.Fatalf("%d bytes: %v, want ErrDiskFull", limit, err)
		}
		must(t, db.Close())
		scripts.in(t, openReadOnly(t, path))
		if _, stored := needs(t, path); stored == 1 {
			with++
		} else {
			without++
		}
	}
	if without == 0 {
		t.Error("no store was full before its dictionary")
	}
}

// The context of each save ends during the save or before it.
func TestCanceledSaveOfTheDictionary(t *testing.T) {
	t.Parallel()
	for range 2 {
		db, path := create(t)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for i := range enough {
			if err := db.Save(ctx, outcome(i), longTranscript(i)); err != nil &&
				!errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
		scripts := kept{}
		for i := range enough {
			a, script := outcome(1000+i), longTranscript(i)
			must(t, db.Save(t.Context(), a, script))
			scripts[a.ID] = script
		}
		scripts.in(t, openReadOnly(t, path))
		scripts.in(t, db)
	}
}

// Three handles read while two sessions save from many goroutines.
func TestReadersLearnNewDictionaries(t *testing.T) {
	t.Parallel()
	path := createClosed(t)
	first, second := openReadOnly(t, path), openReadOnly(t, path)
	for session, kind := range kinds[:2] {
		db := open(t, path)
		run := assay.RunID(fmt.Sprint("session-", session))
		begin(t, db, run)
		var wg sync.WaitGroup
		for saver := range 4 {
			wg.Go(func() {
				for i := range enough / 2 {
					a, script := outcome(10000*session+1000*saver+i), kind(i)
					a.Run = run
					if err := db.Save(t.Context(), a, script); err != nil {
						t.Error(err)
						return
					}
					for _, reader := range []*store.DB{db, first, second} {
						got, err := reader.Transcript(t.Context(), a.ID, 1)
						if err != nil || !reflect.DeepEqual(*script, got) {
							t.Errorf("Transcript() = %v, %v", got, err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		must(t, db.Close())
		if used, stored := needs(t, path); stored != session+1 ||
			used[uint32(session+1)] < enough/2 {
			t.Errorf("session %d: %d dictionaries, transcripts by dictionary %v",
				session, stored, used)
		}
	}
}

func TestDictionaryHalvesTranscripts(t *testing.T) {
	t.Parallel()
	path := createClosed(t)
	kept{}.session(t, path, longTranscript, enough+20)
	db := raw(t, path, "")
	var sizes []int
	rows, err := db.Query("SELECT length(body) FROM transcripts ORDER BY attempt")
	must(t, err)
	defer rows.Close()
	for rows.Next() {
		var n int
		must(t, rows.Scan(&n))
		sizes = append(sizes, n)
	}
	before, after := slices.Min(sizes[:5]), slices.Max(sizes[enough:])
	if 2*after > before {
		t.Errorf("transcripts take %d bytes without a dictionary and %d with one, want less than half",
			before, after)
	}
}
