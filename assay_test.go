package assay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

var (
	ref  = assay.TaskRef{ID: "t1", Digest: "d1"}
	cell = assay.Cell{
		Model: "m", Variant: "optimal", Difficulty: "easy", TaskType: "basic_task", Reliability: 0.8,
	}
	setting = assay.Setting{World: "pilot", Protocol: "native", Tools: "discover", Turns: 10}
)

func trial() assay.Trial { return assay.NewTrial(cell, ref, setting, 2025, 1) }

func with(change func(*assay.Setting)) assay.Trial {
	set := setting
	change(&set)
	return assay.NewTrial(cell, ref, set, 2025, 1)
}

// TestTrialIdentityIsPinned fixes some IDs. If one changes, every store runs its trials again.
func TestTrialIdentityIsPinned(t *testing.T) {
	t.Parallel()
	plain := trial()
	if plain.ID != "741abf303c6172f02d75106cdb3049ac" || plain.Seed != 6499444289095762 {
		t.Errorf("trial %s with seed %d", plain.ID, plain.Seed)
	}

	limited := with(func(s *assay.Setting) { s.Tokens, s.USD = 50_000, 0.5 })
	if limited.ID == plain.ID || limited.Seed != plain.Seed {
		t.Errorf("limits make trial %s with seed %d, want another ID and the same seed",
			limited.ID, limited.Seed)
	}

	warm := 0.5
	warmer := with(func(s *assay.Setting) { s.Sampling.Temperature = &warm })
	if warmer.ID != "6f5b1be04b82bc41f15909545cfbff7a" {
		t.Errorf("with a temperature: trial %s", warmer.ID)
	}

	task := assay.Task{
		ID: "t1", Type: "basic_task", Difficulty: "easy", Description: "Read it.",
		Inputs: json.RawMessage(`{"a":1}`), Required: []string{"x"},
	}
	if got := task.Digest(); got != "01ff8653929c3b8383307e9424b817d0" {
		t.Errorf("digest %s", got)
	}
}

// TestTrialIdentityCoversEveryField changes one field at a time. Each change makes another
// trial, and only the task, the repeat, the world and the seed change the trial's luck.
func TestTrialIdentityCoversEveryField(t *testing.T) {
	t.Parallel()
	base := trial()
	ids := map[assay.TrialID]string{base.ID: "the base"}
	check := func(field string, sameLuck bool, x assay.Trial) {
		if other, dup := ids[x.ID]; dup {
			t.Errorf("changing %s gives the same trial as %s", field, other)
		}
		ids[x.ID] = field
		if (x.Seed == base.Seed) != sameLuck {
			t.Errorf("%s: same luck is %v, want %v", field, x.Seed == base.Seed, sameLuck)
		}
	}

	for field, change := range map[string]func(*assay.Cell){
		"model":       func(c *assay.Cell) { c.Model = "n" },
		"variant":     func(c *assay.Cell) { c.Variant = "cot" },
		"severity":    func(c *assay.Cell) { c.Severity = "light" },
		"difficulty":  func(c *assay.Cell) { c.Difficulty = "hard" },
		"type":        func(c *assay.Cell) { c.TaskType = "simple_task" },
		"reliability": func(c *assay.Cell) { c.Reliability = 0.9 },
		"faults":      func(c *assay.Cell) { c.Faults = "after=1" },
		"phrasing":    func(c *assay.Cell) { c.Phrasing = assay.Casual },
	} {
		changed := cell
		change(&changed)
		check(field, true, assay.NewTrial(changed, ref, setting, 2025, 1))
	}
	for field, change := range map[string]func(*assay.Setting){
		"protocol":   func(s *assay.Setting) { s.Protocol = "tags" },
		"tools":      func(s *assay.Setting) { s.Tools = "listed" },
		"turns":      func(s *assay.Setting) { s.Turns = 11 },
		"calls":      func(s *assay.Setting) { s.Calls = 11 },
		"max_tokens": func(s *assay.Setting) { n := 5; s.Sampling.MaxTokens = &n },

		"sampling.seed": func(s *assay.Setting) { s.Sampling.Seed = new(int64(0)) },
		"effort":        func(s *assay.Setting) { s.Sampling.Effort = "high" },
		"thinking":      func(s *assay.Setting) { s.Sampling.Thinking = new(0) },
		"tool_choice":   func(s *assay.Setting) { s.Sampling.ToolChoice = "none" },
		"extra":         func(s *assay.Setting) { s.Sampling.Extra = `{"a":1}` },
		"headers":       func(s *assay.Setting) { s.Sampling.Headers = `{"a":"1"}` },
	} {
		check(field, true, with(change))
	}
	edited, other := assay.TaskRef{ID: "t1", Digest: "d2"}, assay.TaskRef{ID: "t2", Digest: "d1"}
	check("digest", true, assay.NewTrial(cell, edited, setting, 2025, 1))
	check("task", false, assay.NewTrial(cell, other, setting, 2025, 1))
	check("repeat", false, assay.NewTrial(cell, ref, setting, 2025, 2))
	check("seed", false, assay.NewTrial(cell, ref, setting, 2026, 1))
	check("world", false, with(func(s *assay.Setting) { s.World = "assay-1" }))
}

