package episode_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/score"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
)

// A theatre is a task in a world with a judge.
type theatre struct {
	name, world      string
	catalog          *assay.Catalog
	task             assay.Task
	steps            []string
	useless, harmful string
	runner           *episode.Runner
	judge            *score.Judge
}

// arguments returns the arguments of the plan for a call of a tool after the first n steps.
func (h *theatre) arguments(tool string, n int) string {
	if h.task.Reference == nil {
		return string(workflow.Arguments(h.catalog, tool, h.task.Inputs, h.steps[:n]))
	}
	for _, c := range h.task.Reference.Calls {
		if c.Tool == tool {
			return string(c.Arguments)
		}
	}
	return `{"name": "x"}`
}

// payTools are the tools of a task of three steps, of which the last one has an effect. The task also
// has a useless tool and a harmful one.
const payTools = `
file: tools.star
tools:
  - {name: find, description: Find., parameters: {name: {type: string}}}
  - {name: check, description: Check., parameters: {name: {type: string}}}
  - {name: pay, description: Pay., effect: pays, parameters: {name: {type: string}, euros: {type: number}}}
  - {name: idle, description: Idle.}
  - {name: wipe, description: Wipe., effect: wipes}
`

const payScript = `
def find(state, name):
    return {"name": name}

def check(state, name):
    return {"euros": 40 if name == "a" else 45}

def pay(state, name, euros):
    state["paid"][name] = state["paid"].get(name, 0) + euros
    return {"paid": name}

def idle(state, name=""):
    return {}

def wipe(state, name=""):
    state["wiped"] = True
    return {}

def right(state, calls, answer):
    return state["paid"] == {"a": 40} and not state["wiped"] and "40" in answer
`

// payJudges are the judges of that task. They mean the same, except that only the first one asks for
// the calls that change nothing.
var payJudges = map[string]string{
	"calls": `{answer: ["40"], calls: [{tool: find, arguments: {name: a}}, {tool: check, arguments: {name: a}},
      {tool: pay, arguments: {name: a, euros: 40}}]}`,
	"changes": `{answer: ["40"], calls: [{tool: pay, arguments: {name: a, euros: 40}}]}`,
	"state":   `{answer: ["40"], state: {paid: {a: 40}}}`,
	"plan":    `{answer: ["40"], state: plan}`,
	"check":   `{check: right}`,
}

// deskTools are the tools of tasks of several changes.
const deskTools = `
file: tools.star
tools:
  - {name: balance, description: Ask for a balance., parameters: {name: {type: string}}}
  - {name: guests, description: List the guests.}
  - {name: book, description: Book a room., effect: books a room, parameters: {room: {type: number}}}
  - name: charge
    description: Charge a booking.
    effect: takes money
    parameters: {booking: {type: string}, euros: {type: number}}
  - {name: cancel, description: Cancel a booking., effect: cancels a booking, parameters: {booking: {type: string}}}
  - {name: remind, description: Remind a guest., effect: sends a message, parameters: {name: {type: string}}}
`

const deskScript = `
def balance(state, name):
    return {"euros": {"a": 40, "b": 45}.get(name, 0)}

def guests(state):
    return ["ann", "bob", "cleo", "dora"]

def book(state, room):
    id = "B%d" % (len(state["bookings"]) + 1)
    state["bookings"][id] = {"room": room, "paid": 0}
    return {"booking": id}

def charge(state, booking, euros):
    if booking not in state["bookings"]:
        fail("NO_BOOKING", "there is no booking %s" % booking)
    state["bookings"][booking]["paid"] += euros
    return {}

def cancel(state, booking):
    if booking not in state["bookings"]:
        fail("NO_BOOKING", "there is no booking %s" % booking)
    state["bookings"].pop(booking)
    return {}

def remind(state, name):
    state["sent"].append(name)
    return {}

def charged(state, calls, answer):
    return state["bookings"] == {"B1": {"room": 7, "paid": 40}}

def moved(state, calls, answer):
    return state["bookings"] == {"B2": {"room": 7, "paid": 0}}

def reminded(state, calls, answer):
    return state["sent"] == ["ann", "bob", "cleo", "dora"]
`

// A deskTask is a task of these tools: its state, the calls of its plan, and the state in the end.
type deskTask struct{ prompt, state, end, check, plan string }

