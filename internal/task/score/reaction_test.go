package score_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// TestReactions checks what is told of planted faults. The task asks for a call of get and then one of
// pay, which has an effect. A call is "tool", "tool kind" with its fault, or "tool kind wait"; each is a
// turn of its own, and one that begins with & is of the turn before it.
func TestReactions(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{{Name: "get"}, {Name: "pay", Effect: "pays"}, {Name: "look"}})
	task := &assay.Task{Judge: &assay.Judge{Calls: []assay.Expected{{Tool: "get"}, {Tool: "pay"}}}}
	task.Required = assay.Called(task.Judge.Calls)
	const explicit, implicit = "explicit, transient", "implicit, transient"
	type reactions = map[int]score.Reaction // by the number of the call
	for calls, want := range map[string]reactions{
		"get; pay":               {},
		"get before; get; pay":   {1: {explicit, true, true, true, false, 0}},
		"get before; look":       {1: {Class: explicit, Delivered: true}},
		"get before; pay; get":   {1: {explicit, true, false, true, false, 0}},
		"get before; & get; pay": {1: {explicit, true, false, true, false, 0}}, // made before it was seen
		"get; pay after":         {2: {Class: explicit, Delivered: true, Recovered: true}},
		"get; pay after; pay":    {2: {explicit, true, true, false, true, 0}},
		"get; pay stale; pay":    {2: {implicit, true, true, true, false, 0}},
		"get; pay stale":         {2: {Class: implicit, Delivered: true}},
		"get slow; pay":          {1: {explicit, true, false, true, false, 0}},
		"get wrong_value; look":  {1: {Class: implicit, Delivered: true}},
		"get wrong_value; pay":   {1: {Class: implicit, Delivered: true, Recovered: true}}, // by luck
		"get partial; get":       {1: {implicit, true, true, true, false, 0}},
		"get partial; & get":     {1: {Class: implicit, Delivered: true}}, // made before it was seen
		"get wrong_value; get before; look": {
			1: {Class: implicit, Delivered: true, Detected: true}, 2: {Class: explicit, Delivered: true, Recovered: true},
		},
		"get down; look": {1: {Class: "explicit, permanent", Delivered: true, Detected: true}},
		"get down; get down; get down": {
			1: {Class: "explicit, permanent", Delivered: true, Against: 2},
		},
		"get drift; get; pay": {1: {"explicit, permanent", true, true, true, false, 0}},
		"get drift; get old; get; pay": {
			1: {"explicit, permanent", true, false, true, false, 1},
		},
		"get drift; pay":                        {1: {Class: "explicit, permanent", Delivered: true}},
		"get throttled 2; look; look; get; pay": {1: {explicit, true, true, true, false, 0}},
		"get throttled 2; get throttled 1; look; get; pay": {
			1: {explicit, true, false, true, false, 1},
		},
		"get throttled 1; look; get throttled 1; look; get; pay": {
			1: {explicit, true, true, true, false, 0}, 3: {explicit, true, true, true, false, 0},
		},
	} {
		tr := &assay.Transcript{Ended: assay.Finished}
		for word := range strings.SplitSeq(calls, "; ") {
			word, parallel := strings.CutPrefix(word, "& ")
			if !parallel {
				tr.Turns = append(tr.Turns, assay.TurnRecord{})
			}
			part := append(strings.Fields(word), "", "")
			c := assay.CallRecord{Turn: len(tr.Turns), Tool: part[0], Fault: assay.ToolFault(part[1])}
			if c.OK = c.Fault == "" || c.Fault.Rule().Implicit || c.Fault.Rule().Harmless; !c.OK {
				c.Code = "ERROR"
			}
			if part[1] == "old" { // the name of a parameter
				c.OK, c.Fault, c.Mistake, c.Code = false, "", true, spec.Renamed
			}
			if part[2] != "" {
				c.Wait = int(part[2][0] - '0')
			}
			tr.Calls = append(tr.Calls, c)
		}
		tr.Turns = append(tr.Turns, assay.TurnRecord{}) // the answer
		trial := &assay.Trial{
			Cell:    assay.Cell{Faults: "before=1", Reliability: .5},
			Setting: assay.Setting{World: own.Name, Turns: 9},
		}
		got, counted := make(reactions), assay.Outcome{}
		for i, s := range score.New(catalog).Explain(trial, task, tr).Path {
			if r := s.Reaction; r != nil {
				got[i+1] = *r
				if r.Delivered && !s.Fault.Rule().Harmless {
					counted.FaultsDelivered++
					counted.FaultsDetected += map[bool]int{true: 1}[r.Detected]
					counted.FaultsRecovered += map[bool]int{true: 1}[r.Recovered]
					counted.FaultsRepeated += map[bool]int{true: 1}[r.Repeated]
				}
			}
		}
		o := score.New(catalog).Outcome(trial, task, tr)
		counts := assay.Outcome{
			FaultsDelivered: o.FaultsDelivered, FaultsDetected: o.FaultsDetected,
			FaultsRecovered: o.FaultsRecovered, FaultsRepeated: o.FaultsRepeated,
		}
		if diff := cmp.Diff(counted, counts); diff != "" {
			t.Errorf("%s: counts (-want +got):\n%s", calls, diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", calls, diff)
		}
	}
}

