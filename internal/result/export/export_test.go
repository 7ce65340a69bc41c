package export_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// contract lists the fields that files of every version have. Users rely on it.
var contract = strings.Fields(`trial attempt experiment run model variant severity difficulty task_type task
	reliability repeat seed world lane served_model level ended fault error_category turns tool_calls
	required_tools executed_tools coverage order_correct input_tokens output_tokens cost_usd queued_ms
	working_ms started_at finished_at`)

// texts are the formats whose files are valid up to any line.
var texts = []export.Format{export.JSONL, export.CSV}

func sequence[T any](rows ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, r := range rows {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func collect[T any](seq iter.Seq2[T, error]) (all []T, err error) {
	for r, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

func write(t testing.TB, format export.Format, attempts ...assay.Attempt) string {
	t.Helper()
	var b bytes.Buffer
	n, err := export.Write(&b, format, sequence(attempts...))
	if err != nil || n != len(attempts) {
		t.Fatalf("Write(%s) = %d, %v, want %d, nil", format, n, err, len(attempts))
	}
	return b.String()
}

// fill sets every field in v to a different nonzero value, so the tests notice
// a field that a format forgets or mixes up.
func fill(t testing.TB, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 4, 5, 6, 7, *n, time.UTC)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("json") != "-" {
				fill(t, v.Field(i), n)
			}
		}
	case v.Kind() == reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case v.Kind() == reflect.Bool:
		v.SetBool(true)
	case v.CanInt():
		v.SetInt(int64(*n))
	case v.CanUint():
		v.SetUint(uint64(*n))
	case v.CanFloat():
		v.SetFloat(1 / float64(*n))
	case v.Kind() == reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case v.Kind() == reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0), n)
		fill(t, v.Index(1), n)
	case v.Type() == reflect.TypeFor[map[assay.FaultKind]int]():
		v.Set(reflect.ValueOf(map[assay.FaultKind]int{assay.Timeout: *n}))
	default:
		t.Fatalf("no value for a field of type %v", v.Type())
	}
}

func filled(t testing.TB) assay.Attempt {
	t.Helper()
	var a assay.Attempt
	n := 0
	fill(t, reflect.ValueOf(&a).Elem(), &n)
	a.Level, a.FaultKind = assay.PartialSuccess, ""
	return a
}

func fault() assay.Attempt {
	return assay.Attempt{
		Trial: assay.Trial{
			ID:   "00112233445566778899aabbccddeeff",
			Cell: assay.Cell{Model: "m"},
		},
		Number:    1,
		FaultKind: assay.Network,
	}
}

func TestJSONHoldsEveryFieldOnce(t *testing.T) {
	t.Parallel()
	line := write(t, export.JSONL, filled(t))
	var fields map[string]any
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(keysInOrder(t, line), export.Columns()); diff != "" {
		t.Errorf("JSON fields against CSV columns (-json +csv):\n%s", diff)
	}
	for _, name := range contract {
		if _, ok := fields[name]; !ok {
			t.Errorf("field %s is missing", name)
		}
	}
	for _, name := range []string{
		"executor", "paper", "batch", "workflow_score", "phase2_score",
		"quality_score", "final_score",
	} {
		if _, ok := fields["pilot"].(map[string]any)[name]; !ok {
			t.Errorf("field %s of pilot is missing", name)
		}
	}
	var leaves int
	countLeaves(reflect.TypeFor[assay.Attempt](), &leaves)
	if len(fields) != leaves {
		t.Errorf("%d fields in JSON, want %d: two have the same name", len(fields), leaves)
	}
}

// countLeaves counts the fields in JSON that are not embedded.
func countLeaves(typ reflect.Type, n *int) {
	for f := range typ.Fields() {
		switch {
		case f.Anonymous:
			countLeaves(f.Type, n)
		case f.Tag.Get("json") != "-":
			*n++
		}
	}
}

// keysInOrder returns the keys of an object, with the keys of the object pilot
// in its place.
func keysInOrder(t *testing.T, line string) (keys []string) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(line))
	if _, err := d.Token(); err != nil {
		t.Fatal(err)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		if key != "pilot" {
			keys = append(keys, key.(string))
			continue
		}
		for _, inner := range keysInOrder(t, string(value)) {
			keys = append(keys, "pilot_"+inner)
		}
	}
	return keys
}

