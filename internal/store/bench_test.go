package store_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

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

// BenchmarkCompress compresses transcripts with a dictionary.
func BenchmarkCompress(b *testing.B) {
	db, _ := create(b, store.Options{})
	text, body := 0, 0
	compress := func(i int) {
		n, m, err := db.Compress(b.Context(), longTranscript(i))
		if err != nil {
			b.Fatal(err)
		}
		text, body = text+n, body+m
	}
	for i := range enough {
		compress(i)
	}
	text, body = 0, 0
	for i := 0; b.Loop(); i++ {
		compress(enough + i)
	}
	b.ReportMetric(100*float64(body)/float64(text), "%")
}

func BenchmarkSave(b *testing.B) {
	for _, goroutines := range []int{1, 25, 64} {
		b.Run(fmt.Sprint(goroutines, "-goroutines"), func(b *testing.B) {
			db, path := create(b, store.Options{})
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
			if err := db.Close(); err != nil {
				b.Fatal(err)
			}
			fi, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(fi.Size())/float64(b.N), "B/attempt")
		})
	}
}

// seed adds n settled trials to the store at path, faster than Save.
func seed(t testing.TB, path string, n int) {
	t.Helper()
	rawClosed(t, path, fmt.Sprintf(`PRAGMA synchronous = OFF; PRAGMA cache_size = -100000; BEGIN;
		INSERT INTO trials (id, model, variant, severity, difficulty, task_type, reliability, task,
			task_digest, repeat, seed, world, protocol, tools, turn_limit, sampling)
			WITH RECURSIVE c(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM c WHERE i < %d)
			SELECT randomblob(16), 'qwen2.5-7b-instruct', 'flawed_sequence_disorder', 'severe', 'easy',
			'data_pipeline', 0.8, 'task_' || i, '0123456789abcdef0123456789abcdef', 1, i, 'assay-1',
			'native', 'required', 10, '{}' FROM c;
		INSERT INTO attempts SELECT NULL, id, 1, 1, 0, 'v0.1.0', '89abcdef0123456789abcdef01234567',
			'azure-east/KEY/deployment', 'served', 'full_success', 'finished', '', 4, 4,
			'["file_operations_reader","data_processing_parser","file_operations_writer"]',
			'["file_operations_reader","data_processing_parser","file_operations_writer"]',
			1.0, 1, 0, 0.7512345, 0.5612345, 1, 2, 1, 3, 0.6612345, 0, 'repeat', 4, 0.8712345, '',
			'assay-1', '', '', 0, 4, '{}', 10000, 500, 0.001, 100, 9000,
			'2026-03-04T05:06:07.123456789Z', '2026-03-04T05:06:17.123456789Z',
			0, 0, 0, 0, '', '', '', 0.7512345, 0, '', 0, 0, 0, '', 0, 0
			FROM trials WHERE id NOT IN (SELECT trial FROM attempts) ORDER BY rowid;
		COMMIT`, n))
}

const seeded = 200_000

func BenchmarkSettled(b *testing.B) {
	db, path := create(b, store.Options{})
	seed(b, path, seeded)
	for b.Loop() {
		set, err := db.Settled(b.Context())
		if err != nil || set.Len() != seeded {
			b.Fatal(set.Len(), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*1e6/seeded, "ms/million")
}

// seedScores adds scores to the first n attempts of the store at path.
func seedScores(t testing.TB, path string, n int) {
	t.Helper()
	body, err := json.Marshal(better(1))
	if err != nil {
		t.Fatal(err)
	}
	rawClosed(t, path, fmt.Sprintf(`PRAGMA synchronous = OFF; PRAGMA cache_size = -100000;
		INSERT INTO scores (attempt, scored_at, program, body)
		SELECT id, '2026-03-04T05:06:07.123456789Z', 'v0.2.0', '%s'
		FROM attempts ORDER BY id LIMIT %d`, body, n))
}

// scored runs a benchmark on a seeded store with different numbers of rescored attempts.
func scored(b *testing.B, bench func(*testing.B, *store.DB)) {
	for _, n := range []int{0, 1000, seeded} {
		b.Run(fmt.Sprint(n, "-rescored"), func(b *testing.B) {
			db, path := create(b, store.Options{})
			seed(b, path, seeded)
			fi, err := os.Stat(path)
			if err != nil {
				b.Fatal(err)
			}
			size := fi.Size()
			if n > 0 {
				seedScores(b, path, n)
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

func BenchmarkOutcomes(b *testing.B) {
	scored(b, func(b *testing.B, db *store.DB) {
		n := 0
		for _, err := range db.Outcomes(b.Context()) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != seeded {
			b.Fatal(n)
		}
	})
}

func BenchmarkAttempts(b *testing.B) {
	scored(b, func(b *testing.B, db *store.DB) {
		n := 0
		for _, err := range db.Attempts(b.Context(), store.Filter{}) {
			if err != nil {
				b.Fatal(err)
			}
			n++
		}
		if n != seeded {
			b.Fatal(n)
		}
	})
}

// BenchmarkRescore reads attempts with their transcripts and stores an outcome for each.
func BenchmarkRescore(b *testing.B) {
	const n = 20_000
	db, path := create(b, store.Options{})
	seed(b, path, n-1)
	if err := db.Save(b.Context(), outcome(1), longTranscript(1)); err != nil {
		b.Fatal(err)
	}
	rawClosed(b, path, `INSERT INTO transcripts SELECT id, (SELECT body FROM transcripts)
		FROM attempts WHERE id NOT IN (SELECT attempt FROM transcripts)`)
	for b.Loop() {
		var batch []store.Rescored
		for s, err := range db.Transcripts(b.Context(), store.Filter{}) {
			if err != nil || s.Transcript == nil {
				b.Fatal(err)
			}
			if batch = append(batch, rescored(&s.Attempt, better(1))); len(batch) == 500 {
				rescore(b, db, batch...)
				batch = batch[:0]
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*1e6/n, "ms/million")
}

// BenchmarkSpent counts all attempts, or stops at the first because it is too old.
func BenchmarkSpent(b *testing.B) {
	db, path := create(b, store.Options{})
	seed(b, path, seeded)
	for name, since := range map[string]time.Time{"all": epoch, "none": epoch.AddDate(0, 0, 7)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := db.Spent(b.Context(), since); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N)*1e6/seeded,
				"ms/million")
		})
	}
}

func BenchmarkProfile(b *testing.B) {
	db, path := create(b, store.Options{})
	seed(b, path, seeded)
	for b.Loop() {
		if _, err := db.Profile(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkInsert measures the writer's own part of a save, in transactions of 256 attempts.
func BenchmarkInsert(b *testing.B) {
	db, _ := create(b, store.Options{})
	body := []byte(strings.Repeat("x", 600))
	const batch = 256
	var spent time.Duration
	for i := 0; i < b.N; i += batch {
		var attempts []*assay.Attempt
		for k := range min(batch, b.N-i) {
			attempts = append(attempts, outcome(i+k))
		}
		insert, err := db.Inserter(b.Context(), attempts, body)
		if err != nil {
			b.Fatal(err)
		}
		before := cpuTime(b)
		if err := insert(); err != nil {
			b.Fatal(err)
		}
		spent += cpuTime(b) - before
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N), "cpu-ns/op")
}

func cpuTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
