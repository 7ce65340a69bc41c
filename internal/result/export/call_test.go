package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

func writeCalls(t testing.TB, format export.Format, calls ...export.Call) string {
	t.Helper()
	var b bytes.Buffer
	n, err := export.Origin{}.WriteCalls(&b, format, sequence(calls...))
	if err != nil || n != len(calls) {
		t.Fatalf("WriteCalls(%s) = %d, %v, want %d, nil", format, n, err, len(calls))
	}
	return b.String()
}

func oneCall() export.Call {
	return export.Call{
		Trial: "00112233445566778899aabbccddeeff", Attempt: 1, Turn: 1,
		Number: 1, Tool: "t",
	}
}

func filledCall(t testing.TB) export.Call {
	var c export.Call
	n := 0
	fill(t, reflect.ValueOf(&c).Elem(), &n)
	c.Mistake = false
	return c
}

func TestCallsOfTranscript(t *testing.T) {
	t.Parallel()
	a := filled(t)
	transcript := assay.Transcript{
		Turns: []assay.TurnRecord{{Lane: "first"}, {Lane: "second"}},
		Calls: []assay.CallRecord{
			{
				Turn: 2, Tool: "read", Arguments: `{"a":1}`, OK: true, Chance: .9, Luck: .5,
				Output: "not exported",
			},
			{Turn: 2, Tool: "write", Code: "INVALID_INPUT", Error: "no data", Mistake: true},
			{Turn: 3, Tool: "write", Code: "TIMEOUT", Error: "late", Chance: .25, Luck: .75},
		},
	}
	got := export.CallsOf(&a, &transcript, func(i int) string { return fmt.Sprint("reaction ", i) })
	base := export.Call{
		Trial: a.ID, Attempt: a.Number, Model: a.Model, Variant: a.Variant, Severity: a.Severity,
		Difficulty: a.Difficulty, TaskType: a.TaskType,
		Reliability: a.Reliability, Task: a.Task, Experiment: a.Experiment,
		Run: a.Run, Level: a.Level,
	}
	want := []export.Call{base, base, base}
	want[0].Turn, want[0].Number, want[0].Lane = 2, 1, "second"
	want[0].Tool, want[0].Arguments = "read", `{"a":1}`
	want[0].OK, want[0].Chance, want[0].Luck = true, .9, .5
	want[1].Turn, want[1].Number, want[1].Lane, want[1].Tool = 2, 2, "second", "write"
	want[1].Code, want[1].Error, want[1].Mistake = "INVALID_INPUT", "no data", true
	// The turn of the third call has no record.
	want[2].Turn, want[2].Number, want[2].Lane, want[2].Tool = 3, 3, a.Lane, "write"
	want[2].Code, want[2].Error, want[2].Chance, want[2].Luck = "TIMEOUT", "late", .25, .75
	want[2].Met, want[2].Class, want[2].Reaction = assay.FaultBefore, "explicit, transient", "reaction 2"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CallsOf (-want +got):\n%s", diff)
	}
	if got := export.CallsOf(&a, &assay.Transcript{}, nil); len(got) != 0 {
		t.Errorf("CallsOf an empty transcript = %v", got)
	}
}

func TestCallJSONNames(t *testing.T) {
	t.Parallel()
	const want = "trial attempt model variant severity difficulty task_type reliability task " +
		"experiment run lane level fault turn call tool arguments ok code error mistake chance luck " +
		"tool_fault asked fault_class reaction"
	if got := strings.Join(keysInOrder(t, writeCalls(t, export.JSONL, oneCall())),
		" "); got != want {
		t.Errorf("JSON fields = %s\nwant %s", got, want)
	}
	if got := strings.TrimSpace(writeCalls(t, export.CSV)); got != strings.ReplaceAll(want, " ",
		",") {
		t.Errorf("CSV header = %s", got)
	}
	if !json.Valid([]byte(writeCalls(t, export.JSONL, filledCall(t)))) {
		t.Error("not JSON")
	}
}

func drawCall(t *rapid.T) (c export.Call) {
	draw(t, reflect.ValueOf(&c).Elem())
	c.Trial = assay.TrialID(rapid.StringMatching(`[0-9a-f]{32}`).Draw(t, "trial"))
	if c.Mistake = c.Mistake && !c.OK; c.Mistake {
		c.Chance, c.Luck = 0, 0
	}
	return c
}

func TestWriteRefusesCallWithNaN(t *testing.T) {
	t.Parallel()
	bad := oneCall()
	bad.Chance /= bad.Luck // NaN
	for _, format := range export.Formats {
		n, err := export.Origin{}.WriteCalls(io.Discard, format, sequence(bad))
		if n != 0 ||
			err == nil || !strings.Contains(err.Error(), "trial "+string(bad.Trial)+": call 1: ") {
			t.Errorf("%s: WriteCalls(NaN) = %d, %v", format, n, err)
		}
	}
}