func TestWriteEmptyValues(t *testing.T) {
	t.Parallel()
	a := fault()
	a.StartedAt = time.Date(2026, 1, 1, 12, 0, 0, 0, time.FixedZone("", 3600))
	want := `{"trial":"00112233445566778899aabbccddeeff","model":"m","variant":"","severity":"","difficulty":"",` +
		`"task_type":"","reliability":0,"fault_mix":"","interface":"","phrasing":"","task":"","task_digest":"","repeat":0,"replay":0,"seed":0,"world":"","protocol":"","tools":"",` +
		`"turn_limit":0,"call_limit":0,"sampling":{},"token_limit":0,"cost_limit":0,"several_calls":"","persistence":0,"burst":0,"loops":"","agent_model":"","agent_timeout":"","user_model":"","asks_confidence":false,"model_faults":"","fork_of":"","fork_fault":"","fork_spared":false,"attempt":1,"round":0,"superseded":false,"experiment":"","run":"","program":"","templates":"","lane":"",` +
		`"served_model":"","finish":"","truncated":0,"deviations":"","reported":"","level":null,"ended":null,"stop":null,"cause":null,"error_category":null,"turns":null,"tool_calls":null,"required_tools":null,` +
		`"executed_tools":null,"coverage":null,"order_correct":null,"assisted":null,"adherence":null,"given_adherence":null,"planned_adherence":null,` +
		`"mistakes":null,"failures":null,"recovered":null,"faults_scheduled":null,"faults_met":null,"faults_delivered":null,"faults_detected":null,"faults_recovered":null,"faults_repeated":null,"model_faults_met":null,"model_faults_recovered":null,"wasted_calls":null,"efficiency":null,"extra_calls":null,"precision":null,"unwanted_effects":null,"harm":null,"broken_lineage":null,"loop":null,"loop_turn":null,` +
		`"best_possible":null,"security":null,"judge_verdict":null,"judge_prompt":null,"judged_alone":null,"score_version":null,"fault":"network",` +
		`"fault_detail":"","parked":false,"unmetered":false,"sandbox":"","worker":"","requests":0,"retried":{},"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cache_write_tokens":0,"reasoning_tokens":0,"uncertain_tokens":0,"unpriced_tokens":0,"cost_usd":0,` +
		`"user_requests":0,"user_input_tokens":0,"user_output_tokens":0,"user_unpriced_tokens":0,"user_cost_usd":0,"price_list":"","saved_cost_usd":null,"saved_user_cost_usd":null,"judged_by":"","judge_requests":0,"judge_input_tokens":0,"judge_output_tokens":0,"judge_unpriced_tokens":0,"judge_cost_usd":0,"stated_confidence":null,"confidence_input_tokens":0,"confidence_output_tokens":0,"confidence_cost_usd":0,` +
		`"queued_ms":0,"working_ms":0,"started_at":"2026-01-01T11:00:00Z","finished_at":"0001-01-01T00:00:00Z"}` + "\n"
	if diff := cmp.Diff(want, write(t, export.JSONL, a)); diff != "" {
		t.Errorf("JSONL (-want +got):\n%s", diff)
	}
	want = strings.Join(export.Columns(), ",") + "\n" +
		"00112233445566778899aabbccddeeff,m,,,,,0,,,,,,0,0,0,,,,0,0,{},0,0,,0,0,,,,,false,,,,false,1,0,false,,,,,,,,0,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,network,,false,false,,,0,{},0,0,0,0,0,0,0,0,0,0,0,0,0,,,,,0,0,0,0,0,,0,0,0,0,0," +
		"2026-01-01T11:00:00Z,0001-01-01T00:00:00Z\n"
	if diff := cmp.Diff(want, write(t, export.CSV, a)); diff != "" {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}
}

func TestWriteNoAttempts(t *testing.T) {
	t.Parallel()
	if got := write(t, export.JSONL); got != "" {
		t.Errorf("JSONL without attempts = %q", got)
	}
	if got, want := write(t, export.CSV), strings.Join(export.Columns(), ",")+"\n"; got != want {
		t.Errorf("CSV without attempts = %q, want %q", got, want)
	}
}

