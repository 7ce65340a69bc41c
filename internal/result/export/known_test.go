package export_test

import (
	"encoding/csv"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

func trialsOf(all ...assay.Trial) iter.Seq2[assay.Trial, error] {
	return func(yield func(assay.Trial, error) bool) {
		for _, t := range all {
			if !yield(t, nil) {
				return
			}
		}
	}
}

// openFields are the fields of attempts that can have any value.
var openFields = []string{"executed_tools", "required_tools", "retried"}

// TestMisspeltValues misspells the value of each field: the error suggests the right one, which is
// fine, as is one that is only planned.
func TestMisspeltValues(t *testing.T) {
	t.Parallel()
	set := assay.Setting{
		World: "assay-1", Protocol: "native", Tools: "discover", SeveralCalls: "refuse", Loops: "repeat=9",
		AgentModel: "sim/expert", AgentTimeout: "10m0s", UserModel: "sim/optimal", Turns: 171, Calls: 123,
		Tokens: 123456, USD: 12.25, Persistence: .125, Burst: .375,
	}
	set.Sampling.Seed = new(int64)
	cell := assay.Cell{
		Model: "sim/listed", Variant: "flawed_missing_step", Severity: "severe", Difficulty: "medium",
		TaskType: "simple_task", Reliability: .875, Faults: "after=0.25,before=0.75",
	}
	planned := assay.NewTrial(cell, assay.TaskRef{ID: "simple-093", Digest: "00ff00ff"}, set, 1, 1234)
	a := assay.Attempt{Trial: planned, Experiment: "nightly", Run: "01a21ed0", Outcome: assay.Outcome{
		Level: assay.Failure, Ended: assay.TurnLimit, Stop: assay.OutOfTurns, Cause: assay.SkippedStep,
		ErrorCategory: assay.ErrorCategories[0], Loop: assay.PingPongLoop, Security: assay.Broken,
		Broken: "get_order", ScoreVersion: "own-1.5", Pilot: &assay.PilotScores{Executor: assay.Failure, Paper: assay.Failure, Batch: assay.Failure},
	}}
	a.Program, a.Templates, a.Lane, a.ServedModel, a.Finish = "v1.2.3", "f68a457b", "p/KEY/dep", "gpt-5-2026", "stop,length"
	a.Deviations, a.Reported, a.FaultDetail, a.Worker = "no temperature", "total=12", "connection refused", "worker-7"
	other := a
	other.Model, other.ID = "sim/mute", "ffffffffffffffffffffffffffffffff"
	tried, open := 0, 0
	for _, name := range export.Columns() {
		values := valuesOf(t, name, a)
		value := values[len(values)-1]
		if len(value) < 3 {
			continue
		}
		wrong := value[:1] + "9" + value[2:]
		if !strings.ContainsAny(value[:1], "0123456789{") {
			wrong = "x" + value[1:]
		}
		if name == "sampling" {
			wrong = `{"seed":1}`
		}
		w, err := export.ParseWhere([]string{name + "=" + wrong})
		if err != nil {
			continue // a truth value
		}
		err = w.Check(trialsOf(planned), sequence(other, a))
		if slices.Contains(openFields, name) || err == nil && isMeasure(name) {
			open++
			continue
		}
		if want := "did you mean " + value; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s=%s: %v, want %s", name, wrong, err, want)
		}
		for _, text := range []string{name + "=" + value, name + "!=" + value, name + "=" + value + ",", name + "="} {
			w, err := export.ParseWhere([]string{text})
			if err != nil || strings.HasSuffix(text, ",") && strings.Contains(value, ",") {
				continue // the field cannot be empty, or its parts are other values
			}
			if err := w.Check(trialsOf(planned), sequence(other, a)); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
		tried++
	}
	if tried < 40 {
		t.Errorf("%d fields were tried, %d can have any value", tried, open)
	}
}

// isMeasure reports whether a field has a count, an amount or a time.
func isMeasure(name string) bool {
	for _, end := range []string{"_at", "_ms", "_usd", "_score", "tokens", "possible", "requests"} {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// valuesOf returns what CSV has in the column of a name.
func valuesOf(t *testing.T, name string, all ...assay.Attempt) (values []string) {
	t.Helper()
	var b strings.Builder
	if _, err := export.Write(&b, export.CSV, sequence(all...)); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		values = append(values, row[slices.Index(rows[0], name)])
	}
	return values
}

// TestCheck checks which conditions are fine.
func TestCheck(t *testing.T) {
	t.Parallel()
	a := fault()
	a.Model, a.Variant, a.Task, a.Reliability = "sim/mute", "optimal", "a,b", .8
	planned := a.Trial
	planned.Model, planned.Variant, planned.ID = "sim/expert", "flawed:follow", "3f2a9c00000000000000000000000000"
	for text, want := range map[string]string{
		"variant=optimall":               "nothing has variant=optimall, neither an attempt nor a planned trial\nhint: did you mean optimal?",
		"variant!=optimall":              "did you mean optimal?",
		"variant=optimal,flawed:folow":   "has variant=flawed:folow, neither an attempt nor a planned trial\nhint: did you mean flawed:follow?",
		"model=sim/exper*":               "",
		"model=sin/*":                    "nothing has model=sin/*",
		"task=a,b":                       "",
		"task=a":                         "known are a,b",
		"reliability=.80":                "",
		"reliability=0.9":                "did you mean 0.8?",
		"level=partial_success":          "",
		"level=partial_sucess":           "did you mean partial_success?",
		"fault=quota":                    "",
		"fault=time_out":                 "did you mean timeout?",
		"cause=wrong_order stop=gave_up": "",
		"faults":                         "",
		"failures":                       "",
		"3f2a9c":                         "",
		"3f2a9d":                         "nothing has 3f2a9d",
		"turns=77":                       "",
		"severity=":                      "",
	} {
		w, err := export.ParseWhere(strings.Fields(text))
		if err != nil {
			t.Fatal(err)
		}
		err = w.Check(trialsOf(planned), sequence(a))
		if got := fmt.Sprint(err); (want == "") != (err == nil) || err != nil && !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
		if err := w.Check(trialsOf(), sequence[assay.Attempt]()); err != nil {
			t.Errorf("%s in an empty store: %v", text, err)
		}
	}
}
