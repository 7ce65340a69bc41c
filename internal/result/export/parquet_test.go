package export_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// likely returns n attempts as in a large experiment: few models and
// tasks, different identities and times, and two faults in a hundred attempts.
func likely(n int) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		rng := rand.New(rand.NewPCG(1, 2))
		pick := func(prefix string, n int) string { return fmt.Sprint(prefix, rng.IntN(n)) }
		tools := []string{
			"fetch_records", "validate_schema", "transform_rows",
			"aggregate", "write_report",
		}
		at := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		temperature := 0.0
		for i := range n {
			var id [16]byte
			for j := range id {
				id[j] = byte(rng.Uint32())
			}
			at = at.Add(time.Duration(rng.Int64N(int64(time.Second))))
			required := tools[:1+rng.IntN(len(tools))]
			given := float64(rng.IntN(20)) / 20
			a := assay.Attempt{
				Trial: assay.Trial{
					ID: assay.TrialID(hex.EncodeToString(id[:])),
					Cell: assay.Cell{
						Model: pick("model-", 10), Variant: pick("variant-", 4),
						Severity: pick("severity-", 3), Difficulty: pick("level-", 3),
						TaskType: pick("type-", 5), Reliability: float64(5+rng.IntN(6)) / 10,
					},
					Task:       assay.TaskID(pick("task-", 1000)),
					TaskDigest: pick("0123456789abcdef-", 1000), Repeat: 1 + rng.IntN(10),
					Seed: rng.Uint64() >> 11,
					Setting: assay.Setting{
						World: "assay-1", Protocol: "native", Tools: "all",
						Turns: 10, Sampling: assay.Sampling{Temperature: &temperature},
					},
				},
				Number: 1, Experiment: "large", Run: assay.RunID(pick("run-", 20)),
				Program: "1.2.3", Templates: "fedcba9876543210",
				Lane: pick("gateway/key/deployment-", 40), ServedModel: pick("model-", 10),
				Requests: 4 + rng.IntN(9),
				Spend: assay.NewSpend(
					assay.Usage{InputTokens: 3000 + rng.IntN(20000), OutputTokens: rng.IntN(3000)},
					float64(rng.IntN(100000))/1e6),
				QueuedMS: rng.Int64N(5000), WorkingMS: 1000 + rng.Int64N(60000), StartedAt: at,
				FinishedAt: at.Add(time.Duration(rng.Int64N(int64(time.Minute)))),
			}
			if i%50 == 0 {
				a.FaultKind, a.FaultDetail = assay.Timeout, pick("no answer within 60 s: ", 1e9)
				a.Retried = map[assay.FaultKind]int{assay.Timeout: 3, assay.RateLimited: 1}
			} else {
				a.Level, a.Ended = assay.Levels[rng.IntN(3)], assay.Finished
				a.RequiredTools, a.ExecutedTools = required, slices.Clone(required)
				a.Turns, a.ToolCalls = 1+rng.IntN(10), rng.IntN(12)
				a.ErrorCategory = pick("category_", 8)
				a.Coverage, a.Adherence, a.GivenAdherence = given, given, &given
				a.Efficiency, a.Best = rng.Float64(), float64(rng.IntN(1000))/1000
				a.ScoreVersion = "assay-1/3"
			}
			if !yield(a, nil) {
				return
			}
		}
	}
}

// columnTypes lists the physical and logical types of a file's columns.
func columnTypes(t *testing.T, file []byte) string {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, path := range f.Schema().Columns() {
		leaf, _ := f.Schema().Lookup(path...)
		fmt.Fprintf(&b, "%s %v %v %d\n", strings.Join(path, "."), leaf.Node.Type().Kind(),
			leaf.Node.Type(), leaf.MaxDefinitionLevel)
	}
	return b.String()
}

func TestParquetSchema(t *testing.T) {
	t.Parallel()
	got := columnTypes(t, []byte(write(t, export.Parquet)))
	for i, line := range strings.Split(strings.TrimSpace(got), "\n") {
		if name, _, _ := strings.Cut(strings.Fields(line)[0], "."); name != export.Columns()[i] {
			t.Errorf("column %d is %s, want %s", i, name, export.Columns()[i])
		}
	}
	for _, want := range []string{
		"trial BYTE_ARRAY STRING 0", "reliability DOUBLE DOUBLE 0", "seed INT64 INT(64,true) 0",
		"turns INT64 INT(64,true) 1", "repeat INT64 INT(64,true) 0",
		"sampling BYTE_ARRAY JSON 0", "required_tools.list.element BYTE_ARRAY STRING 2",
		"order_correct BOOLEAN BOOLEAN 1",
		"given_adherence DOUBLE DOUBLE 1", "pilot_executor BYTE_ARRAY STRING 1",
		"pilot_final_score DOUBLE DOUBLE 1",
		"retried BYTE_ARRAY JSON 0",
		"started_at INT64 TIMESTAMP(isAdjustedToUTC=true,unit=NANOS) 1",
	} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no column %q in\n%s", want, got)
		}
	}
}

