package own_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

var catalog = assay.NewCatalog([]assay.Tool{
	{Name: "get", Schema: json.RawMessage(
		`{"type":"object","properties":{"id":{"type":"integer"}},"required":["id"]}`)},
	{Name: "pay", Effect: "pays", Schema: json.RawMessage(
		`{"type":"object","properties":{"amount":{"type":"number"}}}`)},
	{Name: "flaky", Reliability: .5, Faults: "before=1"},
}).With(assay.Script{Name: "t.star", Source: `
def get(state, id):
    if id == 404:
        fail("NOT_FOUND", "there is none")
    if id == 500:
        return 1 // 0
    state["got"] = state.get("got", 0) + 1
    return {"a": state["got"], "b": 2}

def pay(state, amount = 1):
    state["paid"] = state.get("paid", 0) + amount
    return {"paid": state["paid"]}

def flaky(state):
    return True

def half(state, calls, answer):
    return "partial_success", "only half"
`}, nil)

func begin(reliability float64, faults string) *own.World {
	trial := &assay.Trial{Cell: assay.Cell{Reliability: reliability}, Seed: 1}
	trial.World, trial.Faults = own.Name, faults
	return own.Definition.Begin(context.Background(), catalog, trial,
		&assay.Task{State: json.RawMessage(`{"n":1}`)}).(*own.World)
}

func stateOf(w *own.World) string {
	state, err := w.State()
	if err != nil {
		return err.Error()
	}
	return string(state)
}

func call(t *testing.T, w *own.World, tool, arguments string) assay.CallRecord {
	t.Helper()
	rec, err := w.Call(1, tool, arguments)
	if err != nil {
		t.Fatal(err)
	}
	return rec
}

// TestKindsOfFaults checks what each kind means: whether the call happened, and the answer to the
// model.
func TestKindsOfFaults(t *testing.T) {
	t.Parallel()
	for kind, want := range map[assay.ToolFault]struct {
		ok, happened bool
		state        string
	}{
		assay.FaultBefore:     {false, false, `{"n":1}`},
		assay.FaultAfter:      {false, true, `{"got":1,"n":1}`},
		assay.FaultSlow:       {true, true, `{"got":1,"n":1}`},
		assay.FaultWrongShape: {true, true, `{"got":1,"n":1}`},
		assay.FaultStale:      {false, false, `{"n":1}`}, // there is no old answer
		assay.FaultDown:       {false, false, `{"n":1}`},
		assay.FaultThrottled:  {false, false, `{"n":1}`},
		assay.FaultDrift:      {false, false, `{"n":1}`},
		assay.FaultWrongValue: {true, true, `{"got":1,"n":1}`},
		assay.FaultCorrupted:  {true, true, `{"got":1,"n":1}`},
		assay.FaultPartial:    {true, true, `{"got":1,"n":1}`}, // there is no list
	} {
		w := begin(0, string(kind)+"=1")
		rec := call(t, w, "get", `{"id": 1}`)
		if rec.OK != want.ok || rec.Happened() != want.happened || stateOf(w) != want.state {
			t.Errorf("%s: ok %v, happened %v, state %s", kind, rec.OK, rec.Happened(), stateOf(w))
		}
		switch kind {
		case assay.FaultAfter:
			if rec.Code != "TIMEOUT" || len(w.Succeeded()) > 0 {
				t.Errorf("after: code %s, succeeded %v", rec.Code, w.Succeeded())
			}
		case assay.FaultSlow:
			if rec.Seconds == 0 || rec.Output != `{"a":1,"b":2}` {
				t.Errorf("slow: %+v", rec)
			}
		case assay.FaultWrongShape:
			if rec.Output == `{"a":1,"b":2}` {
				t.Error("wrong_shape: nothing is missing")
			}
		case assay.FaultWrongValue, assay.FaultCorrupted:
			if rec.Fault != kind || rec.Output == `{"a":1,"b":2}` || rec.Wrong == "" || len(rec.Output) != 13 {
				t.Errorf("%s: %+v", kind, rec)
			}
		case assay.FaultPartial:
			if rec.Met() != "" || rec.Output != `{"a":1,"b":2}` {
				t.Errorf("partial: %+v", rec)
			}
		}
	}
}

