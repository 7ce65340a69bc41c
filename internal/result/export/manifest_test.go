package export_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// exported writes both tables in all formats to a directory and returns their
// manifest.
func exported(t *testing.T) (dir string, m export.Manifest) {
	t.Helper()
	dir = t.TempDir()
	m = export.Manifest{
		FormatVersion: export.Version, Program: "1.2.3",
		CreatedAt: time.Date(2026, 3, 4, 5, 6, 7, 8, time.UTC), Snapshot: "3-abc",
		Store: "assay.db",
		Filter: export.Filter{
			Experiment: "a<b",
			Where:      []string{"model=a b", "level!=failure"},
		},
		Columns: append(export.Describe(export.AttemptTable), export.Describe(export.CallTable)...),
	}
	origin := export.Origin{Program: m.Program, Snapshot: m.Snapshot}
	retry := fault()
	retry.Number = 2
	for _, format := range export.Formats {
		m.Counts = export.Counts{}
		create(t, dir, &m, "attempts."+string(format), format, export.AttemptTable,
			func(w io.Writer) (int, error) {
				return origin.Write(w, format, m.Counts.Count(sequence(fault(), filled(t), retry)))
			})
		create(t, dir, &m, "calls."+string(format), format, export.CallTable,
			func(w io.Writer) (int, error) {
				return origin.WriteCalls(w, format, sequence(oneCall(), filledCall(t)))
			})
	}
	return dir, m
}

func create(t *testing.T, dir string, m *export.Manifest, name string, format export.Format,
	table export.Table, write func(io.Writer) (int, error),
) {
	t.Helper()
	path := filepath.Join(dir, name)
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	d := export.NewDigest(file)
	n, err := write(d)
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	m.Files = append(m.Files, d.File(filepath.Join(dir, "manifest.json"), path, format, table, n))
}

func TestManifestJSONNames(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	m := export.Manifest{
		FormatVersion: 1, Files: []export.File{{}}, Columns: []export.Column{{}},
		Filter: export.Filter{Experiment: "e", Run: "r", Since: "1-a", Where: []string{"model=m"}},
	}
	if err := m.Write(&b); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Files, Columns          []json.RawMessage
		Counts, Filter, Missing json.RawMessage
	}
	if err := json.Unmarshal(b.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ name, object, want string }{
		{
			"manifest", b.String(),
			"format_version program created_at snapshot store filter files columns counts missing",
		},
		{"file", string(got.Files[0]), "name format table rows bytes sha256"},
		{"column", string(got.Columns[0]), "table name type nullable description"},
		{"counts", string(got.Counts), "attempts outcomes faults superseded interrupted trials"},
		{"missing", string(got.Missing), "attempts transcripts transcripts_not_kept"},
		{"filter", string(got.Filter), "experiment run since where"},
	} {
		if names := strings.Join(keysInOrder(t, tc.object), " "); names != tc.want {
			t.Errorf("fields of %s = %s, want %s", tc.name, names, tc.want)
		}
	}
}

func TestManifestRoundTrip(t *testing.T) {
	t.Parallel()
	dir, want := exported(t)
	var b bytes.Buffer
	if err := want.Write(&b); err != nil {
		t.Fatal(err)
	}
	got, err := export.ReadManifest(&b)
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("ReadManifest() error %v (-want +got):\n%s", err, diff)
	}
	if want := (export.Counts{Attempts: 3, Superseded: 1, Faults: 2, Trials: 2}); got.Counts != want {
		t.Errorf("counts = %+v, want %+v", got.Counts, want)
	}
	if err := got.Verify(t.Context(), dir); err != nil {
		t.Errorf("Verify() = %v", err)
	}
}

func TestCountPassesOnErrors(t *testing.T) {
	t.Parallel()
	var c export.Counts
	all, err := collect(c.Count(func(yield func(assay.Attempt, error) bool) {
		_ = yield(fault(), nil) && yield(assay.Attempt{}, io.ErrUnexpectedEOF)
	}))
	if len(all) != 1 || err != io.ErrUnexpectedEOF ||
		c != (export.Counts{Attempts: 1, Faults: 1, Trials: 1}) {
		t.Errorf("Count passed %d, %v and counted %+v", len(all), err, c)
	}
}