// draw sets every field in v to an unlikely value, or leaves it unset.
func draw(t *rapid.T, v reflect.Value) {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		"", `\`, `\.`, `\n`, "\r\n", "a\rb\n", `"`, `{"a":"b"}`, ",", " x ", "=1+1", "\ufeff", "\u2028",
		"<&>",
	}))
	some := func() int { return rapid.IntRange(0, 3).Draw(t, "some") }
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"),
			rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC()))
	case v.Kind() == reflect.Struct:
		for f, field := range v.Fields() {
			if f.Tag.Get("json") != "-" {
				draw(t, field)
			}
		}
	case v.Kind() == reflect.String:
		v.SetString(text.Draw(t, "text"))
	case v.Kind() == reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "flag"))
	case v.CanInt():
		v.SetInt(rapid.Int64Range(1, 1<<40).Draw(t, "count"))
	case v.CanUint():
		v.SetUint(rapid.Uint64Range(0, 1<<53-1).Draw(t, "seed"))
	case v.CanFloat():
		v.SetFloat(rapid.Float64Range(0, .999).Draw(t, "share"))
	case v.Kind() == reflect.Pointer:
		if some() > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			draw(t, v.Elem())
		}
	case v.Kind() == reflect.Slice:
		if n := some(); n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
			for i := range n {
				draw(t, v.Index(i))
			}
		}
	case some() > 0: // a map of faults
		v.Set(reflect.ValueOf(rapid.MapOfN(rapid.SampledFrom(assay.FaultKinds),
			rapid.IntRange(0, 9), 1, 3).Draw(t, "retried")))
	}
}

// drawAttempt returns an attempt with unlikely texts and numbers.
func drawAttempt(t *rapid.T) (a assay.Attempt) {
	draw(t, reflect.ValueOf(&a).Elem())
	a.ID = assay.TrialID(rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "trial"))
	if rapid.Bool().Draw(t, "settles") {
		a.Level, a.FaultKind = rapid.SampledFrom(assay.Levels).Draw(t, "level"), ""
	} else {
		a.Outcome, a.FaultKind = assay.Outcome{}, rapid.SampledFrom(assay.FaultKinds).Draw(t, "fault")
	}
	return a
}

// A limitedWriter accepts a number of bytes and then fails.
type limitedWriter struct {
	left int
	got  bytes.Buffer
}

var errFull = errors.New("no room")

func (w *limitedWriter) Write(p []byte) (int, error) {
	n := min(len(p), w.left)
	w.left -= n
	w.got.Write(p[:n])
	if n < len(p) {
		return n, errFull
	}
	return n, nil
}

func TestFailingWriterEndsTheExport(t *testing.T) {
	t.Parallel()
	attempts := slices.Repeat([]assay.Attempt{filled(t)}, 300)
	for _, format := range export.Formats {
		whole := len(write(t, format, attempts...))
		for _, room := range []int{0, 1, 100, 5000, 70_000, whole / 2, whole - 1} {
			w := &limitedWriter{left: min(room, whole-1)}
			n, err := export.Write(w, format, sequence(attempts...))
			if n != 0 || !errors.Is(err, errFull) || !strings.Contains(err.Error(), " attempts: ") {
				t.Fatalf("%s, room for %d bytes: Write() = %d, %v", format, room, n, err)
			}
		}
	}
}

func TestWriteKeepsAttemptsBeforeAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken store")
	for _, format := range texts {
		var b bytes.Buffer
		n, err := export.Write(&b, format, func(yield func(assay.Attempt, error) bool) {
			_ = yield(fault(), nil) && yield(assay.Attempt{}, broken)
		})
		if n != 0 || !errors.Is(err, broken) || !strings.Contains(err.Error(), "after 1 attempts") {
			t.Errorf("%s: Write() = %d, %v, want 0, %v", format, n, err, broken)
		}
		if rows := readers[format](t, b.Bytes(), export.Describe(export.AttemptTable)); len(rows) != 1 {
			t.Errorf("%s: read back %d, want 1", format, len(rows))
		}
	}
}

func TestWriteRefusesNaN(t *testing.T) {
	t.Parallel()
	a := fault()
	a.CostUSD /= a.CostUSD // NaN
	for _, format := range export.Formats {
		if n, err := export.Write(io.Discard, format, sequence(a)); n != 0 || err == nil {
			t.Errorf("%s: Write(NaN) = %d, %v, want 0 and an error", format, n, err)
		}
	}
}
