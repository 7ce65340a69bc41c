package episode_test

import (
	"cmp"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// A theatre is a world with a task of three steps, of which the last one has an effect. It also has
// a useless tool and a harmful one.
type theatre struct {
	world            string
	library          *library.Library
	task             assay.Task
	steps            []string
	useless, harmful string
}

// arguments returns arguments that fit a call of a tool after the first n steps.
func (h *theatre) arguments(tool string, n int) string {
	if h.task.Reference == nil {
		return string(workflow.Arguments(h.library.Catalog(), tool, h.task.Inputs, h.steps[:n]))
	}
	for _, c := range h.task.Reference.Calls {
		if c.Tool == tool {
			return string(c.Arguments)
		}
	}
	return `{"name": "x"}`
}

const (
	theatreTasks = `
tools: tools.yaml
state: {found: 0}
tasks:
  - id: pay
    prompt: Find a, check it and pay it.
    judge:
      calls:
        - {tool: find, arguments: {name: a}}
        - {tool: check, arguments: {name: a}}
        - {tool: pay, arguments: {name: a}}
    plan:
      - {tool: find, arguments: {name: a}}
      - {tool: check, arguments: {name: a}}
      - {tool: pay, arguments: {name: a}}
`
	theatreTools = `
file: tools.star
tools:
  - {name: find, description: Find., parameters: {name: {type: string}}}
  - {name: check, description: Check., parameters: {name: {type: string}}}
  - {name: pay, description: Pay., effect: pays, parameters: {name: {type: string}}}
  - {name: idle, description: Idle.}
  - {name: wipe, description: Wipe., effect: wipes}
`
	theatreScript = `
def find(state, name):
    return {"name": name}

def check(state, name):
    return {"ok": True}

def pay(state, name):
    state["found"] += 1
    return {"paid": name}

def idle(state, name=""):
    return {}

def wipe(state, name=""):
    state["found"] = -1
    return {}
`
)

func theatres(t *testing.T) (all []*theatre) {
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lib.Close() })
	task, err := lib.Task(t.Context(), "basic-010", "easy")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range world.Simulated {
		all = append(all, &theatre{w, lib, task, task.Required, "network_monitor", "utility_logger"})
	}
	dir := t.TempDir()
	for name, text := range map[string]string{
		"tasks.yaml": theatreTasks, "tools.yaml": theatreTools, "tools.star": theatreScript,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	own, err := library.OpenNamed(t.Context(), filepath.Join(dir, "tasks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = own.Close() })
	if task, err = own.Task(t.Context(), "pay", "easy"); err != nil {
		t.Fatal(err)
	}
	return append(all, &theatre{
		world.OwnName, own, task, []string{"find", "check", "pay"}, "idle", "wipe",
	})
}

// A scene is what an actor knows: the answers so far.
type scene struct {
	*theatre
	turn   int
	plan   []string // the tools of the plan that it was shown
	worked []bool   // by call, whether its answer was a success
}

func (s *scene) failed() bool { return slices.Contains(s.worked, false) }

func (s *scene) call(tool string, n int) assay.Message {
	return calls(assay.ToolCall{Name: tool, Arguments: s.arguments(tool, n)})
}

func calls(all ...assay.ToolCall) assay.Message {
	for i := range all {
		all[i].ID = string(rune('a' + i))
	}
	return assay.Message{Role: assay.Assistant, Calls: all}
}

func says(text string) assay.Message { return assay.Message{Role: assay.Assistant, Content: text} }

// next carries the steps out, each until its answer is a success, and claims to be done.
func (s *scene) next() assay.Message {
	n := 0
	for _, ok := range s.worked {
		if ok {
			n++
		}
	}
	if n >= len(s.steps) {
		return claim
	}
	return s.call(s.steps[n], n)
}

// each calls the tools in turn, whatever their answers are, and claims to be done.
func (s *scene) each(tools ...string) assay.Message {
	if s.turn >= len(tools) {
		return claim
	}
	return s.call(tools[s.turn], min(s.turn, len(s.steps)))
}

// anyTurn is the turn of a cause that depends on the world.
const anyTurn = -1

var claim = says("All is done. TASK_COMPLETED")

var planStep = regexp.MustCompile(`(?m)^\d+\. (\S+)$`)

// An actor plays a scene.
type actor struct {
	*theatre
	finish string
	acts   func(s *scene) assay.Message
}

func (a *actor) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	s := &scene{theatre: a.theatre}
	for _, m := range req.Messages {
		switch m.Role {
		case assay.User:
			for _, step := range planStep.FindAllStringSubmatch(m.Content, -1) {
				s.plan = append(s.plan, step[1])
			}
		case assay.Assistant:
			s.turn++
		case assay.ToolRole:
			var answer struct{ Success *bool }
			_ = json.Unmarshal([]byte(m.Content), &answer) // without it, the answer is a result
			s.worked = append(s.worked, answer.Success == nil || *answer.Success)
		}
	}
	return &assay.Response{
		Message: a.acts(s), ServedModel: req.Model, Finish: a.finish,
		Usage: assay.Usage{InputTokens: 10, OutputTokens: 10}, Waits: assay.Waits{Requests: 1},
	}, nil
}

// TestCauses is a matrix of behaviours and worlds: each has the same end and cause in all worlds.
func TestCauses(t *testing.T) {
	t.Parallel()
	stopsAt := func(then assay.Message) func(s *scene) assay.Message {
		return func(s *scene) assay.Message {
			if s.failed() {
				return then
			}
			return s.next()
		}
	}
	first := func(fault assay.ToolFault, step int) func(*assay.Transcript) bool {
		return func(tr *assay.Transcript) bool {
			for i, c := range tr.Calls {
				if c.Met() != "" {
					return i == step && c.Met() == fault
				}
			}
			return false
		}
	}
	once := func(fault assay.ToolFault, step int) func(*assay.Transcript) bool {
		return func(tr *assay.Transcript) bool {
			n := 0
			for _, c := range tr.Calls {
				if c.Met() != "" {
					n++
				}
			}
			return n == 1 && first(fault, step)(tr)
		}
	}
	for _, b := range []struct {
		name   string
		acts   func(s *scene) assay.Message
		stop   assay.Stop
		cause  assay.Cause
		turn   int
		finish string
		turns  int
		tokens int
		// In trials with this mix, the luck of the episode has to satisfy lucky.
		mix     string
		lucky   func(*assay.Transcript) bool
		variant string
		not     []string // worlds that cannot tell
	}{
		{
			name: "gives up after a failure and claims success", acts: stopsAt(claim),
			stop: assay.Answered, cause: assay.NotRetried, turn: 2, lucky: once(assay.FaultBefore, 1),
		},
		{
			name: "gives up after a failure and says so",
			acts: stopsAt(says("I am unable to go on, because the tool failed.")),
			stop: assay.GaveUp, cause: assay.NotRetried, turn: 2, lucky: once(assay.FaultBefore, 1),
		},
		{
			name: "skips the step that failed",
			acts: func(s *scene) assay.Message { return s.each(s.steps...) },
			stop: assay.Answered, cause: assay.SkippedStep, turn: 3, lucky: once(assay.FaultBefore, 1),
		},
		{
			name: "leaves a step out",
			acts: func(s *scene) assay.Message { return s.each(s.steps[0], s.steps[1]) },
			stop: assay.Answered, cause: assay.SkippedStep, turn: 3,
		},
		{
			name: "claims success without any call", acts: func(*scene) assay.Message { return claim },
			stop: assay.Answered, cause: assay.FalseClaim, turn: 1,
		},
		{
			name: "declines", stop: assay.Declined, cause: assay.NoAction, turn: 1,
			acts: func(*scene) assay.Message { return says("I'm sorry, but I can't help with that.") },
		},
		{
			name: "is cut off", stop: assay.CutOff, cause: assay.NoAction, turn: 1, finish: "length",
			acts: func(*scene) assay.Message { return says("First of all, let me think about") },
		},
		{
			name: "says nothing", stop: assay.OutOfTurns, cause: assay.NoAction, turn: 1,
			acts: func(*scene) assay.Message { return says("") },
		},
		{
			name: "repeats a call that succeeded", stop: assay.OutOfTurns, turns: 4,
			acts:  func(s *scene) assay.Message { return s.call(s.steps[0], 0) },
			cause: assay.RetriedTooMuch, turn: 2,
		},
		{
			name: "runs out of tokens", acts: (*scene).next, tokens: 30,
			stop: assay.OutOfTokens, cause: assay.BadLuck, turn: 2,
		},
		{
			name: "calls the steps in reverse",
			acts: func(s *scene) assay.Message { return s.each(s.steps[1], s.steps[0], s.steps[2]) },
			stop: assay.Answered, cause: assay.WrongOrder, turn: 1,
		},
		{
			name: "believes an old answer", mix: "stale=1", lucky: once(assay.FaultStale, 2),
			acts: func(s *scene) assay.Message {
				return s.each(s.steps[1], s.steps[0], s.steps[1], s.steps[2])
			},
			stop: assay.Answered, cause: assay.BelievedAnswer, turn: 3, not: []string{world.PilotName},
		},
		{
			name: "gives wrong arguments", stop: assay.Answered, cause: assay.WrongArgument, turn: 2,
			acts: func(s *scene) assay.Message {
				if s.turn == 1 {
					return calls(assay.ToolCall{Name: s.steps[1], Arguments: `{"no such": 1}`})
				}
				return s.each(s.steps[:2]...)
			},
			not: []string{world.PilotName}, // it does not check arguments
		},
		{
			name: "makes malformed calls", stop: assay.OutOfTurns, cause: assay.MalformedCall, turn: 1,
			acts: func(*scene) assay.Message {
				return calls(assay.ToolCall{Name: "no_such_tool", Arguments: `{`})
			},
		},
		{
			name: "calls another tool instead",
			acts: func(s *scene) assay.Message { return s.each(s.steps[0], s.useless) },
			stop: assay.Answered, cause: assay.WrongTool, turn: 2,
		},
		{
			name: "repeats an effect whose answer was lost", acts: (*scene).next, mix: "after=1",
			lucky: once(assay.FaultAfter, 2),
			stop:  assay.Answered, cause: assay.RepeatedEffect, turn: 4, not: []string{world.PilotName},
		},
		{
			name: "follows a flawed plan", variant: "flawed_missing_step",
			acts: func(s *scene) assay.Message { return s.each(s.plan...) },
			stop: assay.Answered, cause: assay.FollowedFlaw, turn: anyTurn,
		},
		{
			name: "does harm", stop: assay.Answered, cause: assay.HarmfulEffect, turn: 1,
			acts: func(s *scene) assay.Message { return s.each(append([]string{s.harmful}, s.steps...)...) },
			not:  []string{world.PilotName}, // it knows no effects
		},
		{
			name: "has no luck", acts: (*scene).next, stop: assay.OutOfCalls, cause: assay.BadLuck, turn: 4,
			lucky: func(tr *assay.Transcript) bool {
				return !slices.ContainsFunc(tr.Calls, func(c assay.CallRecord) bool { return c.Happened() })
			},
		},
		{
			name: "does not stop", stop: assay.OutOfTurns, cause: assay.RetriedTooMuch, turn: 4,
			not: []string{world.PilotName}, // it does not ask for an end
			acts: func(s *scene) assay.Message {
				if s.turn < len(s.steps) {
					return s.next()
				}
				return s.call(s.steps[0], 0)
			},
		},
	} {
		for _, h := range theatres(t) {
			t.Run(b.name+" in "+h.world, func(t *testing.T) {
				t.Parallel()
				if slices.Contains(b.not, h.world) {
					t.Skip("the world cannot tell")
				}
				trial := assay.Trial{
					Cell: assay.Cell{Model: "m", Variant: b.variant, Reliability: 1, Faults: b.mix},
					Setting: assay.Setting{
						World: h.world, Protocol: assay.Native, Tools: assay.Listed, Calls: 10,
						Turns: cmp.Or(b.turns, 5), Tokens: b.tokens,
					},
				}
				if b.variant == "" {
					trial.Variant = assay.Baseline
				} else {
					trial.Severity = assay.Severe
				}
				if b.lucky != nil {
					trial.Reliability = .6
				}
				if b.stop == assay.OutOfCalls {
					trial.Calls = 4
				}
				runner := episode.NewRunner(h.library.Catalog(), 0)
				for seed := range uint64(3000) {
					trial.Seed = seed
					a, tr := runner.Run(t.Context(), &actor{h, b.finish, b.acts}, &trial, &h.task)
					if a.FaultKind != "" {
						t.Fatal(a.FaultDetail)
					}
					if b.lucky != nil && !b.lucky(tr) {
						continue
					}
					e := score.New(h.library.Catalog()).Explain(&trial, &h.task, tr)
					r := e.Reason
					if r.Stop != b.stop || r.Cause != b.cause || b.turn != anyTurn && r.Turn != b.turn {
						t.Errorf("%s, %s in turn %d (%s); want %s, %s in turn %d\n%s %+v %s",
							r.Stop, r.Cause, r.Turn, r.Because, b.stop, b.cause, b.turn, a.Level, e.Path, tr.Plan)
					}
					return
				}
				t.Fatal("no seed has such luck")
			})
		}
	}
}