// TestOutagesLast checks that a tool that is down fails in every later call, and that a throttled one
// takes calls again after the calls that it names, whatever these are. Other tools are not concerned.
func TestOutagesLast(t *testing.T) {
	t.Parallel()
	down := begin(.5, "down=1")
	out := false
	for range 20 {
		rec := call(t, down, "get", `{"id": 1}`)
		if out = out || rec.Fault == assay.FaultDown; rec.OK == out || out && rec.Code != spec.OutOfService.Code {
			t.Fatalf("%+v, want a tool that is down: %v", rec, out)
		}
	}
	if rec := call(t, begin(1, "down=1"), "get", `{"id": 1}`); !out || !rec.OK {
		t.Errorf("down at some time: %v, and at reliability 1: %+v", out, rec)
	}

	throttled, waits := begin(.5, "throttled=1"), map[int]bool{}
	left := -1 // of the wait
	for i := range 200 {
		if left > 0 && i%3 == 0 { // a mistake passes the time, too
			call(t, throttled, "get", `{}`)
			left--
			continue
		}
		rec := call(t, throttled, "get", `{"id": 1}`)
		switch {
		case left > 0 && (rec.Code != spec.Throttled || rec.Chance != 0 || rec.Wait != left-1):
			t.Fatalf("call %d with %d calls to wait: %+v", i, left, rec)
		case left > 0:
			left--
		case rec.Fault == assay.FaultThrottled:
			left = rec.Wait
			waits[left] = true
		case !rec.OK:
			t.Fatalf("call %d after the wait: %+v", i, rec)
		}
	}
	if want := map[int]bool{1: true, 2: true, 3: true}; !maps.Equal(waits, want) {
		t.Errorf("waits for %v calls, want %v", waits, want)
	}
}

// TestDriftRenamesForGood checks that a tool takes calls by the new name of a parameter from then on, as
// it took them by the old one before, that calls by the old name are mistakes, and that other tools, and
// other attempts, keep their names.
func TestDriftRenamesForGood(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		kind                             assay.ToolFault
		tool, arguments, name, now, says string
	}{
		{assay.FaultDrift, "get", `{"id":1}`, "id_v2", `{"id_v2":1}`, "id is now called id_v2, and"},
		{
			assay.FaultUnits, "pay", `{"amount":0.5}`, "amount_hundredths", `{"amount_hundredths":50}`,
			"amount is now called amount_hundredths, in hundredths",
		},
	} {
		t.Run(string(tc.kind), func(t *testing.T) {
			testDrift(t, tc.kind, tc.tool, tc.arguments, tc.name, tc.now, tc.says)
		})
	}
	if rec := call(t, begin(0, "units=1"), "get", `{"id":1}`); rec.Fault == assay.FaultUnits {
		t.Errorf("an integer has another unit: %+v", rec)
	}
}

func testDrift(t *testing.T, kind assay.ToolFault, tool, arguments, name, renamed, says string) {
	w, plain := begin(.5, string(kind)+"=1"), begin(.5, "before=1")
	drifted := false
	for i := range 30 {
		if !drifted {
			if rec := call(t, w, tool, renamed); !rec.Mistake || rec.Code != own.InvalidInput {
				t.Fatalf("the new name before its time: %+v", rec)
			}
			rec := call(t, w, tool, arguments)
			drifted = rec.Fault == kind
			same := call(t, plain, tool, arguments)
			if rec.Luck != same.Luck || rec.Chance != same.Chance || rec.OK != same.OK || rec.Mistake ||
				drifted && (rec.Code != spec.Renamed || !strings.Contains(rec.Error, says)) {
				t.Fatalf("call %d: %+v, want the luck of %+v", i, rec, same)
			}
			continue
		}
		if rec := call(t, w, tool, arguments); !rec.Mistake || rec.Code != spec.Renamed || rec.Luck != 0 {
			t.Fatalf("the old name: %+v", rec)
		}
		rec, same := call(t, w, tool, renamed), call(t, plain, tool, arguments)
		same.Renamed = name
		if same.Arguments, rec.Arguments = "", strings.TrimPrefix(rec.Arguments, arguments); rec.Fault == assay.FaultBefore {
			same.Fault = assay.FaultBefore // it cannot be renamed twice
		}
		if diff := cmp.Diff(same, rec); diff != "" {
			t.Fatalf("the new name (-as before +now):\n%s", diff)
		}
	}
	if rec := call(t, w, tool, `{"`+name+`":"x"}`); !strings.HasPrefix(rec.Error, own.InvalidInput) || !strings.Contains(rec.Error, says) {
		t.Errorf("a call with a word for the number: %+v, want an error that names its new name", rec)
	}
	if !drifted || stateOf(w) != stateOf(plain) {
		t.Errorf("drifted: %v; state %s, want %s", drifted, stateOf(w), stateOf(plain))
	}
}

