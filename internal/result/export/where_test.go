package export_test

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

func TestWhereSelects(t *testing.T) {
	t.Parallel()
	a := assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure, Turns: 7, OrderCorrect: true}}
	a.Model, a.Reliability, a.Task, a.Loops = "m", 0.8, "a,b", "line\nend"
	a.RequiredTools = []string{"x", "y,z"}
	a.StartedAt = time.Date(2026, 3, 4, 5, 6, 7, 0, time.FixedZone("", 3600))
	warm := 0.7
	a.Sampling.Temperature = &warm
	for text, want := range map[string]bool{
		"":                                      true,
		"model=m":                               true,
		"model=M":                               false,
		"model!=m":                              false,
		"level=failure,partial_success":         true,
		"level!=failure":                        false,
		"reliability=0.8 turns=7":               true,
		"reliability=0.80":                      true,
		"reliability!=.8":                       false,
		"reliability=0.9,8e-1":                  true,
		"turns=07":                              true,
		"order_correct=true model=x":            false,
		"order_correct=True":                    true,
		"order_correct!=1":                      false,
		"severity=":                             true,
		"phrasing=plain interface=plain":        true,
		"phrasing=casual,plain":                 true,
		"phrasing!=plain":                       false,
		"fault_mix=before=1":                    true,
		"fault_mix=down=1":                      false,
		"severity=light,":                       true,
		"severity!=light,":                      false,
		"cost_usd=":                             false,
		"given_adherence=":                      true,
		"given_adherence=null":                  true,
		"given_adherence!=null":                 false,
		"given_adherence=0.5,null":              true,
		"pilot_executor=null":                   true,
		"finished_at=null":                      true,
		"started_at=null":                       false,
		"model=null":                            false,
		"pilot_executor!=":                      false,
		"executed_tools=[]":                     true,
		"executed_tools=null":                   false,
		"coverage=0":                            true,
		"coverage=null":                         false,
		"turns=":                                false,
		"executed_tools!=[]":                    false,
		"executed_tools=[],[\"x\"]":             true,
		"retried={}":                            true,
		"retried!={}":                           false,
		"required_tools=[\"x\",\"y,z\"]":        true,
		"required_tools=[\"y,z\",\"x\"]":        false,
		"sampling={\"temperature\":0.70}":       true,
		"task=a,b":                              true,
		"task=a":                                false,
		"task!=a,b":                             false,
		"loops=line\\nend":                      true,
		"started_at=2026-03-04T04:06:07Z":       true,
		"started_at!=2026-03-04T05:06:07+01:00": false,
	} {
		w, err := export.ParseWhere(strings.Fields(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := w.Has(&a); got != want {
			t.Errorf("%q selects the attempt: %v, want %v", text, got, want)
		}
	}
	for text, hint := range map[string]string{
		"modl=x": "did you mean model?", "model": "FIELD=VALUE", "": "FIELD=VALUE",
		"turns=many": "a whole number", "repeat=": "a whole number", "reliability=NaN": "0.7",
		"order_correct=yes": "true or false",
		"executed_tools=x":  `[]`, "sampling={\"warmth\":1}": "JSON", "retried={}{}": "JSON",
		"started_at=today": "2026-", "repeat=null": "a whole number",
		"given_adherence=none": "or null if there is no value",
		"pilot_final_score=x":  "or null if there is no value",
	} {
		_, err := export.ParseWhere([]string{text})
		if err == nil ||
			!strings.Contains(err.Error(), "\nhint: ") || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: %v, want a hint with %s", text, err, hint)
		}
	}
}

// TestWhereMatchesCSV checks that a condition with a field's value as CSV
// writes it selects the attempt.
func TestWhereMatchesCSV(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a := drawAttempt(t)
		a.Experiment = rapid.StringMatching(`[a,"\\\n ]{0,4}`).Draw(t, "name")
		var b strings.Builder
		if _, err := export.Write(&b, export.CSV, sequence(a)); err != nil {
			t.Fatal(err)
		}
		lines := strings.SplitAfter(b.String(), "\n")
		fields, values := csvRow(t, lines[0]), csvRow(t, lines[1])
		for i, name := range fields {
			for text, want := range map[string]bool{
				name + "=" + values[i]:  true,
				name + "!=" + values[i]: false,
			} {
				w, err := export.ParseWhere([]string{text})
				if err != nil || w.Has(&a) != want {
					t.Errorf("%q: %v, %v", text, w.Has(&a), err)
				}
			}
		}
	})
}

func csvRow(t *rapid.T, line string) []string {
	row, err := csv.NewReader(strings.NewReader(line)).Read()
	if err != nil {
		t.Fatal(err)
	}
	return row
}

func TestExplain(t *testing.T) {
	t.Parallel()
	var all []assay.Attempt
	for _, m := range []string{"sim/expert", "sim/mute"} {
		a := fault()
		a.Model, a.Severity = m, map[string]string{"sim/mute": "light"}[m]
		all = append(all, a)
	}
	for text, want := range map[string]string{
		"model=sim/exprt": "no attempt matches model=sim/exprt\n" +
			"hint: did you mean sim/expert?",
		"model=sim/mute model=x": "no attempt matches model=x\n" +
			"hint: known are sim/expert, sim/mute",
		"severity=severe":                 "known are \"\", light",
		"model!=sim/expert,sim/mute":      "no attempt matches model!=sim/expert,sim/mute",
		"model=sim/expert severity=light": "no attempt matches all conditions at once",
		"executed_tools=[\"x\"]":          "hint: the field is empty in all of them",
	} {
		w, err := export.ParseWhere(strings.Fields(text))
		if err != nil {
			t.Fatal(err)
		}
		got, err := w.Explain(sequence(all...))
		if err != nil || !strings.Contains(got, want) {
			t.Errorf("%q: %q, %v, want %q", text, got, err, want)
		}
		if slices.ContainsFunc(all, func(a assay.Attempt) bool { return w.Has(&a) }) {
			t.Errorf("%q selects an attempt", text)
		}
		if got, err := w.Explain(sequence[assay.Attempt]()); got != "" || err != nil {
			t.Errorf("%q without attempts: %q, %v", text, got, err)
		}
	}
}