func TestParquetMetadata(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	if _, err := (export.Origin{Program: "1.2.3", Snapshot: "5-abc"}).Write(&b, export.Parquet,
		sequence(fault())); err != nil {
		t.Fatal(err)
	}
	f, err := parquet.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"assay.table": "attempts", "assay.format_version": "1",
		"assay.program": "1.2.3", "assay.snapshot": "5-abc",
	} {
		if got, ok := f.Lookup(key); got != want || !ok {
			t.Errorf("metadata %s = %q, %v, want %q", key, got, ok, want)
		}
	}
	for _, c := range f.Metadata().RowGroups[0].Columns {
		if got := c.MetaData.Codec.String(); got != "ZSTD" {
			t.Errorf("column %v is compressed with %s, want ZSTD", c.MetaData.PathInSchema, got)
		}
	}
}

// TestParquetOfManyRows checks that all rows are there and in order across row
// groups and batches.
func TestParquetOfManyRows(t *testing.T) {
	const n = 2345
	defer export.SetGroupRows(2000)()
	path := filepath.Join(t.TempDir(), "attempts.parquet")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got, err := export.Write(file, export.Parquet, likely(n)); got != n || err != nil {
		t.Fatalf("Write() = %d, %v, want %d, nil", got, err, n)
	}
	if info, err := file.Stat(); err != nil {
		t.Fatal(err)
	} else if f, err := parquet.OpenFile(file, info.Size()); err != nil || len(f.RowGroups()) != 2 {
		t.Fatalf("%d row groups, %v, want 2", len(f.RowGroups()), err)
	}
	columns := export.Describe(export.AttemptTable)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	want := jsonRows(t, []byte(write(t, export.JSONL, slices.Collect(only(likely(n)))...)), columns)
	if diff := cmp.Diff(want, parquetRows(t, text, columns)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParquetRefuses(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*assay.Attempt){
		"started_at: 3000-01-01": func(a *assay.Attempt) {
			a.StartedAt = time.Date(3000, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		"finished_at: 1500": func(a *assay.Attempt) {
			a.FinishedAt = time.Date(1500, 1, 1, 0, 0, 0, 0, time.UTC)
		},
		"seed: 9223372036854775808 is above 2^63-1": func(a *assay.Attempt) { a.Seed = 1 << 63 },
		"cost_usd: NaN": func(a *assay.Attempt) { a.CostUSD /= a.CostUSD },
	} {
		a := fault()
		change(&a)
		n, err := export.Write(io.Discard, export.Parquet, sequence(fault(), a))
		if n != 0 || err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("Write() = %d, %v, want 0 and %q", n, err, name)
		}
	}
}

func TestParquetTextIsUTF8(t *testing.T) {
	t.Parallel()
	a := filled(t)
	a.Model, a.RequiredTools = "a\xff\xfeb", []string{"\xc3"}
	got := parquetRows(t, []byte(write(t, export.Parquet, a)), export.Describe(export.AttemptTable))[0]
	if got["model"] != "a\ufffd\ufffdb" || got["required_tools"] != "[\"\ufffd\"]" {
		t.Errorf("model %q, required_tools %s, want a replacement character for each invalid byte",
			got["model"], got["required_tools"])
	}
}

func only(seq iter.Seq2[assay.Attempt, error]) iter.Seq[assay.Attempt] {
	return func(yield func(assay.Attempt) bool) {
		for a := range seq {
			if !yield(a) {
				return
			}
		}
	}
}

// TestParquetMemory checks that Write's memory does not grow with the number of
// attempts.
func TestParquetMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 300,000 attempts")
	}
	defer debug.SetGCPercent(debug.SetGCPercent(100)) // the default, whatever the tests have
	const n, bound = 300_000, 250 << 20
	var most uint64
	seen := 0
	_, err := export.Write(io.Discard, export.Parquet, func(yield func(assay.Attempt, error) bool) {
		for a := range likely(n) {
			if seen++; seen%10_000 == 0 {
				var m runtime.MemStats
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
			if !yield(a, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("heap of at most %d MB while writing %d attempts", most>>20, n)
	if most > bound {
		t.Errorf("heap of %d MB, want at most %d MB", most>>20, bound>>20)
	}
}

// BenchmarkParquet should take at most 6 µs of one core per attempt, so that a
// million takes 6 s.
func BenchmarkParquet(b *testing.B) {
	const n = 100_000
	attempts := slices.Collect(only(likely(n)))
	b.Run("write", func(b *testing.B) {
		for b.Loop() {
			if _, err := export.Write(io.Discard, export.Parquet,
				sequence(attempts...)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/row")
	})
}
