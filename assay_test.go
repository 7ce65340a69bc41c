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

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

func trial() assay.Trial {
	cell := assay.Cell{Model: "m", Variant: "optimal", Difficulty: "easy", TaskType: "basic_task", Reliability: 0.8}
	set := assay.Setting{World: "pilot", Protocol: "native", Tools: "discover", Turns: 10}
	return assay.NewTrial(cell, assay.TaskRef{ID: "t1", Digest: "d1"}, set, 2025, 1)
}

// TestTrialIdentityIsPinned: if these change, every store of every user owes
// all its trials again.
func TestTrialIdentityIsPinned(t *testing.T) {
	t.Parallel()
	plain := trial()
	if plain.ID != "741abf303c6172f02d75106cdb3049ac" || plain.Seed != 6499444289095762 {
		t.Errorf("trial %s with seed %d", plain.ID, plain.Seed)
	}
	limited := trial().Setting
	limited.Tokens, limited.USD = 50_000, 0.5
	if got := assay.NewTrial(plain.Cell, assay.TaskRef{ID: "t1", Digest: "d1"}, limited, 2025, 1); got.ID == plain.ID || got.Seed != plain.Seed {
		t.Errorf("with limits of tokens and dollars it is trial %s with seed %d, want another trial with the same luck", got.ID, got.Seed)
	}
	warm := 0.5
	set := plain.Setting
	set.Sampling.Temperature = &warm
	if warmer := assay.NewTrial(plain.Cell, assay.TaskRef{ID: "t1", Digest: "d1"}, set, 2025, 1); warmer.ID != "6f5b1be04b82bc41f15909545cfbff7a" {
		t.Errorf("with a temperature %s", warmer.ID)
	}
	task := assay.Task{ID: "t1", Type: "basic_task", Difficulty: "easy", Description: "Read it.", Inputs: json.RawMessage(`{"a":1}`), Required: []string{"x"}}
	if got := task.Digest(); got != "01ff8653929c3b8383307e9424b817d0" {
		t.Errorf("digest %s", got)
	}
}

// TestTrialIdentityHoldsEverything: each field that says what is measured
// makes another trial; the seed follows task, repeat, world and seed alone.
func TestTrialIdentityHoldsEverything(t *testing.T) {
	t.Parallel()
	base := trial()
	ids := map[assay.TrialID]string{base.ID: "base"}
	add := func(what string, sameLuck bool, x assay.Trial) {
		if other, dup := ids[x.ID]; dup {
			t.Errorf("%s gives the trial of %s", what, other)
		}
		ids[x.ID] = what
		if (x.Seed == base.Seed) != sameLuck {
			t.Errorf("%s: same luck %v, want %v", what, x.Seed == base.Seed, sameLuck)
		}
	}
	ref := assay.TaskRef{ID: "t1", Digest: "d1"}
	for what, change := range map[string]func(*assay.Cell){
		"model": func(c *assay.Cell) { c.Model = "n" }, "variant": func(c *assay.Cell) { c.Variant = "cot" },
		"severity": func(c *assay.Cell) { c.Severity = "light" }, "difficulty": func(c *assay.Cell) { c.Difficulty = "hard" },
		"type": func(c *assay.Cell) { c.TaskType = "simple_task" }, "reliability": func(c *assay.Cell) { c.Reliability = 0.9 },
	} {
		cell := base.Cell
		change(&cell)
		add(what, true, assay.NewTrial(cell, ref, base.Setting, 2025, 1))
	}
	for what, change := range map[string]func(*assay.Setting){
		"protocol": func(s *assay.Setting) { s.Protocol = "tags" }, "tools": func(s *assay.Setting) { s.Tools = "listed" },
		"turns":  func(s *assay.Setting) { s.Turns = 11 },
		"tokens": func(s *assay.Setting) { n := 5; s.Sampling.MaxTokens = &n },
	} {
		set := base.Setting
		change(&set)
		add(what, true, assay.NewTrial(base.Cell, ref, set, 2025, 1))
	}
	add("digest", true, assay.NewTrial(base.Cell, assay.TaskRef{ID: "t1", Digest: "d2"}, base.Setting, 2025, 1))
	add("task", false, assay.NewTrial(base.Cell, assay.TaskRef{ID: "t2", Digest: "d1"}, base.Setting, 2025, 1))
	add("repeat", false, assay.NewTrial(base.Cell, ref, base.Setting, 2025, 2))
	add("seed", false, assay.NewTrial(base.Cell, ref, base.Setting, 2026, 1))
}

