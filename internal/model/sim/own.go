package sim

import (
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// endWordText finds the word that ends an episode with tools that users wrote. Other episodes do
// not have this sentence.
var endWordText = regexp.MustCompile(
	`reply with your answer .* and end it with the word (\S+)\. That`)

// answerText finds the answer of a plan.
var answerText = regexp.MustCompile(
	`(?s)\n\nThen answer: (.*?)(?:\n\n(?:Follow the plan|The plan may be|A call whose needs)|$)`)

// ownAgents are the agents that understand tools that users wrote.
var ownAgents = []string{Listed, Optimal, Expert, Obedient, Batcher}

// asksRest reports whether a call asks for the rest of an earlier answer.
func asksRest(earlier []pastCall, c pastCall) bool {
	return slices.ContainsFunc(earlier, func(e pastCall) bool {
		return e.cursor != "" && c.text == e.text && sameJSON(c.arguments, e.rest().arguments)
	})
}

// carryOutOwn makes the calls of the plan, each until it works or is refused, and gives the plan's
// answer. Without a plan it calls the tools that the description seems to ask for, with the task's
// inputs, and answers with the output of the last one. An agent that reads asks for the rest of an answer.
func (m *Models) carryOutOwn(v *agentView, reads bool) assay.Message {
	if msg, wait := v.look(); wait {
		return msg
	}
	acts := m.planned(v)
	next := v.corrected
	for i, c := range v.calls {
		if !asksRest(v.calls[:i], c) && (c.ok || !m.mayPass(c)) {
			next++
		}
	}
	if n := len(v.calls); reads && n > 0 && v.calls[n-1].cursor != "" && !v.spent() {
		return v.message(v.calls[n-1].rest())
	}
	if next < len(acts) && !v.spent() {
		return v.message(acts[next])
	}
	answer := v.answer
	if answer == "" && len(v.plan) > 0 {
		answer = m.answer(v)
	}
	return m.claim(v, answer)
}

// answer returns the answer to a task with tools that users wrote, or "" if it is unknown.
func (m *Models) answer(v *agentView) string {
	if m.answers == nil {
		return ""
	}
	return m.answers(v.description)
}

// claim says that the task is done. Where users wrote the tools, it gives the answer, or if it is ""
// the latest result.
func (m *Models) claim(v *agentView, answer string) assay.Message {
	if v.endWord == "" && !v.talks {
		return done
	}
	if answer == "" {
		answer = strings.TrimSpace("All steps are done. " + v.output)
	}
	return assay.Message{
		Role: assay.Assistant, Content: strings.TrimSpace(answer + "\n" + v.endWord),
	}
}

// mayPass reports whether a call that failed may work the next time: its error is one with which
// the tool can fail by chance.
func (m *Models) mayPass(c pastCall) bool {
	tool, _ := m.catalog.Tool(c.text)
	return c.code == spec.Throttled || c.code == spec.Renamed || slices.ContainsFunc(own.ChanceErrors(tool), func(e assay.ToolError) bool {
		return e.Code == c.code
	})
}

// decide lets an agent decide. If users wrote the tools, claims have the task's own end word.
func (m *Models) decide(model string, v *agentView) assay.Message {
	if c, made, _ := characterOf(model); made {
		return c.plays(m, v)
	}
	if errs, is, _ := errsOf(model); is {
		return m.judge(v, errs)
	}
	if model == Optimal && m.tasks != nil {
		v.plan = m.needed(v)
	}
	if v.endWord == "" && !v.talks {
		return agents[model](m, v)
	}
	if slices.Contains(ownAgents, model) {
		return m.carryOutOwn(v, model == Expert)
	}
	reply := agents[model](m, v)
	reply.Content = strings.ReplaceAll(reply.Content, "TASK_COMPLETED", v.endWord)
	return reply
}
