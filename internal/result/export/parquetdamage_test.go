package export_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// TestDamagedParquet checks that a file that is truncated or has one changed
// byte gives an error, or the original attempts if the byte does not matter,
// but never anything else.
func TestDamagedParquet(t *testing.T) {
	t.Parallel()
	want := []assay.Attempt{filled(t), fault()}
	whole := []byte(write(t, export.Parquet, want...))
	step := 1
	if testing.Short() {
		step = 16
	}
	for n := 4; n < len(whole); n += 97 * step {
		if got, err := collect(export.Read(bytes.NewReader(whole[:n]))); err == nil {
			t.Fatalf("truncated to %d of %d bytes: read %d attempts", n, len(whole), len(got))
		}
	}
	quiet := 0
	for i := 4; i < len(whole); i += 29 * step {
		damaged := slices.Clone(whole)
		damaged[i] ^= 0x11
		got, err := collect(export.Read(bytes.NewReader(damaged)))
		if err == nil && !cmp.Equal(want, got) {
			quiet++
			t.Logf("byte %d of %d: %s", i, len(whole), cmp.Diff(want, got))
		}
	}
	if quiet > 0 {
		t.Errorf("%d changed bytes gave other attempts without an error", quiet)
	}
}

func TestReadParquetRefuses(t *testing.T) {
	t.Parallel()
	type row struct {
		Trial string `parquet:"trial"`
		Lane  int64  `parquet:"lane"`
	}
	rows := func(options ...parquet.WriterOption) string {
		var b bytes.Buffer
		if err := parquet.Write(&b, []row{{"t", 1}}, options...); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var calls bytes.Buffer
	if _, err := (export.Origin{}).WriteCalls(&calls, export.Parquet, sequence(oneCall())); err != nil {
		t.Fatal(err)
	}
	both := filled(t)
	both.FaultKind = assay.Network
	for name, tc := range map[string]struct{ text, want string }{
		"only magic":  {"PAR1", "read attempts: the file is truncated"},
		"magic twice": {"PAR1PAR1PAR1PAR1", "read attempts: the file is truncated"},
		"missing":     {rows(), "missing column attempt"},
		"calls":       {calls.String(), `unknown column "turn"`},
		"both": {
			write(t, export.Parquet, fault(), both),
			"row 2: level partial_success and fault network are both set",
		},
	} {
		_, err := collect(export.Read(strings.NewReader(tc.text)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: Read() error = %v, want it to contain %q", name, err, tc.want)
		}
	}
}

// bare hides the compression that a file's schema specifies.
type bare struct{ parquet.Field }

func (bare) Compression() compress.Codec { return nil }

func (b bare) Fields() []parquet.Field { return bareFields(b.Field) }

type bareRoot struct{ parquet.Node }

func (b bareRoot) Fields() []parquet.Field { return bareFields(b.Node) }

func bareFields(n parquet.Node) []parquet.Field {
	fields := slices.Clone(n.Fields())
	for i := range fields {
		fields[i] = bare{fields[i]}
	}
	return fields
}

// rewritten returns a file with the same content and another codec. If short is
// a column, it lacks one value in it.
func rewritten(t *testing.T, file string, codec compress.Codec, short string) string {
	t.Helper()
	f, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	columns := make([][]parquet.Value, len(f.Schema().Columns()))
	rows := make([]parquet.Row, f.NumRows())
	reader := f.RowGroups()[0].Rows()
	defer reader.Close()
	if n, err := reader.ReadRows(rows); n != len(rows) {
		t.Fatal(n, err)
	}
	for _, row := range rows {
		for i, values := range row.Range {
			columns[i] = append(columns[i], values...)
		}
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[any](&b, parquet.NewSchema("other", bareRoot{f.Schema()}),
		parquet.Compression(codec))
	for i, leaf := range w.ColumnWriters() {
		if f.Schema().Columns()[i][0] == short {
			columns[i] = columns[i][:len(columns[i])-1]
		}
		if _, err := leaf.WriteRowValues(columns[i]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestReadRewrittenParquet(t *testing.T) {
	t.Parallel()
	want := []assay.Attempt{filled(t), fault()}
	file := write(t, export.Parquet, want...)
	got, err := collect(export.Read(strings.NewReader(rewritten(t, file, &parquet.Zstd, ""))))
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("rewritten file: %v (-want +got):\n%s", err, diff)
	}
	for want, text := range map[string]string{
		"row 2: column lane: missing value": rewritten(t, file, &parquet.Zstd, "lane"),
		"row 2: column finished_at: missing value": rewritten(t, file,
			&parquet.Zstd, "finished_at"),
		"column trial: unsupported compression SNAPPY, want ZSTD": rewritten(t, file, &parquet.Snappy, ""),
	} {
		_, err := collect(export.Read(strings.NewReader(text)))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read() error = %v, want it to contain %q", err, want)
		}
	}
}

func FuzzParquet(f *testing.F) {
	f.Add([]byte(write(f, export.Parquet)))
	f.Add([]byte(write(f, export.Parquet, fault(), filled(f))))
	f.Add([]byte("PAR1\x15\x00PAR1"))
	f.Fuzz(func(t *testing.T, file []byte) {
		file = append([]byte("PAR1"), file...)
		if len(file) >= 8 && string(file[4:8]) == "PAR1" {
			file = file[4:]
		}
		first, err := collect(export.Read(bytes.NewReader(file)))
		if err != nil || len(first) == 0 {
			return
		}
		// Attempts that were read once must be the same after writing and
		// reading them again.
		text := write(t, export.Parquet, first...)
		second, err := collect(export.Read(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		text2 := write(t, export.Parquet, second...)
		if text != text2 {
			t.Fatalf("-first +second:\n%s", cmp.Diff(first, second))
		}
	})
}
