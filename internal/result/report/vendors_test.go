package report_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gotest.tools/v3/golden"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/exhibit"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// vendorsOf compares hosts with the first one. The transcript of an attempt may be nil.
func vendorsOf(
	t *testing.T, names []string, attempts map[string][]assay.Attempt,
	transcript func(*assay.Attempt) *assay.Transcript,
) *report.Vendors {
	t.Helper()
	v := report.NewVendors(names, .05)
	for i, name := range names {
		for _, a := range attempts[name] {
			v.Add(i, &a, transcript(&a))
		}
		if i == 0 {
			continue
		}
		c, err := report.Compare(names[0], name, stat.ByTask,
			all(attempts[names[0]]...), all(attempts[name]...))
		if err != nil {
			t.Fatal(err)
		}
		v.Compare(i, c)
	}
	v.Judge()
	return v
}

func noTranscript(*assay.Attempt) *assay.Transcript { return nil }

// The verdicts about hosts that differ from the reference in known ways, at a margin of 5 points.
func TestVendorVerdicts(t *testing.T) {
	t.Parallel()
	most := func(task, repeat int) bool { return (task*7+repeat*3)%10 != 0 } // 90 %
	half := func(task, repeat int) bool { return (task+repeat)%2 == 0 }
	big := version{200, 3, most}
	hosts := map[string]version{
		"official": big, "same": big, "little-worse": big.but(4), "much-worse": big.but(60),
		"half": {200, 3, half}, "few": {12, 1, most}, "some-missing": {180, 3, most},
	}
	names := []string{
		"official", "same", "little-worse", "much-worse", "half", "few", "some-missing",
	}
	attempts := make(map[string][]assay.Attempt)
	for name, v := range hosts {
		attempts[name] = v.attempts(name)
	}
	v := vendorsOf(t, names, attempts, noTranscript)
	var text strings.Builder
	for _, p := range exhibit.Vendors(v).Summary {
		fmt.Fprintf(&text, "%s: %s\n", p.Label, p.Text)
	}
	golden.Assert(t, text.String(), "vendors.txt")
	if v.Verdict != report.Different {
		t.Errorf("verdict %s, want different", v.Verdict)
	}
	for want, names := range map[report.Likeness][]string{
		report.Alike:     {"official", "same", "little-worse"},
		report.Undecided: {"official", "same", "some-missing"},
	} {
		if v := vendorsOf(t, names, attempts, noTranscript); v.Verdict != want {
			t.Errorf("%v: verdict %s, want %s", names, v.Verdict, want)
		}
	}
}

// TestConduct checks two hosts in four trials. The second one breaks the arguments of a call,
// begins with another tool once, and once with text. It also has a refusal and an error.
func TestConduct(t *testing.T) {
	t.Parallel()
	right := func(int, int) bool { return true }
	attempts := map[string][]assay.Attempt{}
	for _, name := range []string{"official", "host"} {
		attempts[name] = version{4, 1, right}.attempts(name)
		for i := range attempts[name] {
			a := &attempts[name][i]
			a.ServedModel, a.InputTokens, a.CostUSD = "k2", 100, .001
		}
	}
	refused, broken := attempts["host"][0], attempts["host"][1]
	refused.Level, refused.FaultKind = "", assay.ContentFilter
	broken.Level, broken.FaultKind = "", assay.Server
	again := attempts["host"][2]
	again.Retried = map[assay.FaultKind]int{assay.RateLimited: 2}
	attempts["host"] = append(attempts["host"], refused, broken)
	attempts["host"][2] = again

	transcript := func(a *assay.Attempt) *assay.Transcript {
		if !a.Settles() {
			return &assay.Transcript{}
		}
		call := assay.ToolCall{ID: "1", Name: "tool_call", Arguments: `{"tool": "read"}`}
		tr := &assay.Transcript{
			Messages: []assay.Message{
				{Role: assay.User, Content: "do it"},
				{Role: assay.Assistant, Calls: []assay.ToolCall{call}},
				{Role: assay.ToolRole, Content: "{}"},
				{Role: assay.Assistant, Content: "TASK_COMPLETED"},
			},
			Calls: []assay.CallRecord{{Turn: 1, Tool: "read", OK: true}},
			Turns: []assay.TurnRecord{
				{Finish: "tool_calls", WorkingMS: 1000}, {Finish: "stop", WorkingMS: 2000},
			},
		}
		if a.Model == "official" {
			return tr
		}
		switch a.Task {
		case "t0":
			tr.Messages[1].Calls[0].Arguments = `{"tool": `
			tr.Calls, tr.Turns[0].Assisted = nil, true
		case "t1":
			tr.Calls[0].Tool, tr.Calls[0].Mistake, tr.Calls[0].OK = "write", true, false
		case "t2":
			tr.Messages[1].Calls, tr.Calls = nil, nil
			tr.Messages[1].Content, tr.Turns[0].Finish, tr.Turns[0].Assisted = "Sure!", "stop", true
		}
		return tr
	}
	v := vendorsOf(t, []string{"official", "host"}, attempts, transcript)
	c := v.All[1].Conduct
	c.Usage, c.USD = assay.Usage{}, 0
	want := report.Conduct{
		Settled: 4, Full: 4, Faults: 2, Refusals: 1,
		FaultKinds: map[assay.FaultKind]int{assay.ContentFilter: 1, assay.Server: 1},
		Retried:    map[assay.FaultKind]int{assay.RateLimited: 2},
		Replies:    8, Idle: 1, Calls: 3, Unparsed: 1, Mistaken: 1,
		Finish: map[string]int{"tool_calls": 3, "stop": 5}, Median: 2, P95: 2,
		Served: []string{"k2"}, Deviations: []string{},
	}
	opts := cmp.FilterPath(func(p cmp.Path) bool {
		name := p.Last().String()
		return name == ".seconds" || name == ".seen"
	}, cmp.Ignore())
	if diff := cmp.Diff(want, c, opts); diff != "" {
		t.Errorf("conduct (-want +got):\n%s", diff)
	}
	first := report.First{Pairs: 4, Both: 3, OnlyReference: 1, Compared: 2, SameTool: 1}
	if diff := cmp.Diff(first, v.All[1].Against.First); diff != "" {
		t.Errorf("first replies (-want +got):\n%s", diff)
	}
	if f1 := v.All[1].Against.First.F1(); f1 < .857 || f1 > .858 { // 6/7
		t.Errorf("F1 %g, want 6/7", f1)
	}
	var text bytes.Buffer
	if err := exhibit.Vendors(v).WriteText(&text, document.Terminal{}); err != nil {
		t.Fatal(err)
	}
	golden.Assert(t, text.String(), "conduct.txt")
}
