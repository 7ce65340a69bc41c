package own_test

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// examples is the folder of the environments.
const examples = "../../../../examples/environments"

// A mutation changes the calls of a plan. It returns nil if that is not possible.
type mutation struct {
	name  string
	apply func(dice *rand.Rand, calls []assay.Expected) []assay.Expected
}

var mutations = []mutation{
	{"none", func(_ *rand.Rand, calls []assay.Expected) []assay.Expected { return calls }},
	{"attacked", func(_ *rand.Rand, calls []assay.Expected) []assay.Expected { return calls }},
	{"dropped", func(dice *rand.Rand, calls []assay.Expected) []assay.Expected {
		i := dice.IntN(len(calls))
		return slices.Delete(calls, i, i+1)
	}},
	{"doubled", func(dice *rand.Rand, calls []assay.Expected) []assay.Expected {
		i := dice.IntN(len(calls))
		return slices.Insert(calls, i, calls[i])
	}},
	{"swapped", func(dice *rand.Rand, calls []assay.Expected) []assay.Expected {
		if len(calls) < 2 {
			return nil
		}
		i := dice.IntN(len(calls) - 1)
		calls[i], calls[i+1] = calls[i+1], calls[i]
		calls[i].Turn, calls[i+1].Turn = calls[i+1].Turn, calls[i].Turn
		return calls
	}},
	{"argument", func(dice *rand.Rand, calls []assay.Expected) []assay.Expected {
		i := dice.IntN(len(calls))
		calls[i].Arguments = otherArgument(dice, calls[i].Arguments)
		if calls[i].Arguments == nil {
			return nil
		}
		return calls
	}},
	{"text", func(dice *rand.Rand, calls []assay.Expected) []assay.Expected {
		i := dice.IntN(len(calls))
		calls[i].Arguments = listsAsText(calls[i].Arguments)
		if calls[i].Arguments == nil {
			return nil
		}
		return calls
	}},
	{"unknown", func(dice *rand.Rand, calls []assay.Expected) []assay.Expected {
		i := dice.IntN(len(calls))
		calls[i].Arguments = withArgument(calls[i].Arguments, "not_a_parameter", 1)
		return calls
	}},
	{"extra", func(dice *rand.Rand, calls []assay.Expected) []assay.Expected {
		extra, i := calls[dice.IntN(len(calls))], dice.IntN(len(calls))
		extra.Turn = calls[i].Turn
		return slices.Insert(calls, i, extra)
	}},
}

// otherArgument changes one argument of a call.
func otherArgument(dice *rand.Rand, text json.RawMessage) json.RawMessage {
	var arguments map[string]any
	if json.Unmarshal(text, &arguments) != nil || len(arguments) == 0 {
		return nil
	}
	var names []string
	for name := range arguments {
		names = append(names, name)
	}
	slices.Sort(names)
	switch name := names[dice.IntN(len(names))]; v := arguments[name].(type) {
	case string:
		arguments[name] = v + "x"
	case float64:
		arguments[name] = v + 1
	case bool:
		arguments[name] = !v
	case []any:
		arguments[name] = append(v, v...)
	default:
		delete(arguments, name)
	}
	changed, err := json.Marshal(arguments)
	if err != nil {
		return nil
	}
	return changed
}

// listsAsText returns the arguments with lists as text, or texts as lists if there are no lists.
func listsAsText(text json.RawMessage) json.RawMessage {
	var arguments map[string]any
	if json.Unmarshal(text, &arguments) != nil {
		return nil
	}
	changed := false
	for _, lists := range []bool{true, false} {
		for name, v := range arguments {
			_, isText := v.(string)
			list, isList := v.([]any)
			switch {
			case isList != lists || !isList && !isText:
				continue
			case isText:
				list = []any{v}
			}
			arguments[name], changed = textOf(list), true
		}
		if changed {
			return json.RawMessage(textOf(arguments))
		}
	}
	return nil
}

func textOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // it was JSON
	}
	return string(text)
}

// withArgument returns the arguments with one more.
func withArgument(text json.RawMessage, name string, value any) json.RawMessage {
	arguments := make(map[string]any)
	if json.Unmarshal(text, &arguments) != nil && len(text) > 0 {
		return text
	}
	arguments[name] = value
	return json.RawMessage(textOf(arguments))
}