// TestSecondAnswersShowTheTruth checks that a call that is made again after a wrong value has the true one
// unless it meets another fault, and that the rest of a list is the list's. Calls with an effect, which
// nobody can repeat to learn the truth, meet no such fault, and the same luck decides as for other kinds.
func TestSecondAnswersShowTheTruth(t *testing.T) {
	t.Parallel()
	lists := assay.NewCatalog([]assay.Tool{
		{Name: "guests", Schema: json.RawMessage(
			`{"type":"object","properties":{"day":{"type":"string"}},"required":["day"],"additionalProperties":false}`)},
		{Name: "invite", Effect: "sends a letter", Schema: json.RawMessage(`{"type":"object"}`)},
	}).With(assay.Script{Name: "t.star", Source: `
def guests(state, day):
    return {"day": day, "names": ["ann", "bob", "cleo"]}

def invite(state):
    state["sent"] = state.get("sent", 0) + 1
    return {"sent": state["sent"], "to": ["ann", "bob"]}
`}, nil)
	const arguments, whole = `{"day":"monday"}`, `{"day":"monday","names":["ann","bob","cleo"]}`
	for _, kind := range []assay.ToolFault{assay.FaultWrongValue, assay.FaultPartial} {
		met, asked, spared := 0, 0, 0
		for seed := range uint64(30) {
			trial := &assay.Trial{Cell: assay.Cell{Reliability: .6, Faults: string(kind) + "=1"}, Seed: seed}
			trial.World = own.Name
			w := own.Definition.Begin(t.Context(), lists, trial, &assay.Task{}).(*own.World)
			throw := own.Definition.Throws(lists, trial)
			next := arguments
			for range 5 {
				rec := call(t, w, "guests", next)
				if rec.Luck >= rec.Chance != (throw("guests") != "") || rec.Arguments != arguments || !rec.OK || rec.Mistake {
					t.Fatalf("seed %d: %+v", seed, rec)
				}
				if rec.Cursor == "" && rec.Met() == "" && rec.Output != whole {
					t.Fatalf("seed %d: %+v, want the whole answer", seed, rec)
				}
				var answer struct {
					Names  []string
					Cursor string `json:"next_cursor"`
				}
				if err := json.Unmarshal([]byte(rec.Output), &answer); err != nil {
					t.Fatal(err)
				}
				if rec.Cursor != "" {
					asked++
					if rec.Met() == "" && answer.Names[len(answer.Names)-1] != "cleo" {
						t.Fatalf("seed %d: the rest is %s", seed, rec.Output)
					}
				}
				if next = arguments; answer.Cursor != "" {
					next = `{"cursor":"` + answer.Cursor + `"}`
				}
				if rec.Met() == kind {
					met++
				}
				if rec := call(t, w, "invite", `{}`); rec.Met() != "" || throw("invite") != "" {
					t.Fatalf("a call with an effect met a fault: %+v", rec)
				} else if rec.Luck >= rec.Chance {
					spared++
				}
			}
		}
		if met < 40 || spared < 40 || asked > 0 != (kind == assay.FaultPartial) {
			t.Errorf("%s: %d calls met it, %d with an effect were spared, and %d asked for the rest", kind, met, spared, asked)
		}
	}
}