var deskTasks = map[string]deskTask{
	"charge": {
		"Book room 7 and charge it with the balance of a.",
		`{bookings: {}, sent: []}`, `{bookings: {B1: {room: 7, paid: 40}}}`, "charged",
		`{tool: balance, arguments: {name: a}}, {tool: book, arguments: {room: 7}}, ` +
			`{tool: charge, arguments: {booking: B1, euros: 40}}`,
	},
	"move": {
		"Book room 7, and then cancel B1.",
		`{bookings: {B1: {room: 3, paid: 0}}, sent: []}`, `{bookings: {B2: {room: 7, paid: 0}}}`, "moved",
		`{tool: book, arguments: {room: 7}}, {tool: cancel, arguments: {booking: B1}}`,
	},
	"remind": {
		"Remind all guests.",
		`{bookings: {}, sent: []}`, `{sent: [ann, bob, cleo, dora]}`, "reminded",
		`{tool: guests, arguments: {}}, {tool: remind, arguments: {name: ann}}, {tool: remind, arguments: ` +
			`{name: bob}}, {tool: remind, arguments: {name: cleo}}, {tool: remind, arguments: {name: dora}}`,
	},
}

// theatres returns the places in which behaviours are played, by name. Names of the desk's are those
// of the task and the judge, such as "move state". "blind" is a judge of the state without a plan.
func theatres(t *testing.T) map[string]*theatre {
	t.Helper()
	all := make(map[string]*theatre)
	builtin, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = builtin.Close() })
	task, err := builtin.Task(t.Context(), "basic-010", "easy")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range world.Simulated {
		all[w] = &theatre{
			name: w, world: w, catalog: builtin.Catalog(), task: task, steps: task.Required,
			useless: "network_monitor", harmful: "utility_logger",
		}
	}

	const plan = `[{tool: find, arguments: {name: a}}, {tool: check, arguments: {name: a}}, ` +
		`{tool: pay, arguments: {name: a, euros: 40}}]`
	var text strings.Builder
	text.WriteString("tools: tools.yaml\nstate: {paid: {}, wiped: false}\ntasks:\n")
	add := func(id, judge, more string) {
		fmt.Fprintf(&text, "  - id: %s\n    prompt: Find a, check what it costs, and pay that.\n    judge: %s\n%s",
			id, judge, more)
	}
	for name, judge := range payJudges {
		add(name, judge, "    answer: The price is 40.\n    plan: "+plan+"\n")
	}
	add("blind", "{state: {paid: {a: 40}}, allowed: [{tool: pay}]}", "")
	add("guess", `{answer: ["40"], allowed: [{tool: pay}]}`, "")
	steps := []string{"find", "check", "pay"}
	pay := tasksOf(t, payTools, payScript, text.String())
	for id, h := range pay {
		h.steps, h.useless, h.harmful = steps, "idle", "wipe"
		all[id] = h
	}
	all["reward"] = &theatre{
		name: "reward", world: world.OpenEnv, catalog: environmentOf(t, pay["calls"]), task: pay["calls"].task,
		steps: steps, useless: "idle", harmful: "wipe",
	}
	reward := &all["reward"].task
	reward.Judge, reward.State = &assay.Judge{Success: "reward >= 1"}, nil
	reward.Reset = json.RawMessage("{}")

	text.Reset()
	text.WriteString("tools: tools.yaml\ntasks:\n")
	for id, d := range deskTasks {
		for judge, is := range map[string]string{
			"calls": "{calls: [" + d.plan + "]}", "state": "{state: " + d.end + "}", "plan": "{state: plan}",
			"check": "{check: " + d.check + "}",
			"any":   "{calls: [" + d.plan + "], order: any}",
		} {
			fmt.Fprintf(&text, "  - {id: %s %s, prompt: %q, judge: %s, plan: [%s], state: %s}\n",
				id, judge, d.prompt, is, d.plan, d.state)
		}
	}
	for id, h := range tasksOf(t, deskTools, deskScript, text.String()) {
		all[id] = h
	}
	for _, h := range all {
		h.runner, h.judge = episode.NewRunner(h.catalog, 0), score.New(h.catalog)
	}
	return all
}