func TestSeedFitsEveryReader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		task := assay.TaskRef{ID: assay.TaskID(rapid.String().Draw(t, "id"))}
		seed, repeat := rapid.Int64().Draw(t, "seed"), rapid.Int().Draw(t, "repeat")
		x := assay.NewTrial(assay.Cell{}, task, assay.Setting{}, seed, repeat)
		if x.Seed >= 1<<53 {
			t.Fatalf("seed %d does not fit in a double", x.Seed)
		}
	})
}

func TestLoopRulesRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		rules := make(assay.LoopRules)
		for _, kind := range assay.LoopKinds {
			if n := rapid.IntRange(0, 9).Draw(t, string(kind)); n > 0 {
				rules[kind] = assay.LoopRule{After: n, Stop: rapid.Bool().Draw(t, "stop")}
			}
		}
		got, err := assay.ParseLoopRules(rules.String())
		if err != nil || got.String() != rules.String() {
			t.Fatalf("%s is read as %s, %v", rules, got, err)
		}
	})
	if _, err := assay.ParseLoopRules("repeat=often"); err == nil {
		t.Error("repeat=often was accepted")
	}
}

func TestAsFault(t *testing.T) {
	t.Parallel()
	auth := &assay.Fault{Kind: assay.Auth, Lane: "gw/K/m", Status: 401, Detail: "no"}
	for _, tc := range []struct {
		name string
		err  error
		want assay.FaultKind
	}{
		{"a fault", auth, assay.Auth},
		{"a wrapped fault", fmt.Errorf("turn 3: %w", auth), assay.Auth},
		{"a deadline", fmt.Errorf("x: %w", context.DeadlineExceeded), assay.Timeout},
		{"a cancellation", context.Canceled, assay.Interrupted},
		{"any other error", errors.New("nil map"), assay.Harness},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := assay.AsFault(tc.err); got.Kind != tc.want {
				t.Errorf("AsFault(%v) = %s, want %s", tc.err, got.Kind, tc.want)
			}
		})
	}
	if assay.AsFault(nil) != nil {
		t.Error("AsFault(nil) is a fault")
	}
	if got, want := auth.Error(), "gw/K/m: auth (HTTP 401): no"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	for _, k := range assay.FaultKinds {
		if k.Retryable() && k.ClosesLane() {
			t.Errorf("%s is repeated on a lane that it closes", k)
		}
	}
}

func TestCheckOfAnAttempt(t *testing.T) {
	t.Parallel()
	failed := assay.Outcome{Level: assay.Failure}
	for _, tc := range []struct {
		name string
		a    assay.Attempt
		ok   bool
	}{
		{"a fault", assay.Attempt{FaultKind: assay.Server}, true},
		{"an outcome", assay.Attempt{Outcome: failed}, true},
		{"neither", assay.Attempt{}, false},
		{"both", assay.Attempt{Outcome: failed, FaultKind: assay.Server}, false},
		{"unknown level", assay.Attempt{Outcome: assay.Outcome{Level: "success"}}, false},
		{"unknown fault", assay.Attempt{FaultKind: "flu"}, false},
		{
			"share above 1",
			assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure, Coverage: 1.1}},
			false,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if err := tc.a.Check(); (err == nil) != tc.ok {
				t.Errorf("Check() = %v, want ok %v", err, tc.ok)
			}
		})
	}
}

