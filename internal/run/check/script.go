package check

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
)

// A script is a model that knows what it will do. It has the agent make the steps of a task, and watches
// what the agent does with its replies.
type script struct {
	// steps is the plan of the task. If together is true, the script asks for the first three in one reply, and
	// then for all that are missing. If endless is true, it asks for the first step forever.
	steps             []assay.Expected
	together, endless bool

	mu sync.Mutex
	// made are the steps that have succeeded, and answers are the answers of all calls, in order. The first
	// due of them should be in the latest request.
	made, answers []string
	due           int
	// asked and idle count requests with and without the tools.
	asked, idle int
	// offered and own count the tools of the task and others in the request that had the most of the former.
	offered, own int
	// whole and within count the answers that came back as a message of their own or as part of one.
	whole, within map[string]bool
}

// The reply of a script costs as much as a short reply does.
var scripted = assay.Usage{InputTokens: 100, OutputTokens: 10}

// Chat implements [assay.Provider].
func (s *script) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]string) // as the agent calls the tools, by the names of ours
	for _, f := range req.Functions {
		for _, step := range s.steps {
			if strings.HasSuffix(f.Name, step.Tool) {
				names[step.Tool] = f.Name
			}
		}
	}
	if n := len(names); n >= s.offered {
		s.offered, s.own = n, max(0, len(req.Functions)-n)
	}
	s.due = len(s.answers)
	for _, m := range req.Messages {
		s.hear(m.Content)
	}
	reply := assay.Message{Role: assay.Assistant}
	if len(names) == 0 {
		s.idle++
		reply.Content = "Five steps"
	} else {
		s.asked++
		for _, step := range s.next(names) {
			arguments := string(step.Arguments)
			if s.endless {
				arguments = fmt.Sprintf(`{"n":%d,"note":"again"}`, s.asked)
			}
			reply.Calls = append(reply.Calls, assay.ToolCall{
				ID: fmt.Sprintf("call_%d_%s", s.asked, step.Tool), Name: names[step.Tool], Arguments: arguments,
			})
		}
		if len(reply.Calls) == 0 {
			s.conclude(&reply, req.Functions)
		}
	}
	finish := "stop"
	if len(reply.Calls) > 0 {
		finish = "tool_calls"
	}
	return &assay.Response{Message: reply, Finish: finish, Usage: scripted}, nil
}

// finalAnswer ends the name of a tool with which some agents want the answer.
const finalAnswer = "final_answer"

// conclude ends the task.
func (s *script) conclude(reply *assay.Message, functions []assay.Function) {
	const answer = "All steps are done. TASK_COMPLETED"
	for _, f := range functions {
		if strings.HasSuffix(f.Name, finalAnswer) {
			reply.Calls = append(reply.Calls, assay.ToolCall{
				ID: "call_" + finalAnswer, Name: f.Name, Arguments: `{"answer":"` + answer + `"}`,
			})
			return
		}
	}
	reply.Content = answer
}

// next returns the steps to ask for, of those whose tools have names.
func (s *script) next(names map[string]string) (steps []assay.Expected) {
	for _, step := range s.steps {
		if names[step.Tool] != "" && (s.endless || !slices.Contains(s.made, step.Tool)) {
			steps = append(steps, step)
		}
	}
	switch {
	case s.endless, !s.together && len(steps) > 1:
		return steps[:1]
	case s.together && len(s.made) == 0:
		return steps[:min(3, len(steps))]
	}
	return steps
}

// called notes a call that the tools have answered.
func (s *script) called(tool, _, answer string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers = append(s.answers, answer)
	var result struct{ Success bool }
	if json.Unmarshal([]byte(answer), &result) == nil && result.Success {
		s.made = append(s.made, tool)
	}
}

// hear notes the answers that a message of a conversation has.
func (s *script) hear(text string) {
	for _, answer := range s.answers {
		quoted, _ := json.Marshal(answer) // a text can be marshalled
		switch {
		case strings.TrimSpace(text) == answer:
			s.whole[answer] = true
		case strings.Contains(text, answer), strings.Contains(text, strings.Trim(string(quoted), `"`)):
			s.within[answer] = true
		}
	}
}
