package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

func TestReadFreeColumnOrderAndSpacing(t *testing.T) {
	t.Parallel()
	want := []assay.Attempt{filled(t)}
	rows, err := csv.NewReader(strings.NewReader(write(t, export.CSV, want...))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.UseCRLF = true
	for _, row := range rows {
		slices.Reverse(row)
		if err := w.Write(row); err != nil {
			t.Fatal(err)
		}
	}
	w.Flush()
	spaced := strings.ReplaceAll(write(t, export.JSONL, want...), `":`, `" : `)
	for _, text := range []string{
		b.String(), "\ufeff" + b.String(), spaced,
		"\ufeff" + spaced + "\r\n\r\n",
	} {
		got, err := collect(export.Read(strings.NewReader(text)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
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
	if diff := cmp.Diff([]assay.Attempt{fault()}, got); err != nil || diff != "" {
		t.Errorf("Read() error %v (-want +got):\n%s", err, diff)
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	outcome := fault()
	outcome.Level, outcome.FaultKind = assay.Failure, ""
	jsonl, table := write(t, export.JSONL, fault()), write(t, export.CSV, fault())
	judged, row := write(t, export.JSONL, outcome), write(t, export.CSV, outcome)
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
			"line 1: column coverage: missing value",
		},
		"spaced null": {
			judged, `"required_tools":[]`, `"required_tools": null`,
			"line 1: column required_tools: missing value",
		},
		"null of a trial": {
			jsonl, `"repeat":0`, `"repeat":null`,
			"line 1: column repeat: missing value",
		},
		"empty cell":     {row, ",[],[],0,", ",[],[],,", "line 2: column coverage: missing value"},
		"column unknown": {table, "lane", "line", `line 1: unknown column "line"`},
		"column missing": {"trial,model\n", "", "", "line 1: missing column attempt"},
		"column twice":   {table, ",model", ",trial", "duplicate column trial"},
		"short row":      {table + "x\n", "", "", "line 3: wrong number of fields"},
		"bad cell":       {row, ",false,", ",maybe,", "line 2: column superseded"},
		"bad escape":     {table, ",network,", `,network,\x`, "column fault_detail"},
		"not a number": {
			table, ",{},0,0,0,0,0,0,0,0,0,0,", ",{},0,0,0,0,0,0,0,NaN,0,0,", "column cost_usd: NaN",
		},
		"share above 1": {judged, `"adherence":0`, `"adherence":2`, "adherence 2 is outside"},
		"given above 1": {
			jsonl, `"given_adherence":null`, `"given_adherence":2`, "given_adherence 2 is outside",
		},
		"given no number": {
			row, ",0,,0,0,0,0,0,0,0,0,0,0,,", ",0,NaN,0,0,0,0,0,0,0,0,0,0,,",
			"column given_adherence: NaN",
		},
		"pilot half empty": {
			table, ",,,,,,,,,network", ",full_success,,,,,,,,network", "column pilot_workflow_score: ",
		},
		"pilot unknown": {
			jsonl, `"score_version"`, `"pilot":{"judge":""},"score_version"`, `unknown field "judge"`,
		},
		"something else":   {"hello\n", "", "", `unknown column "hello"`},
		"unfinished quote": {table + `"`, "", "", "line 3"},
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
	for _, format := range export.Formats {
		seen := 0
		for range export.Read(strings.NewReader(write(t, format, fault(), fault(), fault()))) {
			if seen++; seen == 2 {
				break
			}
		}
		if seen != 2 {
			t.Errorf("%s: loop saw %d attempts, want 2", format, seen)
		}
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
	for _, format := range export.Formats {
		f.Add(write(f, format, fault(), filled(f)))
	}
	f.Add("\ufeff{")
	f.Add("trial\n\"")
	f.Fuzz(func(t *testing.T, text string) {
		first, err := collect(export.Read(strings.NewReader(text)))
		if err != nil || len(first) == 0 {
			return
		}
		// Attempts that were read once must be the same after writing and
		// reading them again.
		for _, format := range export.Formats {
			var b bytes.Buffer
			if _, err := export.Write(&b, format, sequence(first...)); err != nil {
				return // for example a year that RFC 3339 cannot express
			}
			second, err := collect(export.Read(&b))
			if err != nil {
				t.Fatalf("%s: %v", format, err)
			}
			if format == export.CSV {
				if diff := cmp.Diff(first, second); diff != "" {
					t.Fatalf("%s (-first +second):\n%s", format, diff)
				}
			}
		}
	})
}