// A game is a task with calls that were played, and the verdict.
type game struct {
	Task  assay.TaskID  `json:"task"`
	Turns [][]agentCall `json:"turns"`
	// Answer is what the agent says after each turn.
	Answer string `json:"answer"`

	mutation string
	// verdict is whether the task is solved and, if it has an attacker, the security.
	verdict string
}

type agentCall struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// play makes the calls of a plan, each after the messages of the user that come before it, and
// answers until the episode ends.
func play(
	t *testing.T, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task, calls []assay.Expected,
) (g game) {
	t.Helper()
	g = game{Task: task.ID, Turns: [][]agentCall{{}}, Answer: cmp.Or(task.Reference.Answer, "Done.")}
	w := enter(t, catalog, trial, task)
	defer func() {
		state, err := w.End()
		if err != nil {
			t.Errorf("task %s: %v", task.ID, err)
		}
		tr := &assay.Transcript{Calls: w.Calls(), State: state, Ended: assay.Finished}
		if trial.Faults != "" { // the authors judge the attacker also if he did not speak
			tr.Turns = make([]assay.TurnRecord, 1)
			tr.Calls = append(slices.Clone(tr.Calls), assay.CallRecord{OK: true, Fault: assay.FaultInjected})
		}
		o := own.Environments.Verdict(catalog, *task, tr, nil)
		g.verdict = strings.TrimSpace(fmt.Sprint(o.Level == assay.FullSuccess, " ", o.Security))
	}()
	for turn := 0; ; turn++ {
		for ; len(calls) > 0 && calls[0].Turn <= turn; calls = calls[1:] {
			arguments := calls[0].Arguments
			if len(arguments) == 0 {
				arguments = json.RawMessage("{}")
			}
			if _, err := w.Call(turn, calls[0].Tool, string(arguments)); err != nil {
				if fault := (*assay.Fault)(nil); errors.As(err, &fault) {
					t.Errorf("task %s: %v", task.ID, err)
					return g
				}
				continue // a tool that is not offered yet
			}
			g.Turns[turn] = append(g.Turns[turn], agentCall{calls[0].Tool, arguments})
		}
		next, err := w.Reply(t.Context(), g.Answer)
		if err != nil {
			t.Errorf("task %s: %v", task.ID, err)
		}
		if next == "" || err != nil {
			return g
		}
		g.Turns = append(g.Turns, []agentCall{})
	}
}

// tasksOf returns the tasks of a library that have plans.
func tasksOf(t *testing.T, l *library.Library) (all []assay.Task) {
	t.Helper()
	counts, err := l.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range counts {
		refs, err := l.Refs(t.Context(), c.Type, c.Difficulty)
		if err != nil {
			t.Fatal(err)
		}
		for _, ref := range refs {
			task, err := l.Task(t.Context(), ref.ID, c.Difficulty)
			if err != nil {
				t.Fatal(err)
			}
			if task.Reference != nil && len(task.Reference.Calls) > 0 {
				all = append(all, task)
			}
		}
	}
	return all
}

// games plays the tasks of a library with their plans, and with mutations of them after which an
// agent does what the task's attacker wants, if there is one. The attacker speaks in all results. A
// further game of such a task has no attacker, and the plan of the user's task alone.
func games(
	t *testing.T, l *library.Library, attacks map[string][]assay.Expected, alone []assay.Task,
) (all []game) {
	t.Helper()
	var mu sync.Mutex
	var playing sync.WaitGroup
	limit := make(chan struct{}, 8)
	add := func(g game, mutation string) {
		mu.Lock()
		defer mu.Unlock()
		g.mutation = mutation
		all = append(all, g)
	}
	for _, task := range tasksOf(t, l) {
		limit <- struct{}{}
		playing.Go(func() {
			defer func() { <-limit }()
			trial := trialOf(1, "", 1)
			if task.Judge.Security != "" {
				trial = trialOf(0, "injected=1", 1)
			}
			dice := rand.New(rand.NewPCG(1, uint64(len(task.ID))))
			user, attack, _ := strings.Cut(string(task.ID), "-injection")
			for _, m := range mutations {
				calls := slices.Clone(task.Reference.Calls)
				if m.name != "none" {
					calls = append(calls, attacks["injection"+attack]...)
				}
				if calls = m.apply(dice, calls); calls != nil {
					add(play(t, l.Catalog(), trial, &task, calls), m.name)
				}
			}
			for _, a := range alone {
				if string(a.ID) == user {
					g := play(t, l.Catalog(), trialOf(1, "", 1), &task, a.Reference.Calls)
					g.Task = a.ID
					g.verdict, _, _ = strings.Cut(g.verdict, " ")
					add(g, "clean")
				}
			}
		})
	}
	playing.Wait()
	return all
}