// TestExportedFieldsKeepTheirNames lists the fields that users' scripts rely on.
func TestExportedFieldsKeepTheirNames(t *testing.T) {
	t.Parallel()
	b, err := json.Marshal(assay.Attempt{StartedAt: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	if err != nil {
		t.Fatal(err)
	}
	var fields map[string]any
	if err := json.Unmarshal(b, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"trial", "attempt", "experiment", "run", "model", "variant", "severity", "difficulty",
		"task_type", "task", "reliability", "repeat", "seed", "world", "lane", "served_model",
		"level", "ended", "fault", "error_category", "turns", "tool_calls", "required_tools", "executed_tools",
		"coverage", "order_correct", "input_tokens", "output_tokens", "cost_usd",
		"queued_ms", "working_ms", "started_at", "finished_at",
	} {
		if _, ok := fields[name]; !ok {
			t.Errorf("the field %s is missing", name)
		}
	}
	if fields["started_at"] != "2026-01-02T03:04:05Z" {
		t.Errorf("started_at is %v, want RFC 3339 UTC", fields["started_at"])
	}
}

func TestUnlike(t *testing.T) {
	t.Parallel()
	a := assay.Attempt{Reported: "effort=medium, temperature=0.30000001, top_p=0.9, tier=flex"}
	a.Sampling = assay.Sampling{
		Effort: "High", Temperature: new(0.3), TopP: new(0.5), Thinking: new(5),
	}
	want := []string{"effort medium instead of High", "top_p 0.9 instead of 0.5"}
	if diff := cmp.Diff(want, a.Unlike()); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	a.Sampling = assay.Sampling{Extra: `{"tier":"priority","top_p":0.8,"z":{}}`}
	want = []string{"top_p 0.9 instead of 0.8", "tier flex instead of priority"}
	if diff := cmp.Diff(want, a.Unlike()); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
	a.Sampling = assay.Sampling{
		Effort: "MEDIUM", TopP: new(0.9), ToolChoice: "auto", Extra: `{"tier":"flex_only"}`,
	}
	a.Reported += ", tool_choice=none"
	if got := a.Unlike(); got != nil {
		t.Errorf("differences %v, want none", got)
	}
}

func TestWaitsAdd(t *testing.T) {
	t.Parallel()
	retried := map[assay.FaultKind]int{assay.Server: 1}
	a := assay.Waits{Queued: 1, Working: 2, Requests: 3, Retried: retried}
	sum := a.Add(a)
	if sum.Queued != 2 || sum.Working != 4 || sum.Requests != 6 || sum.Retried[assay.Server] != 2 {
		t.Errorf("sum %+v of twice %+v", sum, a)
	}
	if a.Retried[assay.Server] != 1 {
		t.Error("Add changed its receiver")
	}
}

func TestCatalogFindsTheFirstToolOfAName(t *testing.T) {
	t.Parallel()
	c := assay.NewCatalog([]assay.Tool{
		{Name: "b", Category: "1"}, {Name: "a"}, {Name: "b", Category: "2"},
	})
	if tool, ok := c.Tool("b"); !ok || tool.Category != "1" {
		t.Errorf("Tool(b) = %+v, %v", tool, ok)
	}
	if _, ok := c.Tool("c"); ok {
		t.Error("Tool(c) was found")
	}
	if got := c.Names(); !slices.Equal(got, []string{"b", "a", "b"}) {
		t.Errorf("Names() = %v", got)
	}
}

// TestFaultTableIsDocumented compares the table in the code with the one for users.
func TestFaultTableIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range assay.FaultTable {
		row := fmt.Sprintf("| `%s` | %s | %s |\n", r.Kind, r.When, r.Then)
		if !strings.Contains(string(doc), row) {
			t.Errorf("docs/files.md lacks the row\n%s", row)
		}
		if r.Retry != r.Kind.Retryable() || r.ClosesLane != r.Kind.ClosesLane() {
			t.Errorf("%s does not behave as its rule %+v", r.Kind, r)
		}
	}
}

func BenchmarkNewTrial(b *testing.B) {
	task := assay.TaskRef{ID: "t1", Digest: "01ff8653929c3b8383307e9424b817d0"}
	for i := range b.N {
		assay.NewTrial(cell, task, setting, 2025, i)
	}
}