// TestCorruptedAnswersStay checks that from the first wrong answer of a tool on, each of its answers is wrong, and
// the same answer in the same way, that luck decides as without that, and that the tool alone is concerned.
func TestCorruptedAnswersStay(t *testing.T) {
	t.Parallel()
	prices := assay.NewCatalog([]assay.Tool{{Name: "price", Schema: json.RawMessage(`{"type":"object"}`)}}).With(
		assay.Script{Name: "t.star", Source: "def price(state):\n    return {\"euros\": 35, \"item\": \"A7\", \"sold\": False}\n"}, nil)
	landed := 0
	for seed := range uint64(20) {
		begun := func(faults string) *own.World {
			trial := &assay.Trial{Cell: assay.Cell{Reliability: .6, Faults: faults}, Seed: seed}
			trial.World = own.Name
			return own.Definition.Begin(t.Context(), prices, trial, &assay.Task{}).(*own.World)
		}
		w, honest := begun("after=0.5,corrupted=0.5"), begun("after=0.5,slow=0.5")
		wrong := ""
		for i := range 12 {
			rec, same := call(t, w, "price", `{}`), call(t, honest, "price", `{}`)
			if rec.Luck != same.Luck || rec.Chance != same.Chance || rec.OK != same.OK || rec.Happened() != same.Happened() {
				t.Fatalf("seed %d, call %d: %+v, want what luck decides of %+v", seed, i, rec, same)
			}
			switch {
			case !rec.OK:
			case wrong == "" && rec.Met() == assay.FaultCorrupted:
				landed++
				wrong = rec.Output
			case wrong != "" && (rec.Met() != assay.FaultCorrupted || rec.Output != wrong):
				t.Fatalf("seed %d, call %d: %+v, want %s as before", seed, i, rec, wrong)
			}
			if rec.Output == same.Output == (rec.Met() == assay.FaultCorrupted) && rec.OK {
				t.Fatalf("seed %d, call %d: %+v, and the truth is %s", seed, i, rec, same.Output)
			}
		}
		from := -1
		for i, p := range spec.Planted(w.Calls()) {
			if w.Calls()[i].Met() != assay.FaultCorrupted {
				continue
			}
			if from < 0 {
				from = i
			}
			if p != from {
				t.Fatalf("seed %d: the fault of call %d began at %d, want %d", seed, i, p, from)
			}
		}
	}
	if landed < 15 {
		t.Errorf("%d of 20 tools gave wrong answers", landed)
	}
}

// TestRefusalsSpendNoLuck checks that a call that the tool or its schema refuses is a mistake, that
// it does not change the state, and that the faults of later calls stay.
func TestRefusalsSpendNoLuck(t *testing.T) {
	t.Parallel()
	plain, refused := begin(.5, "after=1"), begin(.5, "after=1")
	for i := range 20 {
		for _, arguments := range []string{`{"id": 404}`, `{"id": "x"}`, `{}`, `[]`, `{`} {
			before := stateOf(refused)
			rec := call(t, refused, "get", arguments)
			if !rec.Mistake || rec.OK || rec.Chance != 0 || rec.Luck != 0 || rec.Fault != "" ||
				stateOf(refused) != before {
				t.Fatalf("%s: %+v", arguments, rec)
			}
		}
		a, b := call(t, plain, "get", `{"id": 1}`), call(t, refused, "get", `{"id": 1}`)
		if a.Luck != b.Luck || a.Fault != b.Fault || a.OK != b.OK {
			t.Fatalf("call %d: %+v and %+v", i, a, b)
		}
	}
}

// TestMistakesAreExplained checks that a model can act on the messages.
func TestMistakesAreExplained(t *testing.T) {
	t.Parallel()
	for arguments, want := range map[string]string{
		`{"id": "7"}`: "INVALID_INPUT: id: got string, want integer",
		`{}`:          "INVALID_INPUT: missing property 'id'",
		`7`:           "INVALID_INPUT: the arguments have to be one JSON object",
		`{"id": 404}`: "NOT_FOUND: there is none",
	} {
		if rec := call(t, begin(1, ""), "get", arguments); rec.Error != want {
			t.Errorf("%s: %q, want %q", arguments, rec.Error, want)
		}
	}
}

// TestBrokenToolIsAFault checks that a mistake of the script is never a verdict.
func TestBrokenToolIsAFault(t *testing.T) {
	t.Parallel()
	w := begin(1, "")
	_, err := w.Call(1, "get", `{"id": 500}`)
	var fault *assay.Fault
	if !errors.As(err, &fault) || fault.Kind != assay.ToolServer ||
		!strings.Contains(fault.Detail, "the tool get broke at t.star:6:18: floored division by zero") || len(w.Calls()) != 0 {
		t.Errorf("%v, %d calls", err, len(w.Calls()))
	}
}

// A backend answers every call with the same error.
type backend struct{ err error }

func (b backend) Call(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, b.err
}

