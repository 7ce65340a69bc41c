package export_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
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

// contract is what files of every version hold; users build on it.
var contract = strings.Fields(`trial attempt experiment run model variant severity difficulty task_type task
	reliability repeat seed world lane served_model level ended fault error_category turns tool_calls
	required_tools executed_tools coverage order_correct input_tokens output_tokens cost_usd queued_ms
	working_ms started_at finished_at`)

// texts are the formats of which a file is good up to any line.
var texts = []export.Format{export.JSONL, export.CSV}

func sequence(attempts ...assay.Attempt) iter.Seq2[assay.Attempt, error] {
	return func(yield func(assay.Attempt, error) bool) {
		for _, a := range attempts {
			if !yield(a, nil) {
				return
			}
		}
	}
}

func collect(seq iter.Seq2[assay.Attempt, error]) (all []assay.Attempt, err error) {
	for a, err := range seq {
		if err != nil {
			return all, err
		}
		all = append(all, a)
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

// fill sets every field in v to something that is not zero and unlike the
// others, so that a field that a format forgets or mixes up is noticed.
func fill(t testing.TB, v reflect.Value, n *int) {
	t.Helper()
	*n++
	switch {
	case v.Type() == reflect.TypeFor[time.Time]():
		v.Set(reflect.ValueOf(time.Date(2026, 3, 4, 5, 6, 7, *n, time.UTC)))
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(t, v.Field(i), n)
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
		Trial:     assay.Trial{ID: "00112233445566778899aabbccddeeff", Cell: assay.Cell{Model: "m"}},
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
	for _, name := range []string{"executor", "paper", "batch", "workflow_score", "phase2_score", "quality_score", "final_score"} {
		if _, ok := fields["pilot"].(map[string]any)[name]; !ok {
			t.Errorf("field %s of pilot is missing", name)
		}
	}
	var leaves int
	countLeaves(reflect.TypeFor[assay.Attempt](), &leaves)
	if len(fields) != leaves {
		t.Errorf("%d fields in JSON, want %d: two have one name", len(fields), leaves)
	}
}

// countLeaves counts the fields that are not embedded.
func countLeaves(typ reflect.Type, n *int) {
	for f := range typ.Fields() {
		if f.Anonymous {
			countLeaves(f.Type, n)
			continue
		}
		*n++
	}
}

// keysInOrder returns the keys of an object, with those of an object pilot in
// it in place of that.
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
		`"task_type":"","reliability":0,"task":"","task_digest":"","repeat":0,"seed":0,"world":"","protocol":"","tools":"",` +
		`"turn_limit":0,"sampling":{},"token_limit":0,"cost_limit":0,"several_calls":"","persistence":0,"burst":0,"loops":"","attempt":1,"experiment":"","run":"","program":"","templates":"","lane":"",` +
		`"served_model":"","level":"","ended":"","error_category":"","turns":0,"tool_calls":0,"required_tools":[],` +
		`"executed_tools":[],"coverage":0,"order_correct":false,"assisted":0,"adherence":0,"given_adherence":null,` +
		`"mistakes":0,"failures":0,"recovered":0,"wasted_calls":0,"efficiency":0,"extra_calls":0,"loop":"","loop_turn":0,` +
		`"best_possible":0,"score_version":"","fault":"network",` +
		`"fault_detail":"","parked":false,"requests":0,"retried":{},"input_tokens":0,"output_tokens":0,"cost_usd":0,` +
		`"queued_ms":0,"working_ms":0,"started_at":"2026-01-01T11:00:00Z","finished_at":"0001-01-01T00:00:00Z"}` + "\n"
	if diff := cmp.Diff(want, write(t, export.JSONL, a)); diff != "" {
		t.Errorf("JSONL (-want +got):\n%s", diff)
	}
	want = strings.Join(export.Columns(), ",") + "\n" +
		"00112233445566778899aabbccddeeff,m,,,,,0,,,0,0,,,,0,{},0,0,,0,0,,1,,,,,,,,,,0,0,[],[],0,false,0,0,,0,0,0,0,0,0,,0,0,,,,,,,,,network,,false,0,{},0,0,0,0,0," +
		"2026-01-01T11:00:00Z,0001-01-01T00:00:00Z\n"
	if diff := cmp.Diff(want, write(t, export.CSV, a)); diff != "" {
		t.Errorf("CSV (-want +got):\n%s", diff)
	}
}

func TestWriteNothing(t *testing.T) {
	t.Parallel()
	if got := write(t, export.JSONL); got != "" {
		t.Errorf("JSONL of nothing = %q", got)
	}
	if got, want := write(t, export.CSV), strings.Join(export.Columns(), ",")+"\n"; got != want {
		t.Errorf("CSV of nothing = %q, want %q", got, want)
	}
	for _, format := range export.Formats {
		if all, err := collect(export.Read(strings.NewReader(write(t, format)))); len(all) != 0 || err != nil {
			t.Errorf("Read of empty %s = %v, %v", format, all, err)
		}
	}
}

func TestRoundTripOfEveryField(t *testing.T) {
	t.Parallel()
	want := []assay.Attempt{filled(t), fault()}
	for _, format := range export.Formats {
		got, err := collect(export.Read(strings.NewReader(write(t, format, want...))))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", format, diff)
		}
	}
}

func TestRoundTripProperty(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.SliceOfN(rapid.Custom(drawAttempt), 0, 5).Draw(t, "attempts")
		format := rapid.SampledFrom(export.Formats).Draw(t, "format")
		var b bytes.Buffer
		if n, err := export.Write(&b, format, sequence(want...)); n != len(want) || err != nil {
			t.Fatalf("Write() = %d, %v, want %d, nil", n, err, len(want))
		}
		header := 0
		if format == export.CSV {
			header = 1
		}
		if got := bytes.Count(b.Bytes(), []byte{'\n'}); format != export.Parquet && got != len(want)+header {
			t.Fatalf("%d lines, want one for each of %d records", got, len(want))
		}
		got, err := collect(export.Read(&b))
		if err != nil {
			t.Fatal(err)
		}
		if len(want) == 0 {
			want = nil
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	})
}