// TestManifestBehindLinks checks that files in other directories are found from the manifest, and
// that their names are relative to its real directory.
func TestManifestBehindLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, filepath.FromSlash(name)) }
	for _, name := range []string{"deep/real", "calls"} {
		if err := os.MkdirAll(in(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, link := range []string{"link", "link2"} {
		if err := os.Symlink(in("deep/real"), in(link)); err != nil {
			t.Skip(err)
		}
	}
	text := write(t, export.JSONL, fault())
	for _, manifest := range []string{"link/m.json", "deep/real/m.json", "calls/m.json", "m.json"} {
		for _, name := range []string{"calls/a", "link/a", "link2/a", "deep/real/a", "b"} {
			d := export.NewDigest(io.Discard)
			if _, err := io.WriteString(d, text); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(in(name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			m := export.Manifest{Files: []export.File{d.File(in(manifest), in(name), export.JSONL,
				export.AttemptTable, 1)}}
			if err := m.Verify(t.Context(), filepath.Dir(in(manifest))); err != nil {
				t.Errorf("%s from %s: %v", name, manifest, err)
			}
			if strings.Contains(m.Files[0].Name, "link") {
				t.Errorf("%s from %s is %s", name, manifest, m.Files[0].Name)
			}
		}
	}
}

// TestVerifyEndsWithContext checks that the verification of large files can be
// stopped.
func TestVerifyEndsWithContext(t *testing.T) {
	t.Parallel()
	dir, m := exported(t)
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if err := m.Verify(ctx, dir); err != reason {
		t.Errorf("Verify() = %v, want %v", err, reason)
	}
	// A file without an end. Only ctx stops reading it.
	endless, err := os.Create(filepath.Join(dir, "attempts.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer endless.Close()
	if err := endless.Truncate(1 << 42); err != nil {
		t.Skip(err)
	}
	ctx, cancel = context.WithCancelCause(t.Context())
	time.AfterFunc(50*time.Millisecond, func() { cancel(reason) })
	if err := m.Verify(ctx, dir); err != reason {
		t.Errorf("Verify() = %v, want %v", err, reason)
	}
}

func TestVerifyReportsDifferences(t *testing.T) {
	t.Parallel()
	change := func(dir, name string, edit func([]byte) []byte) {
		path := filepath.Join(dir, name)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, edit(b), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(b []byte) []byte { b[len(b)/2] ^= 1; return b }
	cut := func(b []byte) []byte { return b[:len(b)-2] }
	for name, tc := range map[string]struct {
		edit   func(dir string, m *export.Manifest)
		want   string // separated by "|"
		absent string
	}{
		"byte of CSV": {
			func(dir string, _ *export.Manifest) { change(dir, "attempts.csv", flip) },
			"verify attempts.csv: has SHA-256 ", "bytes",
		},
		"byte of Parquet": {
			func(dir string, _ *export.Manifest) { change(dir, "calls.parquet", flip) },
			"verify calls.parquet: has SHA-256 ", "bytes",
		},
		"cut": {
			func(dir string, _ *export.Manifest) { change(dir, "calls.jsonl", cut) },
			"verify calls.jsonl: has | bytes, want |SHA-256", "attempts",
		},
		"missing": {
			func(dir string, m *export.Manifest) {
				if err := os.Remove(filepath.Join(dir, "attempts.jsonl")); err != nil {
					t.Fatal(err)
				}
				change(dir, "calls.csv", flip)
			},
			"verify attempts.jsonl: open |verify calls.csv: has SHA-256 ", "bytes",
		},
		"elsewhere": {
			func(_ string, m *export.Manifest) { m.Files[0].Name = "../attempts.jsonl" },
			"no such file", "SHA",
		},
		"parent": {
			func(_ string, m *export.Manifest) { m.Files[0].Name = ".." },
			"not a regular file", "SHA",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, m := exported(t)
			tc.edit(dir, &m)
			err := m.Verify(t.Context(), dir)
			if err == nil {
				t.Fatal("Verify() = nil")
			}
			for want := range strings.SplitSeq(tc.want, "|") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("Verify() = %v, want it to contain %q", err, want)
				}
			}
			if strings.Contains(err.Error(), tc.absent) {
				t.Errorf("Verify() = %v, want it not to contain %q", err, tc.absent)
			}
		})
	}
}

func TestReadManifestRefuses(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                       "EOF",
		"{":                      "unexpected EOF",
		"[]":                     "cannot unmarshal",
		"{}":                     "unsupported format version 0",
		`{"format_version":2}`:   "unsupported format version 2, want 1 to 1\nhint: ",
		`{"format_version":1}{}`: "more than one JSON object",
		`{"format_version":1,"files":[{"rows":"x"}]}`: "rows",
	} {
		_, err := export.ReadManifest(strings.NewReader(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ReadManifest(%s) error = %v, want it to contain %q", text, err, want)
		}
	}
	newer := strings.NewReader(`{"format_version":1,"later":true}`)
	if _, err := export.ReadManifest(newer); err != nil {
		t.Errorf("ReadManifest with a field of a newer program: %v", err)
	}
}

func TestEveryColumnIsDescribed(t *testing.T) {
	t.Parallel()
	if export.Describe("oops") != nil {
		t.Error("Describe(oops) is not nil")
	}
	units := map[string]string{
		"_ms": "Milliseconds", "_usd": "dollars", "_tokens": "Tokens",
		"_at": "UTC", "cost_limit": "Dollars",
	}
	for _, table := range []export.Table{export.AttemptTable, export.CallTable} {
		seen := make(map[string]string)
		for _, c := range export.Describe(table) {
			if c.Table != table || !strings.HasSuffix(c.Description, ".") ||
				strings.Count(c.Description, ". ") > 0 || len(c.Description) < 15 {
				t.Errorf("%s.%s: %q is not one sentence", table, c.Name, c.Description)
			}
			if other, ok := seen[c.Description]; ok {
				t.Errorf("%s.%s has the same description as %s", table, c.Name, other)
			}
			seen[c.Description] = c.Name
			nullable := strings.Contains(c.Description, "null ")
			if nullable != c.Nullable && c.Type != "timestamp" {
				t.Errorf("%s.%s: nullable is %v, and its description is %q",
					table, c.Name, c.Nullable, c.Description)
			}
			for suffix, unit := range units {
				if strings.HasSuffix(c.Name, suffix) && !strings.Contains(c.Description, unit) {
					t.Errorf("%s.%s: want %q in %q", table, c.Name, unit, c.Description)
				}
			}
		}
	}
	for i, c := range export.Describe(export.AttemptTable) {
		if c.Name != export.Columns()[i] {
			t.Errorf("column %d is %s, want %s", i, c.Name, export.Columns()[i])
		}
	}
}
