package sim

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
)

var (
	stepText        = regexp.MustCompile(`(?m)^\d+\. (\S+)$`)
	argumentsText   = regexp.MustCompile(`(?m)^   Arguments: (\{.*\})$`)
	probabilityText = regexp.MustCompile(`probability of about ([0-9.]+) %`)
)

// A taskText is what a message about a task states.
type taskText struct {
	description string
	inputs      json.RawMessage // nil if there are none
	reliability float64         // -1 if it is not stated
	plan        []move          // nil without a plan
	answer      string          // of the plan
}

// knownTasks has the latest texts of tasks of up to largestKnown bytes, because each request repeats
// its own.
var knownTasks, _ = lru.New[string, *taskText](256) // the size is positive

func (v *agentView) readTask(text string) {
	task, ok := knownTasks.Get(text)
	if !ok {
		task = parseTask(text)
		if len(text) <= largestKnown {
			knownTasks.Add(text, task)
		}
	}
	v.description = task.description
	if task.inputs != nil {
		v.inputs = task.inputs
	}
	if task.reliability >= 0 {
		v.reliability = task.reliability
	}
	v.follow(task.plan, task.answer)
}

func parseTask(text string) *taskText {
	task := &taskText{reliability: -1}
	_, task.description, _ = strings.Cut(text, "## Task\n\n")
	for _, next := range []string{"\n\n## ", "\n\nA call whose needs are met"} {
		task.description, _, _ = strings.Cut(task.description, next)
	}
	if _, inputs, ok := strings.Cut(text, "\n## Inputs\n\n"); ok {
		inputs, _, _ = strings.Cut(inputs, "\n\n")
		task.inputs = json.RawMessage(inputs)
	}
	if s := probabilityText.FindStringSubmatch(text); s != nil {
		if p, err := strconv.ParseFloat(s[1], 64); err == nil {
			task.reliability = p / 100
		}
	}
	task.plan, task.answer = parsePlan(text)
	return task
}

// follow adds a plan, or the next part of one, to what the agent knows.
func (v *agentView) follow(plan []move, answer string) {
	switch {
	case plan == nil:
		return
	case v.plan == nil:
		v.plan = plan
	default:
		v.plan = append(slices.Clip(v.plan), plan...)
	}
	v.answer = answer
}

// parsePlan parses a plan, or the next part of one. Without any, the plan is nil.
func parsePlan(text string) (plan []move, answer string) {
	_, text, ok := strings.Cut(text, "## Plan\n")
	if !ok {
		return nil, ""
	}
	plan = []move{}
	heads := stepText.FindAllStringSubmatchIndex(text, -1)
	for i, h := range heads {
		end := len(text)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		s := move{text: text[h[2]:h[3]]}
		if a := argumentsText.FindStringSubmatch(text[h[1]:end]); a != nil {
			s.arguments = a[1]
		}
		plan = append(plan, s)
	}
	if s := answerText.FindStringSubmatch(text); s != nil {
		answer = s[1]
	}
	return plan, answer
}
