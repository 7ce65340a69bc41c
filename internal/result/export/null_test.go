package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// TestFaultsHaveNoMeasures checks that a mean over attempts is a mean over outcomes in every
// format, and that a fault is read back without an outcome.
func TestFaultsHaveNoMeasures(t *testing.T) {
	t.Parallel()
	half := filled(t)
	half.Coverage = .5
	attempts := []assay.Attempt{half, fault()}
	var measures []string
	for f := range reflect.TypeFor[assay.Outcome]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "pilot" && name != "-" {
			measures = append(measures, name)
		}
	}

	var judged, faulted map[string]any
	lines := strings.Split(write(t, export.JSONL, attempts...), "\n")
	if err := errors.Join(json.Unmarshal([]byte(lines[0]), &judged),
		json.Unmarshal([]byte(lines[1]), &faulted)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(write(t, export.CSV, attempts...))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	file := write(t, export.Parquet, attempts...)
	nulls := nullsIn(t, []byte(file))

	for _, name := range measures {
		if value, ok := faulted[name]; value != nil || !ok || judged[name] == nil {
			t.Errorf("jsonl: %s is %v and %v, want a value and null", name, judged[name], value)
		}
		at := slices.Index(rows[0], name)
		if rows[1][at] == "" || rows[2][at] != "" {
			t.Errorf("csv: %s is %q and %q, want a value and nothing", name, rows[1][at], rows[2][at])
		}
		if nulls[name] != 1 {
			t.Errorf("parquet: %s has %d nulls, want 1", name, nulls[name])
		}
	}
	for _, c := range export.Describe(export.AttemptTable) {
		if slices.Contains(measures, c.Name) &&
			!(c.Nullable && strings.HasSuffix(c.Description, "; null for a fault.")) {
			t.Errorf("the manifest describes %s as %+v", c.Name, c)
		}
	}
}

// nullsIn counts the nulls in each column of a Parquet file.
func nullsIn(t *testing.T, file []byte) map[string]int64 {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	nulls := make(map[string]int64)
	for _, g := range f.Metadata().RowGroups {
		for _, c := range g.Columns {
			nulls[c.MetaData.PathInSchema[0]] += c.MetaData.Statistics.NullCount
		}
	}
	return nulls
}

// TestMistakesHaveNoLuck checks that means of chance and luck leave out mistakes, and that calls
// of faulted attempts have no level.
func TestMistakesHaveNoLuck(t *testing.T) {
	t.Parallel()
	spent, mistake, faulted := oneCall(), oneCall(), oneCall()
	spent.Level, mistake.Level, faulted.FaultKind = assay.Failure, assay.Failure, assay.Timeout
	mistake.Mistake = true
	calls := []export.Call{spent, mistake, faulted}
	want := []string{"failure 0 0", "failure <nil> <nil>", "<nil> 0 0"}
	for i, line := range strings.Split(strings.TrimSpace(
		writeCalls(t, export.JSONL, calls...)), "\n") {
		var c map[string]any
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(c["level"], " ", c["chance"], " ", c["luck"]); got != want[i] {
			t.Errorf("call %d has level, chance and luck %s, want %s", i, got, want[i])
		}
	}
	nulls := nullsIn(t, []byte(writeCalls(t, export.Parquet, calls...)))
	if nulls["level"] != 1 || nulls["chance"] != 1 || nulls["luck"] != 1 {
		t.Errorf("parquet: nulls %v, want one level, chance and luck", nulls)
	}
}
