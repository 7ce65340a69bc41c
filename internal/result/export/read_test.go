package export_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// TestReadCompressed checks that attempts are the same with a byte order mark, other spacing and
// other ends of lines, and in compressed files.
func TestReadCompressed(t *testing.T) {
	t.Parallel()
	want := []assay.Attempt{filled(t), fault()}
	text := write(t, export.JSONL, want...)
	spaced := strings.ReplaceAll(text, `":`, `" : `)
	var zipped, packed bytes.Buffer
	g := gzip.NewWriter(&zipped)
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []io.WriteCloser{g, z} {
		_, err := io.WriteString(w, text)
		if err := errors.Join(err, w.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for name, file := range map[string]string{
		"plain": text, "spaced": spaced, "marked": "\ufeff" + spaced + "\r\n\r\n",
		"gzip": zipped.String(), "zstd": packed.String(),
	} {
		got, err := collect(export.Read(iotest.OneByteReader(strings.NewReader(file))))
		if diff := cmp.Diff(want, got, emptyIsNil); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
	for name, file := range map[string]string{
		"gzip": zipped.String(), "zstd": packed.String(),
	} {
		if got, err := collect(export.Read(strings.NewReader(file[:len(file)-5]))); err == nil {
			t.Errorf("a truncated %s gave %d attempts and no error", name, len(got))
		}
	}
}

// TestReadNamesOtherFormats checks that what else may be given as exported attempts is recognised.
func TestReadNamesOtherFormats(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]export.Format{
		write(t, export.CSV, fault()): export.CSV, write(t, export.Parquet, fault()): export.Parquet,
		"hello\n": "", "[]": "",
	} {
		_, err := collect(export.Read(strings.NewReader(text)))
		if other, ok := errors.AsType[*export.UnreadableError](err); !ok || other.Format != want {
			t.Errorf("Read(%.10q) error = %v, want an UnreadableError of %q", text, err, want)
		}
	}
	broken := errors.New("broken disk")
	if _, err := collect(export.Read(iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Errorf("Read() = %v, want %v", err, broken)
	}
}

func TestReadWithoutLaterFields(t *testing.T) {
	t.Parallel()
	var object map[string]any
	if err := json.Unmarshal([]byte(write(t, export.JSONL, fault())), &object); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(object,
		func(name string, _ any) bool { return !slices.Contains(contract, name) })
	line, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(export.Read(bytes.NewReader(line)))
	if diff := cmp.Diff([]assay.Attempt{fault()}, got, emptyIsNil); err != nil || diff != "" {
		t.Errorf("Read() error %v (-want +got):\n%s", err, diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	outcome := fault()
	outcome.Level, outcome.FaultKind = assay.Failure, ""
	jsonl, judged := write(t, export.JSONL, fault()), write(t, export.JSONL, outcome)
	for name, tc := range map[string]struct{ text, old, new, want string }{
		"unknown field": {jsonl, `"lane"`, `"line"`, `line 1: json: unknown field "line"`},
		"missing field": {jsonl, `"coverage":null,`, ``, "line 1: missing field coverage"},
		"second line":   {jsonl + "{\n", "", "", "line 2: "},
		"two objects":   {strings.TrimSpace(jsonl) + jsonl, "", "", "more than one JSON value"},
		"both":          {judged, `"fault":""`, `"fault":"network"`, "both set"},
		"neither":       {jsonl, `"fault":"network"`, `"fault":""`, "neither"},
		"level unknown": {judged, "failure", "ok", `unknown level "ok"`},
		"fault unknown": {jsonl, `"fault":"network"`, `"fault":"oops"`, `unknown fault "oops"`},
		"attempt 0":     {jsonl, `"attempt":1`, `"attempt":0`, "attempt is 0, want at least 1"},
		"wrong type":    {judged, `"turns":0`, `"turns":"0"`, "turns"},
		"null": {
			judged, `"coverage":0`, `"coverage":null`,
			"line 1: field coverage: missing value",
		},
		"spaced null": {
			judged, `"required_tools":[]`, `"required_tools": null`,
			"line 1: field required_tools: missing value",
		},
		"null of a trial": {
			jsonl, `"repeat":0`, `"repeat":null`,
			"line 1: field repeat: missing value",
		},
		"share above 1": {judged, `"adherence":0`, `"adherence":2`, "adherence 2 is outside"},
		"given above 1": {
			jsonl, `"given_adherence":null`, `"given_adherence":2`, "given_adherence 2 is outside",
		},
		"pilot unknown": {
			jsonl, `"score_version"`, `"pilot":{"judge":""},"score_version"`, `unknown field "judge"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(tc.text, tc.old, tc.new, 1)
			_, err := collect(export.Read(strings.NewReader(text)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Read() error = %v, want it to contain %q", err, tc.want)
			}
		})
	}
}

func TestReadStopsWithTheLoop(t *testing.T) {
	t.Parallel()
	seen := 0
	for range export.Read(strings.NewReader(write(t, export.JSONL, fault(), fault(), fault()))) {
		if seen++; seen == 2 {
			break
		}
	}
	if seen != 2 {
		t.Errorf("loop saw %d attempts, want 2", seen)
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]export.Format{
		"jsonl": export.JSONL, "JSONL": export.JSONL,
		"csv": export.CSV, "Parquet": export.Parquet, "V3": export.V3,
	} {
		if got, err := export.ParseFormat(name); got != want || err != nil {
			t.Errorf("ParseFormat(%q) = %q, %v, want %q, nil", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"json": "jsonl", "cvs": "csv", "inspec": "inspect"} {
		_, err := export.ParseFormat(name)
		if err == nil || !strings.Contains(err.Error(), "\nhint: did you mean "+want+"?") {
			t.Errorf("ParseFormat(%q) error = %v, want %s as the suggestion", name, err, want)
		}
	}
	for _, f := range append(export.Foreign, "xml") {
		if _, err := export.Write(io.Discard, f, sequence[assay.Attempt]()); err == nil {
			t.Errorf("Write(%s) = nil error", f)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(write(f, export.JSONL, fault(), filled(f)))
	f.Add("\ufeff{")
	f.Add("\x1f\x8b")
	f.Add("\x28\xb5\x2f\xfd")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := collect(export.Read(strings.NewReader(text)))
		if err != nil || len(first) == 0 {
			return
		}
		// Attempts that were read once must be the same after writing and
		// reading them again.
		var b bytes.Buffer
		if _, err := export.Write(&b, export.JSONL, sequence(first...)); err != nil {
			return // for example a year that RFC 3339 cannot express
		}
		if second, err := collect(export.Read(&b)); err != nil || len(second) != len(first) {
			t.Fatalf("read %d of %d again: %v", len(second), len(first), err)
		}
	})
}
