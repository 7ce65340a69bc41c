//go:build !race

package episode_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"gotest.tools/v3/golden"
)

// opening returns the messages of an episode's first request.
func opening(
	t *testing.T, catalog *assay.Catalog, trial assay.Trial, task assay.Task,
) []assay.Message {
	t.Helper()
	trial.Setting.Turns = max(trial.Setting.Turns, 1)
	f := scripted(saying("TASK_COMPLETED"))
	episode.NewRunner(catalog, 0).Run(t.Context(), f, new(trial), new(task))
	return f.asked[0].Messages
}

func TestOpenings(t *testing.T) {
	t.Parallel()
	for _, w := range world.Simulated {
		for _, variant := range []string{
			assay.Baseline, assay.CoT, assay.Optimal, "flawed_parameter_error",
		} {
			for _, setting := range assay.ToolSettings {
				for _, protocol := range assay.Protocols {
					checkOpening(t, w, variant, setting, protocol)
				}
			}
		}
	}
}

func checkOpening(t *testing.T, w, variant, setting, protocol string) {
	t.Helper()
	trial := trial(setting, .85, 1)
	trial.World, trial.Variant, trial.Protocol, trial.Severity = w, variant, protocol, assay.Severe
	trial.Setting.Turns, trial.Calls = 15, 10
	messages := opening(t, catalog, trial, task())
	text := script(messages)
	label := strings.Join([]string{w, variant, setting, protocol}, "_")
	golden.Assert(t, text, label+".txt")

	if len(messages) != 2 || messages[0].Role != assay.System || messages[1].Role != assay.User {
		t.Errorf("%s: not a system and a user message", label)
	}
	_, flawed := assay.FlawOf(variant)
	planned := variant == assay.Optimal || flawed
	if got := strings.Contains(text, "## Plan"); got != planned {
		t.Errorf("%s: prompt has a plan: %v, want %v", label, got, planned)
	}
	listed := setting == assay.Listed && protocol == assay.Tags
	inText := func(name string) bool { return strings.Contains(text, name) }
	if got := slices.ContainsFunc(catalog.Names(), inText); got != (planned || listed) {
		t.Errorf("%s: prompt has a tool's name: %v", label, got)
	}
	if got := strings.Contains(text, "Reasoning:"); got != (variant == assay.CoT) {
		t.Errorf("%s: prompt has the advice to think: %v", label, got)
	}
	if got := strings.Contains(text, "tool_search"); got != (setting == assay.Discover) {
		t.Errorf("%s: prompt has tool_search: %v", label, got)
	}
	if strings.Contains(text, "flaw") {
		t.Errorf("%s: the prompt mentions flaws", label)
	}
}

// TestOpeningOfBareTask renders a task with neither inputs nor an expected result.
func TestOpeningOfBareTask(t *testing.T) {
	t.Parallel()
	for _, empty := range []string{"", "{}", " null "} {
		bare := task()
		bare.Inputs, bare.Expected = json.RawMessage(empty), json.RawMessage(empty)
		got := opening(t, catalog, trial(assay.Listed, .85, 1), bare)[1].Content
		want := "## Task\n\n" + bare.Description + "\n\nA call whose needs are met works with a " +
			"probability of about 85 %.\n\nBegin with the first step."
		if got != want {
			t.Errorf("inputs %q: %q, want %q", empty, got, want)
		}
	}
}

// TestAuthorityOfPlans checks that only the sentence about the plan differs between authorities, and
// that every variant states the same reliability.
func TestAuthorityOfPlans(t *testing.T) {
	t.Parallel()
	const chance = "A call whose needs are met works with a probability of about 85 %."
	put := func(variant string) string {
		at := trial(assay.Listed, .85, 1)
		at.Variant, at.Severity = variant, assay.Severe
		return opening(t, catalog, at, task())[1].Content
	}
	for _, variant := range []string{assay.Optimal, "flawed_parameter_error"} {
		unstated := put(variant)
		for authority, sentence := range map[string]string{
			assay.Follow:     "Follow the plan step by step; a step that failed may be tried again.",
			assay.MayBeWrong: "The plan may be wrong. Compare each step with the task, and do what the task asks for.",
		} {
			want := strings.Replace(unstated, chance, sentence+"\n\n"+chance, 1)
			if got := put(assay.WithAuthority(variant, authority)); got != want {
				t.Errorf("%s, %s:\n%s", variant, authority, got)
			}
		}
	}
	for _, variant := range []string{assay.Baseline, assay.CoT, assay.Optimal} {
		if strings.Count(put(variant), chance) != 1 {
			t.Errorf("%s does not state the reliability once", variant)
		}
	}
}

