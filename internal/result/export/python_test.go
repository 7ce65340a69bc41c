package export_test

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// python returns a Python with the modules that the readers need, or skips the
// test. ASSAY_PYTHON names one that must have them.
func python(t *testing.T) string {
	t.Helper()
	named := os.Getenv("ASSAY_PYTHON")
	path := "python3"
	if named != "" {
		path = named
	}
	out, err := exec.CommandContext(t.Context(), path, "-c",
		"import pyarrow, pandas, duckdb").CombinedOutput()
	if err != nil && named != "" {
		t.Fatalf("ASSAY_PYTHON=%s lacks pyarrow, pandas or duckdb: %v\n%s", named, err, out)
	}
	if err != nil {
		t.Skipf("%s has not pyarrow, pandas and duckdb; ASSAY_PYTHON may name one that has: %v",
			path, err)
	}
	return path
}

// readings is the output of testdata/readers.py.
type readings struct {
	Versions map[string]string
	Types    map[string][]string
	Metadata map[string]string
	Rows     int
	Coverage map[string]float64
	Problems []string
	PyArrow  map[string]int64
	Pandas   map[string]int64
	DuckDB   map[string]int64
}

func TestPythonReadsParquet(t *testing.T) {
	path := python(t)
	origin := export.Origin{Program: "1.2.3", Snapshot: "5-abc"}
	attempts := append(slices.Collect(only(likely(3000))), filled(t), fault())
	calls := slices.Repeat([]export.Call{oneCall(), filledCall(t)}, 700)
	var covered, outcomes float64
	for _, a := range attempts {
		if a.Settles() {
			covered, outcomes = covered+a.Coverage, outcomes+1
		}
	}
	for table, file := range map[export.Table]struct {
		write func(io.Writer) (int, error)
		rows  int
		sums  map[string]int64
	}{
		export.AttemptTable: {
			func(w io.Writer) (int, error) {
				return origin.Write(w, export.Parquet, sequence(attempts...))
			},
			len(attempts), sums(t, attempts),
		},
		export.CallTable: {
			func(w io.Writer) (int, error) {
				return origin.WriteCalls(w, export.Parquet, sequence(calls...))
			},
			len(calls), sums(t, calls),
		},
	} {
		t.Run(string(table), func(t *testing.T) {
			var b bytes.Buffer
			if _, err := file.write(&b); err != nil {
				t.Fatal(err)
			}
			name := filepath.Join(t.TempDir(), "x.parquet")
			if err := os.WriteFile(name, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			got := readings{}
			readWith(t, path, name, export.Describe(table), &got)
			t.Logf("%v: %d rows; types %v", got.Versions, got.Rows, got.Types)
			for _, problem := range got.Problems {
				t.Error(problem)
			}
			if got.Rows != file.rows {
				t.Errorf("%d rows, want %d", got.Rows, file.rows)
			}
			for reader, mean := range got.Coverage {
				if want := covered / outcomes; math.Abs(mean-want) > 1e-9 {
					t.Errorf("%s: mean coverage %.4f, want %.4f", reader, mean, want)
				}
			}
			if table == export.AttemptTable && len(got.Coverage) != 2 {
				t.Errorf("mean coverage by %v, want by pandas and duckdb", got.Coverage)
			}
			want := map[string]string{
				"assay.table": string(table), "assay.format_version": "1",
				"assay.program": "1.2.3", "assay.snapshot": "5-abc",
			}
			if !maps.Equal(got.Metadata, want) {
				t.Errorf("metadata = %v, want %v", got.Metadata, want)
			}
			for reader, sums := range map[string]map[string]int64{
				"pyarrow": got.PyArrow,
				"pandas":  got.Pandas, "duckdb": got.DuckDB,
			} {
				if diff := cmp.Diff(file.sums, sums); diff != "" {
					t.Errorf("sums of %s (-written +read):\n%s", reader, diff)
				}
			}
		})
	}
}

func readWith(t *testing.T, python, file string, columns []export.Column, got *readings) {
	t.Helper()
	task, err := json.Marshal(map[string]any{"file": file, "columns": columns})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, filepath.Join("testdata", "readers.py"))
	cmd.Stdin = bytes.NewReader(task)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("readers.py: %v\n%s", err, stderr.Bytes())
	}
	if err := json.Unmarshal(out, got); err != nil {
		t.Fatalf("readers.py: %v\n%s", err, out)
	}
}

// sums adds up the fields of records like sums_of in readers.py: fractions in
// millionths, texts and lists by length, times in nanoseconds and nulls by
// number, all modulo 2^64. Fields have their JSON names, with the prefix "pilot_" for the fields of
// pilot.
func sums[R any](t *testing.T, records []R) map[string]int64 {
	t.Helper()
	total := make(map[string]int64)
	for i := range records {
		addFields(t, total, "", reflect.ValueOf(records[i]))
	}
	return total
}

// addNulls counts the fields of a struct as nulls.
func addNulls(total map[string]int64, prefix string, typ reflect.Type) {
	for f := range typ.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if f.Type == reflect.TypeFor[*assay.PilotScores]() {
			addNulls(total, "pilot_", f.Type.Elem())
			continue
		}
		total[prefix+name+" null"]++
	}
}

func addFields(t *testing.T, total map[string]int64, prefix string, v reflect.Value) {
	t.Helper()
	for f, field := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		switch x := field.Interface().(type) {
		case assay.Outcome:
			if x.Level == "" {
				addNulls(total, "", f.Type)
			} else {
				addFields(t, total, "", field)
			}
		case assay.Level:
			if name == "level" && x == "" { // a call of a faulted attempt
				total["level null"]++
			} else {
				total[prefix+name] += int64(len(x))
			}
		case time.Time:
			if x.IsZero() {
				total[prefix+name+" null"]++
			} else {
				total[prefix+name] += x.UnixNano()
			}
		case assay.Sampling, map[assay.FaultKind]int:
			b, err := json.Marshal(x)
			if err != nil {
				t.Fatal(err)
			}
			if string(b) == "null" {
				b = []byte("{}")
			}
			total[prefix+name] += int64(len(b))
		case []string:
			total[prefix+name] += 0
			for _, s := range x {
				total[prefix+name] += int64(len(s)) + 1
			}
		case *assay.PilotScores:
			if x != nil {
				addFields(t, total, "pilot_", reflect.ValueOf(*x))
			} else {
				addNulls(total, "pilot_", field.Type().Elem())
			}
		case *float64:
			if x == nil {
				total[prefix+name+" null"]++
			} else {
				total[prefix+name] += millionths(*x)
			}
		default:
			if f.Anonymous {
				addFields(t, total, "", field)
				break
			}
			total[prefix+name] += scalar(t, field)
		}
	}
}

func scalar(t *testing.T, v reflect.Value) int64 {
	t.Helper()
	switch {
	case v.Kind() == reflect.Bool && v.Bool():
		return 1
	case v.Kind() == reflect.Bool:
		return 0
	case v.Kind() == reflect.String:
		return int64(v.Len())
	case v.CanInt():
		return v.Int()
	case v.CanUint():
		return int64(v.Uint())
	case v.CanFloat():
		return millionths(v.Float())
	}
	t.Fatalf("no sum for a field of type %v", v.Type())
	return 0
}

// millionths rounds halves to even, like Python.
func millionths(v float64) int64 { return int64(math.RoundToEven(v * 1e6)) }