// drawAttempt returns an attempt with unlikely texts and numbers.
func drawAttempt(t *rapid.T) assay.Attempt {
	text := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", `\`, `\.`, `\n`, "\r\n", "a\rb\n", `"`, ",", " x ", "=1+1", "\ufeff", "\u2028", "<&>"}))
	draw := func(name string) string { return text.Draw(t, name) }
	names := rapid.SliceOfN(text, 0, 4)
	list := func(name string) []string {
		if all := names.Draw(t, name); len(all) > 0 {
			return all
		}
		return nil
	}
	count := rapid.IntRange(0, 1<<40)
	n := func(name string) int { return count.Draw(t, name) }
	unit := rapid.Float64Range(0, 1)
	at := rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "s"), rapid.Int64Range(0, 1e9-1).Draw(t, "ns")).UTC()
	})
	a := assay.Attempt{
		Trial: assay.Trial{
			ID:   assay.TrialID(rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "trial")),
			Cell: assay.Cell{Model: draw("model"), Variant: draw("variant"), Severity: draw("severity"), Difficulty: draw("difficulty"), TaskType: draw("type"), Reliability: unit.Draw(t, "reliability")},
			Task: assay.TaskID(draw("task")), TaskDigest: draw("digest"), Repeat: n("repeat"),
			Seed:    rapid.Uint64Range(0, 1<<53-1).Draw(t, "seed"),
			Setting: assay.Setting{World: draw("world"), Protocol: draw("protocol"), Tools: draw("tools"), Turns: n("turn limit"), Tokens: n("token limit"), USD: rapid.Float64Range(0, 1e6).Draw(t, "cost limit"), SeveralCalls: draw("several"), Persistence: unit.Draw(t, "persistence"), Burst: unit.Draw(t, "burst"), Loops: draw("loops")},
		},
		Number: 1 + n("number"), Experiment: draw("experiment"), Run: assay.RunID(draw("run")), Program: draw("program"),
		Templates: draw("templates"), Lane: draw("lane"), ServedModel: draw("served"),
		Outcome: assay.Outcome{
			ErrorCategory: draw("category"), Turns: n("turns"), ToolCalls: n("calls"), RequiredTools: list("required"), ExecutedTools: list("executed"),
			Coverage: unit.Draw(t, "coverage"), OrderCorrect: rapid.Bool().Draw(t, "order"), Assisted: n("assisted"), ScoreVersion: draw("score"),
			Adherence: unit.Draw(t, "adherence"), Mistakes: n("mistakes"), Failures: n("failures"), Recovered: n("recovered"),
			Wasted: n("wasted"), Efficiency: unit.Draw(t, "efficiency"), Extra: n("extra"),
			Loop: assay.LoopKind(draw("loop")), LoopTurn: n("loop turn"), Best: unit.Draw(t, "best"),
		},
		Requests: n("requests"), InputTokens: n("in"), OutputTokens: n("out"), CostUSD: rapid.Float64Range(0, 1e6).Draw(t, "cost"),
		QueuedMS: int64(n("queued")), WorkingMS: int64(n("working")), StartedAt: at.Draw(t, "started"), FinishedAt: at.Draw(t, "finished"),
	}
	if rapid.Bool().Draw(t, "sampled") {
		temperature, tokens := unit.Draw(t, "temperature"), n("tokens")
		a.Sampling = assay.Sampling{Temperature: &temperature, MaxTokens: &tokens}
	}
	if rapid.Bool().Draw(t, "given") {
		given := unit.Draw(t, "given adherence")
		a.GivenAdherence = &given
	}
	if rapid.Bool().Draw(t, "pilot") {
		level := func(name string) assay.Level { return assay.Level(draw(name)) }
		a.Pilot = &assay.PilotScores{
			Executor: level("executor"), Paper: level("paper"), Batch: level("batch"), WorkflowScore: unit.Draw(t, "workflow"),
			Phase2Score: unit.Draw(t, "phase 2"), QualityScore: unit.Draw(t, "quality"), FinalScore: unit.Draw(t, "final"),
		}
	}
	if retried := rapid.MapOfN(rapid.SampledFrom(assay.FaultKinds), count, 0, 3).Draw(t, "retried"); len(retried) > 0 {
		a.Retried = retried
	}
	if rapid.Bool().Draw(t, "settles") {
		a.Level = rapid.SampledFrom(assay.Levels).Draw(t, "level")
		a.Ended = rapid.SampledFrom([]assay.Ended{assay.Finished, assay.TurnLimit, assay.Loop}).Draw(t, "ended")
		return a
	}
	a.FaultKind = rapid.SampledFrom(assay.FaultKinds).Draw(t, "fault")
	a.FaultDetail, a.Parked = draw("detail"), rapid.Bool().Draw(t, "parked")
	return a
}

// A limitedWriter takes so many bytes and then fails.
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

func TestFailingWriterCountsWhatArrived(t *testing.T) {
	t.Parallel()
	attempts := slices.Repeat([]assay.Attempt{filled(t)}, 300)
	for _, format := range texts {
		whole := len(write(t, format, attempts...))
		for _, room := range []int{0, 1, 100, 5000, 70_000, whole / 2, whole - 1} {
			w := &limitedWriter{left: room}
			n, err := export.Write(w, format, sequence(attempts...))
			if !errors.Is(err, errFull) || !strings.Contains(err.Error(), fmt.Sprintf("after %d attempts", n)) {
				t.Fatalf("%s, room for %d bytes: Write() = %d, %v", format, room, n, err)
			}
			text := w.got.String()
			text = text[:strings.LastIndexByte(text, '\n')+1]
			got, err := collect(export.Read(strings.NewReader(text)))
			if err != nil || len(got) != n {
				t.Errorf("%s, room for %d bytes: %d attempts arrived (%v), Write said %d", format, room, len(got), err, n)
			}
		}
	}
}

func TestWriteKeepsWhatCameBeforeAnError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken store")
	for _, format := range texts {
		var b bytes.Buffer
		n, err := export.Write(&b, format, func(yield func(assay.Attempt, error) bool) {
			_ = yield(fault(), nil) && yield(assay.Attempt{}, broken)
		})
		if n != 1 || !errors.Is(err, broken) {
			t.Errorf("%s: Write() = %d, %v, want 1, %v", format, n, err, broken)
		}
		if got, err := collect(export.Read(&b)); len(got) != 1 || err != nil {
			t.Errorf("%s: read back %d, %v, want 1, nil", format, len(got), err)
		}
	}
}

func TestWriteRefusesNotANumber(t *testing.T) {
	t.Parallel()
	a := fault()
	a.CostUSD /= a.CostUSD // NaN
	for _, format := range export.Formats {
		if n, err := export.Write(io.Discard, format, sequence(a)); n != 0 || err == nil {
			t.Errorf("%s: Write(NaN) = %d, %v, want 0 and an error", format, n, err)
		}
	}
}

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
	for _, text := range []string{b.String(), "\ufeff" + b.String(), spaced, "\ufeff" + spaced + "\r\n\r\n"} {
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
	maps.DeleteFunc(object, func(name string, _ any) bool { return !slices.Contains(contract, name) })
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
	jsonl, table := write(t, export.JSONL, fault()), write(t, export.CSV, fault())
	for name, tc := range map[string]struct{ text, want string }{
		"unknown field":    {strings.Replace(jsonl, `"lane"`, `"line"`, 1), `line 1: json: unknown field "line"`},
		"missing field":    {strings.Replace(jsonl, `"coverage":0,`, ``, 1), "line 1: field coverage is missing"},
		"second line":      {jsonl + "{\n", "line 2: "},
		"two objects":      {strings.TrimSpace(jsonl) + jsonl, "more than one JSON value"},
		"both":             {strings.Replace(jsonl, `"level":""`, `"level":"failure"`, 1), "both set"},
		"neither":          {strings.Replace(jsonl, `"fault":"network"`, `"fault":""`, 1), "neither"},
		"level unknown":    {strings.NewReplacer(`"level":""`, `"level":"ok"`, "network", "").Replace(jsonl), `unknown level "ok"`},
		"fault unknown":    {strings.Replace(jsonl, `"fault":"network"`, `"fault":"oops"`, 1), `unknown fault "oops"`},
		"attempt 0":        {strings.Replace(jsonl, `"attempt":1`, `"attempt":0`, 1), "count from 1"},
		"wrong type":       {strings.Replace(jsonl, `"turns":0`, `"turns":"0"`, 1), "turns"},
		"column unknown":   {strings.Replace(table, "lane", "line", 1), `line 1: column "line" is unknown`},
		"column missing":   {"trial,model\n", "line 1: column attempt is missing"},
		"column twice":     {strings.Replace(table, ",model", ",trial", 1), "column trial is there twice"},
		"short row":        {table + "x\n", "line 3: wrong number of fields"},
		"bad cell":         {strings.Replace(table, ",false,", ",maybe,", 1), "line 2: column order_correct"},
		"bad escape":       {strings.Replace(table, ",network,", `,network,\x`, 1), "column fault_detail"},
		"not a number":     {strings.Replace(table, ",{},0,0,0,0,0,", ",{},0,0,NaN,0,0,", 1), "column cost_usd: NaN"},
		"share above 1":    {strings.Replace(jsonl, `"adherence":0`, `"adherence":2`, 1), "adherence 2 is outside"},
		"given above 1":    {strings.Replace(jsonl, `"given_adherence":null`, `"given_adherence":2`, 1), "given_adherence 2 is outside"},
		"given no number":  {strings.Replace(table, ",0,,0,0,0,0,0,0,,", ",0,NaN,0,0,0,0,0,0,,", 1), "column given_adherence: NaN"},
		"pilot half empty": {strings.Replace(table, ",,,,,,,,,network", ",full_success,,,,,,,,network", 1), "column pilot_workflow_score: "},
		"pilot unknown":    {strings.Replace(jsonl, `"score_version"`, `"pilot":{"judge":""},"score_version"`, 1), `unknown field "judge"`},
		"something else":   {"hello\n", `column "hello" is unknown`},
		"unfinished quote": {table + `"`, "line 3"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := collect(export.Read(strings.NewReader(tc.text)))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Read() error = %v, want %q in it", err, tc.want)
			}
		})
	}
}