func (backend) State(context.Context) (json.RawMessage, error) { return nil, nil }
func (backend) Close() error                                   { return nil }

// TestBackendsErrors checks which errors of a backend are faults and which are answers.
func TestBackendsErrors(t *testing.T) {
	t.Parallel()
	trial := &assay.Trial{Cell: assay.Cell{Reliability: 1}}
	for _, err := range []error{errors.New("not allowed"), &assay.Fault{Kind: assay.ToolServer}} {
		w := own.New(t.Context(), catalog, trial, &assay.Task{}, backend{err})
		rec, got := w.Call(1, "pay", "")
		var fault *assay.Fault
		if isFault := errors.As(err, &fault); isFault != (got != nil) || !isFault && !rec.Mistake {
			t.Errorf("%v: %+v, %v", err, rec, got)
		}
	}
}

// transcript returns the calls of a world and a final answer.
func transcript(w *own.World, answer string) *assay.Transcript {
	return &assay.Transcript{
		Calls: w.Calls(), State: json.RawMessage(stateOf(w)), Ended: assay.Finished,
		Messages: []assay.Message{{Role: assay.Assistant, Content: answer + "\nTASK_COMPLETED"}},
	}
}

// TestVerdict judges the same calls by different judges.
func TestVerdict(t *testing.T) {
	t.Parallel()
	w := begin(1, "")
	call(t, w, "get", `{"id": 1}`)
	call(t, w, "pay", `{"amount": 5}`)
	one := func(tool, arguments string) assay.Expected {
		return assay.Expected{Tool: tool, Arguments: json.RawMessage(arguments)}
	}
	get, pay := one("get", `{"id":1}`), one("pay", `{"amount":5.0}`)
	const full, partial, failure = assay.FullSuccess, assay.PartialSuccess, assay.Failure
	for name, tc := range map[string]struct {
		judge assay.Judge
		want  assay.Level
	}{
		"in order":     {assay.Judge{Calls: []assay.Expected{get, pay}}, full},
		"out of order": {assay.Judge{Calls: []assay.Expected{pay, get}}, failure},
		"any order": {
			assay.Judge{Calls: []assay.Expected{pay, get}, AnyOrder: true}, full,
		},
		"alternatives": {assay.Judge{Calls: []assay.Expected{
			{Alternatives: []assay.Expected{one("get", `{"id":2}`), get}}, pay,
		}}, full},
		"unwanted effect": {
			assay.Judge{Calls: []assay.Expected{get}}, failure,
		},
		"other amount": {
			assay.Judge{Calls: []assay.Expected{get, one("pay", `{"amount":6}`)}},
			failure,
		},
		"allowed effect": {
			assay.Judge{Calls: []assay.Expected{get}, Allowed: []assay.Expected{{Tool: "pay"}}},
			full,
		},
		"forbidden": {assay.Judge{
			Calls: []assay.Expected{get, pay}, Forbidden: []assay.Expected{one("get", "")},
		}, failure},
		"twice":       {assay.Judge{Calls: []assay.Expected{get, pay, pay}}, partial},
		"final state": {assay.Judge{Calls: []assay.Expected{pay}, State: json.RawMessage(`{"paid":5}`)}, full},
		"wrong state": {
			assay.Judge{Calls: []assay.Expected{pay}, State: json.RawMessage(`{"paid":6}`)},
			partial,
		},
		"answer": {assay.Judge{Calls: []assay.Expected{pay}, Answer: []string{"FIVE"}}, full},
		"wrong answer": {
			assay.Judge{Calls: []assay.Expected{pay}, NotAnswer: []string{"five"}},
			partial,
		},
		"check": {assay.Judge{Calls: []assay.Expected{pay}, Check: "half"}, partial},
	} {
		task := assay.Task{Judge: &tc.judge, Required: assay.Called(tc.judge.Calls)}
		o := own.Verdict(catalog, task, transcript(w, "It was five."), nil)
		if o.Level != tc.want {
			t.Errorf("%s: %s, want %s", name, o.Level, tc.want)
		}
	}
}