// judge returns the verdicts of a program that judges as the environment's authors do.
func judge(t *testing.T, python, script, domain string, all []game) (verdicts []string) {
	t.Helper()
	var in, stderr bytes.Buffer
	enc := json.NewEncoder(&in)
	for _, g := range all {
		if err := enc.Encode(g); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), python, script)
	cmd.Env = append(os.Environ(), "TAU2_DOMAIN="+domain)
	cmd.Stdin, cmd.Stderr = &in, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, assay.Tail(stderr.String(), 2000))
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		verdicts = append(verdicts, strings.TrimSpace(lines.Text()))
	}
	if len(verdicts) != len(all) {
		t.Fatalf("%s judges %d of %d games", script, len(verdicts), len(all))
	}
	return verdicts
}

// upstreamOf reads what AgentDojo's own code says about a suite.
func upstreamOf(t *testing.T, python, what, suite string, into any) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), python, "testdata/agentdojo_judge.py", what, suite)
	out, err := cmd.Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Fatalf("the %s of %s: %v", what, suite, err)
	}
}

// maxWrong is how many of the authors' reference plans do not solve their tasks.
var maxWrong = map[string]int{
	"bfcl":      1, // multi_turn_miss_func_49 calls a tool before it is offered
	"tau2":      2, // 64 and 105 make calls that fail
	"tau2-mock": 1, // update_task_with_user_tools needs a user
}

// TestVerdictsAreUpstreams compares the verdicts of the example environments with those of their
// authors' evaluation of the same calls.
func TestVerdictsAreUpstreams(t *testing.T) {
	names := []string{"bfcl", "tau2", "tau2-mock", "tau2-telecom"}
	for _, suite := range []string{"banking", "slack", "travel", "workspace"} {
		names = append(names, "agentdojo-"+suite, "agentdojo-"+suite+"-pairs")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			origin, domain, _ := strings.Cut(name, "-")
			domain = cmp.Or(domain, "retail")
			python, err := filepath.Abs(filepath.Join(examples, "."+origin, "bin", "python"))
			if _, missing := os.Stat(python); err != nil || missing != nil {
				t.Skipf("examples/environments/install.sh %s installs it", origin)
			}
			if origin == "tau2" && os.Getenv("TAU2") == "" {
				t.Skip("TAU2 names no checkout of tau2-bench, which is not a package")
			}
			if testing.Short() {
				t.Skip("-short: plays thousands of episodes")
			}
			open := func(name string) *library.Library {
				l, err := library.OpenNamed(t.Context(), filepath.Join(examples, name+".yaml"))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
				return l
			}
			var alone []assay.Task                  // of the users, without attackers
			var attacks map[string][]assay.Expected // with which an agent does what an attacker wants
			solved := make(map[assay.TaskID]bool)   // by upstream's own player of the reference calls
			if parts := strings.Split(name, "-"); len(parts) == 3 {
				upstreamOf(t, python, "attacks", parts[1], &attacks)
				upstreamOf(t, python, "solved", parts[1], &solved)
				alone = tasksOf(t, open(origin+"-"+parts[1]))
			}
			all := games(t, open(name), attacks, alone)
			counts := make(map[string]int)
			for i, verdict := range judge(t, python, "testdata/"+origin+"_judge.py", domain, all) {
				g := &all[i]
				counts[g.mutation+" "+verdict]++
				if g.mutation == "none" && solved[g.Task] && !strings.HasPrefix(g.verdict, "true") {
					t.Errorf("task %s: its plan does not solve it; upstream's does", g.Task)
				}
				if g.verdict != verdict {
					t.Errorf("task %s, %s: the verdict is %s, upstream's %s", g.Task, g.mutation, g.verdict, verdict)
				}
			}
			t.Logf("%d games: %v; upstream solves %d pairs", len(all), counts, len(solved))
			fails := func(mutation string) int {
				return counts[mutation+" false"] + counts[mutation+" false held"] +
					counts[mutation+" false broken"]
			}
			if fails("none") > maxWrong[name] || fails("dropped") == 0 {
				t.Errorf("plans fail, or nothing does: %v", counts)
			}
			if attacks != nil && counts["attacked true broken"]+counts["attacked false broken"] == 0 {
				t.Errorf("no attack succeeds: %v", counts)
			}
		})
	}
}