func TestReadStopsWhenAsked(t *testing.T) {
	t.Parallel()
	for _, format := range export.Formats {
		seen := 0
		for range export.Read(strings.NewReader(write(t, format, fault(), fault(), fault()))) {
			if seen++; seen == 2 {
				break
			}
		}
		if seen != 2 {
			t.Errorf("%s: saw %d, want 2", format, seen)
		}
	}
}

func TestParseFormat(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]export.Format{"jsonl": export.JSONL, "JSONL": export.JSONL, "csv": export.CSV, "Parquet": export.Parquet, "V3": export.V3} {
		if got, err := export.ParseFormat(name); got != want || err != nil {
			t.Errorf("ParseFormat(%q) = %q, %v, want %q, nil", name, got, err, want)
		}
	}
	for name, want := range map[string]string{"json": "jsonl", "cvs": "csv", "inspec": "inspect"} {
		_, err := export.ParseFormat(name)
		if err == nil || !strings.Contains(err.Error(), "\nhint: did you mean "+want+"?") {
			t.Errorf("ParseFormat(%q) error = %v, want %s as the nearest", name, err, want)
		}
	}
	for _, f := range append(export.Foreign, "xml") {
		if _, err := export.Write(io.Discard, f, sequence()); err == nil {
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
		// What was readable reads the same after it was written again.
		for _, format := range export.Formats {
			var b bytes.Buffer
			if _, err := export.Write(&b, format, sequence(first...)); err != nil {
				return // such as a year that RFC 3339 does not have
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

func BenchmarkWrite(b *testing.B) {
	attempts := slices.Repeat([]assay.Attempt{filled(b)}, 1000)
	for _, format := range export.Formats {
		b.Run(string(format), func(b *testing.B) {
			for b.Loop() {
				if _, err := export.Write(io.Discard, format, sequence(attempts...)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(attempts)), "ns/attempt")
		})
	}
}

func BenchmarkRead(b *testing.B) {
	attempts := slices.Repeat([]assay.Attempt{filled(b)}, 1000)
	for _, format := range export.Formats {
		b.Run(string(format), func(b *testing.B) {
			text := write(b, format, attempts...)
			for b.Loop() {
				if _, err := collect(export.Read(strings.NewReader(text))); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(attempts)), "ns/attempt")
		})
	}
}