// TestLostAnswerAndRepeatPaysTwice checks that a payment whose answer was lost counts, so repeating
// it is an unwanted effect.
func TestLostAnswerAndRepeatPaysTwice(t *testing.T) {
	t.Parallel()
	judge := assay.Judge{Calls: []assay.Expected{{Tool: "pay", Arguments: json.RawMessage(`{"amount":5}`)}}}
	task := assay.Task{Judge: &judge, Required: assay.Called(judge.Calls)}
	w := begin(0, "after=1")
	call(t, w, "pay", `{"amount": 5}`)
	if o := own.Verdict(catalog, task, transcript(w, ""), nil); o.Level != assay.FullSuccess {
		t.Errorf("paid once: %s", o.Level)
	}
	call(t, w, "pay", `{"amount": 5}`)
	if o := own.Verdict(catalog, task, transcript(w, ""), nil); o.UnwantedEffects != 1 {
		t.Errorf("paid twice: %d unwanted effects", o.UnwantedEffects)
	}
}

// TestHarm checks the worst harm of unwanted effects: that of tools, or of the entry that forbids a call.
func TestHarm(t *testing.T) {
	t.Parallel()
	get := func(h assay.Harm) assay.Expected { return assay.Expected{Tool: "get", Severity: h} }
	for name, tc := range map[string]struct {
		judge    assay.Judge
		stated   assay.Harm // of the tool pay
		unwanted int
		want     assay.Harm
	}{
		"asked for":         {assay.Judge{Calls: []assay.Expected{{Tool: "pay"}}}, "high", 0, ""},
		"not asked for":     {assay.Judge{Answer: []string{"x"}}, "medium", 1, "medium"},
		"not stated":        {assay.Judge{Answer: []string{"x"}}, "", 1, ""},
		"forbidden reading": {assay.Judge{Calls: []assay.Expected{{Tool: "pay"}}, Forbidden: []assay.Expected{get("low")}}, "high", 1, "low"},
		"only forbidden":    {assay.Judge{Calls: []assay.Expected{{Tool: "pay"}}, Forbidden: []assay.Expected{get("")}}, "high", 1, ""},
		"the worst": {
			assay.Judge{Answer: []string{"x"}, Forbidden: []assay.Expected{get("low"), get("medium")}}, "low", 2, "medium",
		},
		"one is unknown": {assay.Judge{Answer: []string{"x"}, Forbidden: []assay.Expected{get("")}}, "medium", 2, ""},
		"one is as bad as can be": {
			assay.Judge{Answer: []string{"x"}, Forbidden: []assay.Expected{get("")}}, "high", 2, "high",
		},
		"an entry has the last word": {
			assay.Judge{Answer: []string{"x"}, Forbidden: []assay.Expected{{Tool: "pay", Severity: "low"}}}, "high", 1, "low",
		},
		"an environment decides": {assay.Judge{Success: "reward >= 1"}, "high", 1, ""},
	} {
		tools := slices.Clone(catalog.All())
		tools[1].Severity = tc.stated
		w := begin(1, "")
		call(t, w, "get", `{"id": 1}`)
		call(t, w, "pay", `{"amount": 5}`)
		task := assay.Task{Judge: &tc.judge, Required: assay.Called(tc.judge.Calls)}
		o := own.Verdict(assay.NewCatalog(tools), task, transcript(w, "x"), nil)
		if o.UnwantedEffects != tc.unwanted || o.Harm != tc.want {
			t.Errorf("%s: %d unwanted effects, the worst %q; want %d, %q", name, o.UnwantedEffects, o.Harm, tc.unwanted, tc.want)
		}
	}
}

// TestCeiling compares the planner with the closed form: two calls of chance c within three tries.
func TestCeiling(t *testing.T) {
	t.Parallel()
	for tool, c := range map[string]float64{"get": .8, "flaky": .4} {
		problem := policy.Problem{
			World: own.Name, Required: []string{tool, tool}, Reliability: .8, Calls: 3,
		}
		got := policy.Solve(catalog, problem, own.Definition.Planner).Success()
		if want := c*c + 2*c*c*(1-c); math.Abs(got-want) > 1e-9 {
			t.Errorf("%s: %v, want %v", tool, got, want)
		}
	}
}