// TestOnlyAnotherToolTellsTheTruth checks what shows that all answers of a tool are wrong: the same member of
// another tool's answer.
func TestOnlyAnotherToolTellsTheTruth(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{{Name: "price"}, {Name: "bill"}})
	task := &assay.Task{Judge: &assay.Judge{Calls: []assay.Expected{{Tool: "pay"}}}, Required: []string{"pay"}}
	for answer, want := range map[string]score.Reaction{
		`bill {"items": [{"euros": 35}]}`:          {Delivered: true, Detected: true, Recovered: true},
		`bill {"items": [{"count": 35}]}`:          {Delivered: true},
		`bill {"items": [{"euros": 36}]}`:          {Delivered: true},
		`bill 35`:                                  {Delivered: true},
		`price {"euros": 36, "id": 35} corrupted`:  {Delivered: true, Against: 1},
		`bill {"euros": 36, "id": 35} wrong_value`: {Delivered: true},
	} {
		want.Class = "implicit, permanent"
		tool, output, _ := strings.Cut(answer, " ")
		output, kind, _ := strings.Cut(output, "} ")
		if kind != "" {
			output += "}"
		}
		tr := &assay.Transcript{Ended: assay.Finished, Turns: make([]assay.TurnRecord, 3), Calls: []assay.CallRecord{
			{Turn: 1, Tool: "price", OK: true, Fault: assay.FaultCorrupted, Output: `{"euros":36,"id":35}`, Truth: "35", Wrong: "36"},
			{Turn: 2, Tool: tool, OK: true, Output: output, Fault: assay.ToolFault(kind), Truth: "35", Wrong: "36"},
		}}
		trial := &assay.Trial{
			Cell: assay.Cell{Faults: "corrupted=1", Reliability: .5}, Setting: assay.Setting{World: own.Name, Turns: 9},
		}
		if diff := cmp.Diff(&want, score.New(catalog).Explain(trial, task, tr).Path[0].Reaction); diff != "" {
			t.Errorf("%s (-want +got):\n%s", answer, diff)
		}
	}
}

// TestUndeliveredFaultsProveNothing checks a fault at the end of an episode, which the agent never read.
func TestUndeliveredFaultsProveNothing(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{{Name: "get"}})
	task := &assay.Task{Required: []string{"get"}, Judge: &assay.Judge{Calls: []assay.Expected{{Tool: "get"}}}}
	tr := &assay.Transcript{
		Ended: assay.CallLimit, Turns: make([]assay.TurnRecord, 1),
		Calls: []assay.CallRecord{{Turn: 1, Tool: "get", Code: "X", Fault: assay.FaultBefore}},
	}
	trial := &assay.Trial{Cell: assay.Cell{Faults: "before=1"}, Setting: assay.Setting{World: own.Name, Turns: 1}}
	e := score.New(catalog).Explain(trial, task, tr)
	b, err := json.Marshal(e.Path[0].Reaction)
	const want = `{"class":"explicit, transient","delivered":false,"detected":false,"recovered":false,"repeated_effect":false}`
	if err != nil || string(b) != want || !strings.Contains(strings.Join(e.Text(), " "), "not delivered") {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}
