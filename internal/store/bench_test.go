package store_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// longTranscript returns a transcript about as large as one of ten turns with ten tools.
func longTranscript(i int) *assay.Transcript {
	t := transcript(i)
	t.Messages[0].Content = strings.Repeat("file_operations_reader: reads the content of a file and returns it as text. ", 40)
	for turn := range 10 {
		id := fmt.Sprintf("call_%d_%d", i, turn)
		t.Messages = append(t.Messages,
			assay.Message{
				Role: assay.Assistant,
				Content: fmt.Sprintf("Step %d of the workflow for item %d: read, then validate.",
					turn, i*7919%1000), Calls: []assay.ToolCall{{
					ID: id, Name: "file_operations_reader",
					Arguments: fmt.Sprintf(`{"source":"/data/input_%d.json","options":{"limit":%d}}`,
						i*31+turn, turn),
				}},
			},
			assay.Message{
				Role: assay.ToolRole, CallID: id,
				Content: fmt.Sprintf(`{"status":"success","rows":%d,"checksum":"%x","message":"processed without errors"}`, i*turn, i*104729+turn),
			})
		t.Calls = append(t.Calls, t.Calls[0])
		t.Turns = append(t.Turns, t.Turns[0])
	}
	return t
}

func BenchmarkSave(b *testing.B) {
	for _, goroutines := range []int{1, 25, 64} {
		b.Run(fmt.Sprint(goroutines, "-goroutines"), func(b *testing.B) {
			db, path := create(b)
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ResetTimer()
			for range goroutines {
				wg.Go(func() {
					for i := int(next.Add(1)); i <= b.N; i = int(next.Add(1)) {
						if err := db.Save(b.Context(), outcome(i), longTranscript(i)); err != nil {
							b.Error(err)
						}
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "saves/s")
			must(b, db.Close())
			fi, err := os.Stat(path)
			must(b, err)
			b.ReportMetric(float64(fi.Size())/float64(b.N), "B/attempt")
		})
	}
}

// seed adds n settled trials to a store, faster than Save.
func seed(t testing.TB, db *store.DB, n int) {
	t.Helper()
	const first, step = 1_000_000, 10_000
	for done := 0; done < n; done += step {
		attempts := make([]*assay.Attempt, min(step, n-done))
		for i := range attempts {
			attempts[i] = outcome(first + done + i)
		}
		insert, err := db.Inserter(t.Context(), attempts, nil)
		if err == nil {
			err = insert()
		}
		must(t, err)
	}
}

const seeded = 200_000

func BenchmarkSettled(b *testing.B) {
	db, _ := create(b)
	seed(b, db, seeded)
	for b.Loop() {
		set, err := db.Settled(b.Context())
		if err != nil || set.Len() != seeded {
			b.Fatal(set.Len(), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*1e6/seeded, "ms/million")
}

// saveAll saves outcomes from the first to the last, each with a transcript.
func saveAll(t testing.TB, db *store.DB, first, last int) {
	t.Helper()
	var saving sync.WaitGroup
	var next atomic.Int64
	next.Store(int64(first) - 1)
	for range 20 {
		saving.Go(func() {
			for i := int(next.Add(1)); i <= last; i = int(next.Add(1)) {
				if err := db.Save(t.Context(), outcome(i), longTranscript(1)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	saving.Wait()
}

// seedScores adds scores to the first n attempts of a store.
func seedScores(t testing.TB, db *store.DB, n int) {
	t.Helper()
	var batch []store.Rescored
	for a, err := range db.Attempts(t.Context(), store.Filter{}) {
		must(t, err)
		batch = append(batch, rescored(&a, better(1)))
		if n--; n == 0 || len(batch) == 10_000 {
			rescore(t, db, batch...)
			batch = batch[:0]
		}
		if n == 0 {
			break
		}
	}
}

// scored runs a benchmark on a seeded store with different numbers of rescored attempts.
func scored(b *testing.B, bench func(*testing.B, *store.DB)) {
	for _, n := range []int{0, 1000, seeded} {
		b.Run(fmt.Sprint(n, "-rescored"), func(b *testing.B) {
			db, path := create(b)
			seed(b, db, seeded)
			fi, err := os.Stat(path)
			must(b, err)
			size := fi.Size()
			if n > 0 {
				seedScores(b, db, n)
			}
			if fi, err = os.Stat(path); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				bench(b, db)
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*1e6/seeded,
				"ms/million")
			b.ReportMetric(float64(size)/seeded, "B/attempt")
			b.ReportMetric(float64(fi.Size()-size)/float64(max(1, n)), "B/score")
		})
	}
}

func BenchmarkAttempts(b *testing.B) {
	scored(b, func(b *testing.B, db *store.DB) {
		n := 0
		for _, err := range db.Attempts(b.Context(), store.Filter{}) {
			must(b, err)
			n++
		}
		if n != seeded {
			b.Fatal(n)
		}
	})
}