// TestPlanStatesTrueChance checks that the plan states the chance within the world's bounds.
func TestPlanStatesTrueChance(t *testing.T) {
	t.Parallel()
	for reliability, want := range map[float64]string{
		1: "95 %", .95: "95 %", .8: "80 %", .123: "12.3 %", 2. / 3: "66.67 %", .05: "10 %",
		0: "10 %",
	} {
		trial := trial(assay.Discover, reliability, 1)
		trial.Variant = assay.Optimal
		got := opening(t, catalog, trial, task())[1].Content
		if !strings.Contains(got, "probability of about "+want) {
			t.Errorf("reliability %v: the plan does not state %s:\n%s", reliability, want, got)
		}
	}
}

// TestPromptsWithoutPlanNameNoTool checks the prompts of all built-in tasks for the variants
// baseline and cot.
func TestPromptsWithoutPlanNameNoTool(t *testing.T) {
	t.Parallel()
	builtin := assay.NewCatalog(library.Tools())
	runner := episode.NewRunner(builtin, 0)
	trial := trial(assay.Discover, .8, 1)
	trial.Variant = assay.CoT
	n := 0
	for task := range library.Generate() {
		if n++; testing.Short() && n%50 > 0 {
			continue
		}
		text := prompt(t, runner, trial, task)
		for _, name := range builtin.Names() {
			if strings.Contains(text, name) {
				t.Errorf("task %s: the prompt names %s", task.ID, name)
			}
		}
	}
	if n == 0 {
		t.Error("there are no built-in tasks")
	}
}

// TestAnswers pins the wording of all answers to a reply.
func TestAnswers(t *testing.T) {
	t.Parallel()
	call := func(id, name, args string) assay.ToolCall {
		return assay.ToolCall{ID: id, Name: name, Arguments: args}
	}
	long := strings.Repeat("very_", 16) + "long_name"
	for name, calls := range map[string][]assay.ToolCall{
		"discover": {
			call("search", "tool_search", `{"query":"ping a host"}`),
			call("search-in-vain", "tool_search", `{"query":"xyzzy"}`),
			call("search-for-nothing", "tool_search", `{}`),
			call("info", "tool_info", `{"tool":"`+writer+`"}`),
			call("info-unknown", "tool_info", `{"tool":"<b>&"}`),
			call("info-nothing", "tool_info", `{"tool":["x"]}`),
			call("call-works", "tool_call", `{"tool":"`+reader+`","arguments":{"source":"x"}}`),
			call("call-fails", "tool_call", `{"tool":"`+pinger+`"}`),
			call("call-unknown", "tool_call", `{"tool":"`+long+`"}`),
			call("call-nothing", "tool_call", `{"name":"`+reader+`"}`),
			call("no-such-function", reader, `{}`),
			call("array", "tool_call", `["`+reader+`"]`),
			call("cut-off", "tool_call", `{"tool":"`),
		},
		"listed": {
			call("works", reader, `{"source":"x"}`),
			call("fails", pinger, ``),
			call("no-such-function", "tool_search", `{"query":"x"}`),
			call("array", reader, `["x"]`),
			call("cut-off", reader, `{"source":"`),
		},
	} {
		reply := assay.Message{Content: "All at once.", Calls: calls}
		trial := trial(name, .8, seedFor(t, .8, slices.Concat(worked(reader), failed(pinger))))
		trial.Setting.Turns = 3
		_, tr := run(t, scripted(reply, saying("Hm."), saying("TASK_COMPLETED")), trial)
		golden.Assert(t, script(tr.Messages[2:]), "answers_"+name+".txt")
	}
}

