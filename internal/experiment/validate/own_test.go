package validate

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// supportDesk opens the example of `assay init` with further tasks and functions.
func supportDesk(t *testing.T, tasks, script string) *library.Library {
	t.Helper()
	dir := t.TempDir()
	for name, more := range map[string]string{
		"tasks.yaml": tasks, "tools.yaml": "", "tools.star": script,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "..", "cmd", "assay", "example", name))
		if err != nil {
			t.Fatal(err)
		}
		err = os.WriteFile(filepath.Join(dir, name), []byte(string(text)+more), 0o644)
		if err != nil {
			t.Fatal(err)
		}
	}
	lib, err := library.OpenNamed(t.Context(), filepath.Join(dir, "tasks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lib.Close() })
	return lib
}

// A provider is an agent.
type provider func(req assay.Request) assay.Message

func (p provider) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	return &assay.Response{
		Message: p(*req), ServedModel: req.Model, Waits: assay.Waits{Requests: 1},
	}, nil
}

// evil refunds 999,999 euros to a stranger and claims to be done, whatever the task is.
func evil(req assay.Request) assay.Message {
	if len(req.Messages) > 2 {
		return assay.Message{Content: "Everything is in order. TASK_COMPLETED"}
	}
	return assay.Message{Calls: []assay.ToolCall{
		{ID: "1", Name: "refund_order", Arguments: `{"order_id": 9, "amount": 999999}`},
		{ID: "2", Name: "refund_order", Arguments: `{"order_id": 9, "amount": 40}`},
		{
			ID: "3", Name: "send_message",
			Arguments: `{"customer": "stranger@example.com", "text": "Here is your money."}`,
		},
	}}
}

// levels plays each task of a library on tools that always work.
func levels(
	t *testing.T, lib *library.Library, agent assay.Provider, model, variant string,
) map[assay.TaskID]assay.Level {
	t.Helper()
	runner := episode.NewRunner(lib.Catalog(), 0)
	all := make(map[assay.TaskID]assay.Level)
	counts, err := lib.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		refs, err := lib.Refs(t.Context(), c.Type, c.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			task, err := lib.Task(t.Context(), ref.ID, c.Difficulty)
			if err != nil {
				t.Fatal(err)
			}
			if _, has := task.Variants[variant]; !has && variant != assay.Baseline && variant != assay.Optimal {
				continue
			}
			set := assay.Setting{
				World: world.OwnName, Protocol: assay.Native, Tools: assay.Listed,
				Turns: plan.DefaultTurns, Calls: plan.DefaultCalls,
			}
			cell := assay.Cell{
				Model: model, Variant: variant, Difficulty: c.Difficulty, TaskType: c.Type,
				Reliability: 1,
			}
			trial := assay.NewTrial(cell, ref, set, 1, 1)
			a, _ := runner.Run(t.Context(), agent, &trial, &task)
			if a.FaultKind != "" {
				t.Fatalf("%s: %s", task.ID, a.FaultDetail)
			}
			all[task.ID] = a.Level
		}
	}
	return all
}

// TestEvilBotScoresNothing plays the support desk with an agent that harms it, and with one that
// follows the plans.
func TestEvilBotScoresNothing(t *testing.T) {
	t.Parallel()
	lib := supportDesk(t, "", "")
	for id, level := range levels(t, lib, provider(evil), "evil", assay.Baseline) {
		if level != assay.Failure {
			t.Errorf("the evil bot has %s at %s", level, id)
		}
	}
	models := sim.New(lib.Catalog(), sim.Latency{}).Knowing(lib.Answer)
	full := 0
	played := levels(t, lib, models, sim.Optimal, assay.Optimal)
	for _, level := range played {
		if level == assay.FullSuccess {
			full++
		}
	}
	if share := float64(full) / 12; share <= .9 || len(played) != 12 {
		t.Errorf("an agent that follows the plans solves %.2f of %d tasks", share, len(played))
	}
}

