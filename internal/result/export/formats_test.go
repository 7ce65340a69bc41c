package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// A row has the values of a record by column, as text. It lacks columns that are null or empty,
// which CSV does not tell apart.
type row map[string]string

// add adds a value in the form that all formats share. Numbers and JSON have several spellings.
func (r row) add(t rapid.TB, c export.Column, text string) {
	t.Helper()
	switch {
	case text == "":
		return
	case c.Type == "double":
		x, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		text = strconv.FormatFloat(x, 'g', -1, 64)
	case c.Type == "json", c.Type == "list<string>":
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatalf("%s: %v", c.Name, err)
		}
		text = string(b)
	}
	r[c.Name] = text
}

// readers read the rows of a file without the code of this package.
var readers = map[export.Format]func(t rapid.TB, file []byte, columns []export.Column) []row{
	export.JSONL: jsonRows, export.CSV: csvRows, export.Parquet: parquetRows,
}

func jsonRows(t rapid.TB, file []byte, columns []export.Column) (rows []row) {
	t.Helper()
	for line := range bytes.Lines(file) {
		var fields, pilot map[string]json.RawMessage
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		if inner := fields["pilot"]; inner != nil {
			if err := json.Unmarshal(inner, &pilot); err != nil {
				t.Fatal(err)
			}
		}
		r := make(row)
		for _, c := range columns {
			value := fields[c.Name]
			if name, found := strings.CutPrefix(c.Name, "pilot_"); found {
				value = pilot[name]
			}
			text := string(value)
			if len(value) > 0 && value[0] == '"' {
				if err := json.Unmarshal(value, &text); err != nil {
					t.Fatal(err)
				}
			}
			if text != "null" && value != nil {
				r.add(t, c, text)
			}
		}
		rows = append(rows, r)
	}
	return rows
}

// unescaper undoes the escapes that keep a record on its line.
var unescaper = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")

func csvRows(t rapid.TB, file []byte, columns []export.Column) (rows []row) {
	t.Helper()
	all, err := csv.NewReader(bytes.NewReader(file)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, cells := range all[1:] {
		r := make(row)
		for i, c := range columns {
			switch {
			case all[0][i] != c.Name:
				t.Fatalf("column %d is %s, want %s", i, all[0][i], c.Name)
			case c.Type == "string":
				r.add(t, c, unescaper.Replace(cells[i]))
			default:
				r.add(t, c, cells[i])
			}
		}
		rows = append(rows, r)
	}
	return rows
}

func parquetRows(t rapid.TB, file []byte, columns []export.Column) (rows []row) {
	t.Helper()
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range f.RowGroups() {
		in := group.Rows()
		buffer := make([]parquet.Row, group.NumRows())
		n, err := in.ReadRows(buffer)
		if err := errors.Join(err, in.Close()); n != len(buffer) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("read %d of %d rows: %v", n, len(buffer), err)
		}
		for _, one := range buffer {
			r := make(row)
			for i, values := range one.Range {
				if text, ok := parquetText(t, columns[i], values); ok {
					r.add(t, columns[i], text)
				}
			}
			rows = append(rows, r)
		}
	}
	return rows
}

// parquetText returns the value of a column, and false if it is null.
func parquetText(t rapid.TB, c export.Column, values []parquet.Value) (text string, ok bool) {
	t.Helper()
	first := values[0]
	switch {
	case c.Type == "list<string>":
		list := []string{}
		for _, v := range values {
			if !v.IsNull() {
				list = append(list, string(v.ByteArray()))
			}
		}
		b, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return string(b), len(list) > 0 || first.DefinitionLevel() > 0
	case c.Type == "timestamp" && first.IsNull():
		return "0001-01-01T00:00:00Z", true
	case c.Type == "timestamp":
		return time.Unix(0, first.Int64()).UTC().Format(time.RFC3339Nano), true
	case first.IsNull():
		return "", false
	case c.Type == "int64":
		return strconv.FormatInt(first.Int64(), 10), true
	case c.Type == "double":
		return strconv.FormatFloat(first.Double(), 'g', -1, 64), true
	case c.Type == "bool":
		return strconv.FormatBool(first.Boolean()), true
	}
	return string(first.ByteArray()), true
}

// TestFormatsAgree checks that other programs read the same values from each format, that texts
// have a line for each record, and that attempts are read back from JSON lines as they were.
func TestFormatsAgree(t *testing.T) {
	t.Parallel()
	checkAttempts(t)
	checkAttempts(t, filled(t), fault())
	checkCalls(t)
	checkCalls(t, filledCall(t), oneCall())
	rapid.Check(t, func(t *rapid.T) {
		checkAttempts(t, rapid.SliceOfN(rapid.Custom(drawAttempt), 0, 5).Draw(t, "attempts")...)
		most := rapid.SampledFrom([]int{6, 600}).Draw(t, "most")
		checkCalls(t, rapid.SliceOfN(rapid.Custom(drawCall), 0, most).Draw(t, "calls")...)
	})
}

func checkAttempts(t rapid.TB, all ...assay.Attempt) {
	t.Helper()
	var lines bytes.Buffer
	checkFormats(t, export.AttemptTable, len(all), func(w io.Writer, f export.Format) (int, error) {
		if f == export.JSONL {
			w = io.MultiWriter(w, &lines)
		}
		return export.Write(w, f, sequence(all...))
	})
	got, err := collect(export.Read(&lines))
	if diff := cmp.Diff(all, got, emptyIsNil); diff != "" || err != nil {
		t.Fatalf("Read: %v (-want +got):\n%s", err, diff)
	}
}

func checkCalls(t rapid.TB, all ...export.Call) {
	t.Helper()
	checkFormats(t, export.CallTable, len(all), func(w io.Writer, f export.Format) (int, error) {
		return export.Origin{}.WriteCalls(w, f, sequence(all...))
	})
}

// emptyIsNil compares lists and maps that have no elements as equal.
var emptyIsNil = cmp.FilterValues(func(a, b any) bool {
	x, y := reflect.ValueOf(a), reflect.ValueOf(b)
	return x.IsValid() && y.IsValid() && x.Type() == y.Type() &&
		(x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Len() == 0 && y.Len() == 0
}, cmp.Comparer(func(any, any) bool { return true }))

func checkFormats(
	t rapid.TB, table export.Table, records int, write func(io.Writer, export.Format) (int, error),
) {
	t.Helper()
	var want []row
	for _, format := range export.Formats { // JSON lines are first
		var b bytes.Buffer
		if n, err := write(&b, format); n != records || err != nil {
			t.Fatalf("%s: wrote %d, %v, want %d, nil", format, n, err, records)
		}
		lines := records
		if format == export.CSV {
			lines++
		}
		if got := bytes.Count(b.Bytes(), []byte{'\n'}); format != export.Parquet && got != lines {
			t.Fatalf("%s: %d lines, want one for each of %d records", format, got, records)
		}
		rows := readers[format](t, b.Bytes(), export.Describe(table))
		if format == export.JSONL {
			want = rows
		} else if diff := cmp.Diff(want, rows); diff != "" {
			t.Fatalf("%s (-jsonl +%s):\n%s", format, format, diff)
		}
	}
}