func TestSeedFitsEveryReader(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		x := assay.NewTrial(assay.Cell{}, assay.TaskRef{ID: assay.TaskID(rapid.String().Draw(t, "id"))}, assay.Setting{},
			rapid.Int64().Draw(t, "seed"), rapid.Int().Draw(t, "repeat"))
		if x.Seed >= 1<<53 {
			t.Fatalf("seed %d does not fit in a double", x.Seed)
		}
	})
}

func TestAsFault(t *testing.T) {
	t.Parallel()
	auth := &assay.Fault{Kind: assay.Auth, Lane: "gw/K/m", Status: 401, Detail: "no"}
	for _, tc := range []struct {
		err  error
		want assay.FaultKind
	}{
		{auth, assay.Auth},
		{fmt.Errorf("turn 3: %w", auth), assay.Auth},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), assay.Timeout},
		{context.Canceled, assay.Interrupted},
		{errors.New("nil map"), assay.Harness},
	} {
		if got := assay.AsFault(tc.err); got.Kind != tc.want {
			t.Errorf("AsFault(%v) = %s, want %s", tc.err, got.Kind, tc.want)
		}
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
	for _, tc := range []struct {
		a  assay.Attempt
		ok bool
	}{
		{assay.Attempt{FaultKind: assay.Server}, true},
		{assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure}}, true},
		{assay.Attempt{}, false},
		{assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure}, FaultKind: assay.Server}, false},
		{assay.Attempt{Outcome: assay.Outcome{Level: "success"}}, false},
		{assay.Attempt{FaultKind: "flu"}, false},
		{assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure, Coverage: 1.1}}, false},
	} {
		if err := tc.a.Check(); (err == nil) != tc.ok {
			t.Errorf("Check() of level %q and fault %q = %v, want ok %v", tc.a.Level, tc.a.FaultKind, err, tc.ok)
		}
	}
}

// TestContract: the fields that users' scripts rely on are there under their
// names, whatever else is added.
func TestContract(t *testing.T) {
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
		"trial", "attempt", "experiment", "run", "model", "variant", "severity", "difficulty", "task_type", "task", "reliability",
		"repeat", "seed", "world", "lane", "served_model", "level", "ended", "fault", "error_category", "turns", "tool_calls",
		"required_tools", "executed_tools", "coverage", "order_correct", "input_tokens", "output_tokens", "cost_usd", "queued_ms",
		"working_ms", "started_at", "finished_at",
	} {
		if _, ok := fields[name]; !ok {
			t.Errorf("the field %s is gone", name)
		}
	}
	if fields["started_at"] != "2026-01-02T03:04:05Z" {
		t.Errorf("started_at is %v, want RFC 3339 UTC", fields["started_at"])
	}
}

func TestWaitsAndCatalog(t *testing.T) {
	t.Parallel()
	a := assay.Waits{Queued: 1, Working: 2, Requests: 3, Retried: map[assay.FaultKind]int{assay.Server: 1}}
	sum := a.Add(a)
	if sum.Queued != 2 || sum.Working != 4 || sum.Requests != 6 || sum.Retried[assay.Server] != 2 || a.Retried[assay.Server] != 1 {
		t.Errorf("sum %+v of %+v", sum, a)
	}
	c := assay.NewCatalog([]assay.Tool{{Name: "b", Category: "1"}, {Name: "a"}, {Name: "b", Category: "2"}})
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

func BenchmarkNewTrial(b *testing.B) {
	base := trial()
	for i := range b.N {
		assay.NewTrial(base.Cell, assay.TaskRef{ID: "t1", Digest: "01ff8653929c3b8383307e9424b817d0"}, base.Setting, 2025, i)
	}
}

// TestFaultTableIsDocumented: the table in the code and that for users are one.
func TestFaultTableIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range assay.FaultTable {
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", r.Kind, r.When, r.Does); !strings.Contains(string(doc), row) {
			t.Errorf("docs/files.md lacks the row\n%s", row)
		}
		if r.Retry != r.Kind.Retryable() || r.ClosesLane != r.Kind.ClosesLane() || r.Retry && r.ClosesLane {
			t.Errorf("rule %+v is not what the kind does", r)
		}
	}
}