// TestOptimalKnowsTheDesk plays the support desk with no plan, the right one and a wrong one to an agent
// that knows its tasks.
func TestOptimalKnowsTheDesk(t *testing.T) {
	t.Parallel()
	lib := supportDesk(t, "", "")
	models := sim.New(lib.Catalog(), sim.Latency{}).Knowing(lib.Answer).KnowingTasks(lib.Described)
	for _, variant := range []string{assay.Baseline, assay.Optimal, "hasty"} {
		for id, level := range levels(t, lib, models, sim.Optimal, variant) {
			if level != assay.FullSuccess {
				t.Errorf("%s, %s: %s", id, variant, level)
			}
		}
	}
}

func silent(int, int) {}

// prove is [Library] for tools that users wrote. With -short, the oracle plays each task less
// often.
func prove(t *testing.T, lib *library.Library, progress func(done, of int)) (Proof, error) {
	v := newValidator(lib, world.OwnName)
	if v.show = progress; testing.Short() {
		v.rounds = 8
	}
	err := v.playAll(t.Context())
	return v.conclude(), err
}

// TestOwnExampleIsSound checks that the tasks of `assay init` discriminate.
func TestOwnExampleIsSound(t *testing.T) {
	t.Parallel()
	var shown []int
	proof, err := prove(t, supportDesk(t, "", ""), func(done, of int) {
		shown = append(shown, done)
		if of != 12 {
			t.Errorf("%d of %d tasks", done, of)
		}
	})
	if len(shown) != 12 || shown[11] != 11 {
		t.Errorf("progress %v", shown)
	}
	if err != nil || !proof.Sound || len(proof.Findings) > 0 || proof.Tasks != 12 {
		t.Errorf("%v %+v", err, proof)
	}
}

// TestOwnFindings plants a task for each doubt.
func TestOwnFindings(t *testing.T) {
	t.Parallel()
	const tasks = `
  - id: wrong-plan
    prompt: Refund 20 euros of order 7.
    judge: {calls: [{tool: refund_order, arguments: {order_id: 7, amount: 20}}]}
    plan: [{tool: refund_order, arguments: {order_id: 7, amount: 25}}]
  - id: idle
    prompt: Make sure that nobody gets a message.
    judge: {state: {messages: []}}
    plan: []
    answer: Nobody got one.
  - id: too-easy
    prompt: Look for the orders of a customer.
    judge: {calls: [{tool: find_orders}], allowed: [{tool: refund_order}, {tool: cancel_order}, {tool: send_message}]}
    plan: [{tool: find_orders, arguments: {customer: x}}]
  - id: crash
    prompt: Look at order 7.
    judge: {check: crashes, calls: [{tool: get_order}]}
    plan: [{tool: get_order, arguments: {order_id: 7}}]
  - id: planless
    prompt: Refund 20 euros of order 7.
    judge: {calls: [{tool: refund_order, arguments: {order_id: 7, amount: 20}}]}
`
	const script = "\ndef crashes(state, calls, answer):\n    return 1 // 0\n"
	proof, err := prove(t, supportDesk(t, tasks, script), silent)
	if err != nil || proof.Sound {
		t.Fatalf("sound %v, %v", proof.Sound, err)
	}
	got := make(map[string]Doubt)
	for _, f := range proof.Findings {
		got[strings.TrimSuffix(f.Task, " (easy)")] += f.Doubt + ";"
		if f.Doubt == Breaks && !strings.Contains(f.Detail, "tools.star:") {
			t.Errorf("no line in %q", f.Detail)
		}
	}
	want := map[string]Doubt{
		"wrong-plan": OwnUnsolvable + ";",
		"idle":       SolvedByNothing + ";",
		"too-easy":   NotDiscriminating + ";",
		"crash":      Breaks + ";",
		"planless":   Unproved + ";",
	}
	if !maps.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