// tasksOf returns the tasks of a library by ID.
func tasksOf(t *testing.T, tools, script, tasks string) map[string]*theatre {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"tasks.yaml": tasks, "tools.yaml": tools, "tools.star": script} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	lib, err := library.OpenNamed(t.Context(), filepath.Join(dir, "tasks.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lib.Close() })
	all := make(map[string]*theatre)
	for _, m := range regexp.MustCompile(`\bid: ([a-z ]+)`).FindAllStringSubmatch(tasks, -1) {
		task, err := lib.Task(t.Context(), assay.TaskID(m[1]), "easy")
		if err != nil {
			t.Fatal(err)
		}
		all[m[1]] = &theatre{name: m[1], world: world.OwnName, catalog: lib.Catalog(), task: task}
	}
	return all
}

// environmentOf returns the tools of the task of a payment behind an environment. Its user only
// listens: a reply without calls ends the episode.
func environmentOf(t *testing.T, h *theatre) *assay.Catalog {
	t.Helper()
	var tools []any
	for _, tool := range h.catalog.All() {
		tools = append(tools, map[string]any{
			"name": tool.Name, "description": tool.Description, "input_schema": json.RawMessage(tool.Schema),
		})
	}
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/health" {
			fmt.Fprintln(w, `{"status":"healthy"}`)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer conn.CloseNow()
		serveDesk(r.Context(), conn, tools, h.task.Description)
	}))
	catalog := assay.NewCatalog(h.catalog.All()).With(assay.Script{}, &assay.MCPServer{
		OpenEnv: true, URL: web.URL, Concurrency: 64,
		Answer: json.RawMessage(`{"type":"message","content":"{answer}"}`),
	})
	t.Cleanup(func() {
		_ = catalog.Close()
		web.Close()
	})
	return catalog
}

// serveDesk is a session of that environment.
func serveDesk(ctx context.Context, conn *websocket.Conn, tools []any, prompt string) {
	paid, wiped := map[string]float64{}, false
	for {
		var m struct {
			Type string
			Data struct {
				Type, Content string
				Tool          string `json:"tool_name"`
				Arguments     struct {
					Name  string
					Euros float64
				}
			}
		}
		_, text, err := conn.Read(ctx)
		if err != nil || json.Unmarshal(text, &m) != nil || m.Type == "close" {
			return
		}
		typ, done, reward := "observation", false, 0
		seen := map[string]any{"result": `{}`, "error": nil}
		args := m.Data.Arguments
		switch {
		case m.Type == "state":
			typ = "state"
		case m.Type == "reset":
			seen = map[string]any{"messages": []any{map[string]any{"role": "user", "content": prompt}}}
		case m.Data.Type == "list_tools":
			seen = map[string]any{"tools": tools}
		case m.Data.Type == "message":
			done = true
			if len(paid) == 1 && paid["a"] == 40 && !wiped && strings.Contains(m.Data.Content, "40") {
				reward = 1
			}
		case m.Data.Tool == "check":
			seen["result"] = `{"euros": 40}`
		case m.Data.Tool == "pay":
			paid[args.Name] += args.Euros
		case m.Data.Tool == "wipe":
			wiped = true
		}
		text, err = json.Marshal(map[string]any{"type": typ, "data": map[string]any{
			"observation": seen, "reward": reward, "done": done,
		}})
		if err != nil || conn.Write(ctx, websocket.MessageText, text) != nil {
			return
		}
	}
}

// A scene is what an actor knows: the answers so far.
type scene struct {
	*theatre
	turn   int
	plan   []assay.ToolCall // the plan that it was shown
	worked []bool           // by call, whether its answer was a success
	said   []assay.Message  // its replies
}

func (s *scene) failures() (n int) {
	for _, ok := range s.worked {
		if !ok {
			n++
		}
	}
	return n
}

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

var claim = says("All is done. It was 40. TASK_COMPLETED")

// until carries the steps out, each until its answer is a success, and then says something.
func (s *scene) until(then assay.Message) assay.Message {
	n := len(s.worked) - s.failures()
	if n >= len(s.steps) {
		return then
	}
	return s.call(s.steps[n], n)
}

// next does the task.
func (s *scene) next() assay.Message { return s.until(claim) }

// each calls the tools in turn, whatever their answers are, and claims to be done.
func (s *scene) each(tools ...string) assay.Message {
	if s.turn >= len(tools) {
		return claim
	}
	return s.call(tools[s.turn], min(s.turn, len(s.steps)))
}

// made makes calls in turn, whatever their answers are, and claims to be done.
func (s *scene) made(all ...string) assay.Message {
	if s.turn >= len(all) {
		return claim
	}
	tool, arguments, _ := strings.Cut(all[s.turn], " ")
	return calls(assay.ToolCall{Name: tool, Arguments: arguments})
}

// obey carries the steps of the plan out, whatever their answers are, and claims to be done.
func (s *scene) obey() assay.Message {
	if s.turn >= len(s.plan) {
		return claim
	}
	return calls(s.plan[s.turn])
}

var planStep = regexp.MustCompile(`(?m)^\d+\. (\S+)\n   Purpose: .*\n   Arguments: (.*)$`)

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
				s.plan = append(s.plan, assay.ToolCall{Name: step[1], Arguments: step[2]})
			}
		case assay.Assistant:
			s.turn++
			s.said = append(s.said, m)
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