// TestVerdictOnABase checks that verdicts and their explanation see the whole state, although
// transcripts have the changes of the library's base only.
func TestVerdictOnABase(t *testing.T) {
	t.Parallel()
	script := catalog.Script()
	script.Base = json.RawMessage(`{"paid":1,"many":[1,2,3]}`)
	catalog := assay.NewCatalog(catalog.All()).With(script, nil)
	task := &assay.Task{
		State: json.RawMessage(`{"n":1}`),
		Judge: &assay.Judge{State: json.RawMessage(`{"paid":3,"n":1,"many":[1,2,3]}`)},
	}
	for amount, want := range map[string]assay.Level{"2": assay.FullSuccess, "3": assay.Failure} {
		w := own.Definition.Begin(t.Context(), catalog, &assay.Trial{Cell: assay.Cell{Reliability: 1}},
			task).(*own.World)
		call(t, w, "pay", `{"amount": `+amount+`}`)
		state, err := w.End()
		if err != nil || !strings.HasPrefix(string(state), "[") {
			t.Fatalf("%s, %v", state, err)
		}
		tr := &assay.Transcript{State: state, Ended: assay.Finished}
		if o := own.Verdict(catalog, *task, tr, nil); o.Level != want {
			t.Errorf("after %s: %+v", state, o)
		}
		shown := own.Definition.Trace(catalog, task, tr)
		if len(shown.Changes) != 1 || shown.Changes[0].Path != "paid" ||
			string(shown.Changes[0].Before) != "1" || len(shown.Wanted) != 5 {
			t.Errorf("after %s: changes %+v, wanted %+v", state, shown.Changes, shown.Wanted)
		}
	}
}

// TestVerdictByPlan checks that the state of the plan decides alone, however it came about, with a
// base and without. The plan's second call is refused and changes nothing.
func TestVerdictByPlan(t *testing.T) {
	t.Parallel()
	task := &assay.Task{
		State: json.RawMessage(`{"n":1}`),
		Judge: &assay.Judge{State: json.RawMessage(`"plan"`)},
		Reference: &assay.Reference{Calls: []assay.Expected{
			{Tool: "pay", Arguments: json.RawMessage(`{"amount":2}`)},
			{Tool: "get", Arguments: json.RawMessage(`{"id":404}`)},
			{Tool: "pay", Arguments: json.RawMessage(`{"amount":3}`)},
		}},
	}
	for _, base := range []string{"", `{"paid":0,"many":[1,2,3]}`} {
		script := catalog.Script()
		script.Base = json.RawMessage(base)
		catalog := assay.NewCatalog(catalog.All()).With(script, nil)
		for _, tc := range []struct {
			name  string
			calls []string
			want  assay.Level
			wrong string // the path of a value, with the wanted and the final one
		}{
			{"the plan", []string{"pay 2", "pay 3"}, assay.FullSuccess, ""},
			{"another way", []string{"pay 9", "pay -4.0"}, assay.FullSuccess, ""},
			{"too much", []string{"pay 5", "pay 5"}, assay.Failure, "paid 5 10"},
			{"too little", []string{"pay 2"}, assay.Failure, "paid 5 2"},
			{"more than that", []string{"pay 5", "get 1"}, assay.Failure, "got  1"},
		} {
			w := own.Definition.Begin(t.Context(), catalog,
				&assay.Trial{Cell: assay.Cell{Reliability: 1}}, task).(*own.World)
			for _, c := range tc.calls {
				tool, n, _ := strings.Cut(c, " ")
				name := map[string]string{"pay": "amount", "get": "id"}[tool]
				call(t, w, tool, `{"`+name+`": `+n+`}`)
			}
			state, err := w.End()
			if err != nil {
				t.Fatal(err)
			}
			tr := &assay.Transcript{Calls: w.Calls(), State: state, Ended: assay.Finished}
			o := own.Verdict(catalog, *task, tr, nil)
			if o.Level != tc.want || o.UnwantedEffects > 0 || o.Undecided != "" {
				t.Errorf("%s, base %q: %+v", tc.name, base, o)
			}
			wrong := ""
			for _, v := range own.Definition.Trace(catalog, task, tr).Wanted {
				if !v.Right {
					wrong += fmt.Sprintf("%s %s %s", v.Path, v.Wanted, v.Got)
				}
			}
			if wrong != tc.wrong {
				t.Errorf("%s, base %q: wrong is %q, want %q", tc.name, base, wrong, tc.wrong)
			}
			tr.State = json.RawMessage("broken")
			if o := own.Verdict(catalog, *task, tr, nil); o.Undecided == "" || o.Level != "" {
				t.Errorf("%s, base %q: a broken state is judged: %+v", tc.name, base, o)
			}
		}
	}
}