// TestAnswersUnderTags pins the wording under the protocol tags, in assay-1.
func TestAnswersUnderTags(t *testing.T) {
	t.Parallel()
	reply := saying(`First <tool_search>ping a host</tool_search>, then <tool_info>` + writer + `</tool_info>.
<tool_call>` + reader + ` {"source": "inbox/week-07.csv"}</tool_call>
<tool_call>` + reader + ` {"source": "elsewhere"}</tool_call>
<tool_call>` + writer + `</tool_call>
<tool_call>` + parser + ` ,</tool_call>
<tool_call>parse</tool_call>
</tool_info>
<tool_call>` + parser)
	trial := trial(assay.Discover, 1, 1)
	trial.World, trial.Protocol, trial.Setting.Turns = world.Assay1Name, assay.Tags, 3
	_, tr := run(t, scripted(reply, saying("Hm."), saying("TASK_COMPLETED")), trial)
	golden.Assert(t, script(tr.Messages[2:]), "answers_tags.txt")
}

// TestTemplatesHash detects changes of wording.
func TestTemplatesHash(t *testing.T) {
	t.Parallel()
	const known = "f68a457b6ddfe39b"
	if episode.TemplatesHash != known {
		t.Errorf("TemplatesHash = %s, want %s: the wording has changed. Results before and after cannot be pooled, "+
			"so note the new hash in CHANGELOG.md and here", episode.TemplatesHash, known)
	}
}

// TestEveryFlawChangesThePrompt renders every built-in task with every applicable flaw and
// severity, in both worlds. A prompt differs from the optimal one only in the steps of the plan. A
// digest pins all plans.
func TestEveryFlawChangesThePrompt(t *testing.T) {
	t.Parallel()
	builtin := assay.NewCatalog(library.Tools())
	runner := episode.NewRunner(builtin, 0)
	h := sha256.New()
	compared, n := 0, 0
	for task := range library.Generate() {
		if task.Difficulty != "easy" {
			continue
		}
		if n++; testing.Short() && n%30 > 0 {
			continue
		}
		for _, w := range world.Simulated {
			if w == world.PilotName && n%5 > 0 {
				continue // the same plans, because these tasks need no inserted steps
			}
			trial := trial(assay.Discover, .8, 7)
			trial.World, trial.Variant = w, assay.Optimal
			optimal := prompt(t, runner, trial, task)
			for _, flaw := range assay.Flaws {
				for _, severity := range assay.Severities {
					if !workflow.Applies(builtin, w, &task, flaw, severity) {
						continue
					}
					trial.Variant, trial.Severity = "flawed_"+string(flaw), severity
					got := prompt(t, runner, trial, task)
					compared++
					before, steps, after := cutPlan(t, got)
					fmt.Fprintln(h, steps)
					wantBefore, rightSteps, wantAfter := cutPlan(t, optimal)
					if steps == rightSteps || before != wantBefore || after != wantAfter {
						t.Fatalf("%s, task %s, %s, %s: the prompt has to differ from the optimal one in the plan only\n%s",
							w, task.ID, flaw, severity, got)
					}
				}
			}
		}
	}
	t.Logf("%d prompts", compared)
	const known = "a8c9423f7d4fcc3b"
	if got := hex.EncodeToString(h.Sum(nil)[:8]); got != known && !testing.Short() {
		t.Errorf("the flawed prompts have the digest %s, want %s; "+
			"if the change is intended, raise workflow.Version and pin the new digest", got, known)
	}
}

// prompt returns the text with which an episode begins.
func prompt(t *testing.T, runner *episode.Runner, trial assay.Trial, task assay.Task) string {
	t.Helper()
	f := scripted(saying("TASK_COMPLETED"))
	a, _ := runner.Run(t.Context(), f, new(trial), new(task))
	if len(f.asked) == 0 {
		t.Fatalf("task %s, %s: %s", task.ID, trial.Variant, a.FaultDetail)
	}
	return script(f.asked[0].Messages)
}

func cutPlan(t *testing.T, text string) (before, steps, after string) {
	t.Helper()
	before, rest, ok := strings.Cut(text, "\n## Plan\n")
	steps, after, end := strings.Cut(rest, "\nA call whose needs are met")
	if !ok || !end {
		t.Fatalf("there is no plan in the prompt\n%s", text)
	}
	return before, steps, after
}
