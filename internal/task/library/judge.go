package library

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A judgeEntry defines full success.
type judgeEntry struct {
	Calls     []callEntry `yaml:"calls"`
	Order     string      `yaml:"order"`
	Allowed   []callEntry `yaml:"allowed"`
	Forbidden []callEntry `yaml:"forbidden"`
	State     stateEntry  `yaml:"state"`
	Answer    []string    `yaml:"answer"`
	NotAnswer []string    `yaml:"not_answer"`
	Check     string      `yaml:"check"`
	opinion   `yaml:",inline"`
}

// An opinion is that of a model, by a rubric. A file may state the part that its tasks have in common.
type opinion struct {
	Rubric string `yaml:"rubric"`
	Model  string `yaml:"model"`
}

// A stateEntry is a part of a state, or the word plan.
type stateEntry struct {
	part map[string]any
	word string
}

// UnmarshalYAML reads an object or a word.
func (s *stateEntry) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&s.word) == nil {
		return nil
	}
	return unmarshal(&s.part)
}

// A callEntry is a call, or one of several.
type callEntry struct {
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
	AnyOf     []callEntry    `yaml:"any_of"`
	// Severity is that of a forbidden call.
	Severity assay.Harm `yaml:"severity"`
}

// The orders of required calls.
const (
	listedOrder = "listed"
	anyOrder    = "any"
)

func (r *taskReader) judge(i int, e *judgeEntry) (*assay.Judge, error) {
	at := fmt.Sprintf("$.tasks[%d].judge", i)
	if e == nil && r.file.Judge.Rubric != "" {
		e, at = new(judgeEntry), "$"
	}
	if e == nil {
		return nil, r.at(i, "", fmt.Sprintf("task %s has no judge", r.file.Tasks[i].ID),
			"add judge: with calls, state, answer, check or rubric")
	}
	j := &assay.Judge{
		AnyOrder: e.Order == anyOrder, State: jsonOf(e.State.part), Answer: e.Answer,
		NotAnswer: e.NotAnswer, Check: e.Check,
	}
	if err := r.opinion(i, at, &e.opinion, j); err != nil {
		return nil, err
	}
	if word := e.State.word; word != "" {
		if err := r.byPlan(i, word); err != nil {
			return nil, err
		}
		j.State = json.RawMessage(`"plan"`)
	}
	if len(e.Calls) == 0 && len(j.State) == 0 && len(e.Answer) == 0 && e.Check == "" && j.Rubric == "" {
		return nil, r.doc.At(at, "a judge without conditions is satisfied by everybody",
			"add calls, state, answer, check or rubric")
	}
	if err := r.demands(i, at, e, j); err != nil {
		return nil, err
	}
	if e.Order != "" && e.Order != listedOrder && e.Order != anyOrder {
		return nil, r.doc.At(at+".order", fmt.Sprintf("unknown order %q", e.Order),
			assay.NameHint(e.Order, []string{listedOrder, anyOrder}))
	}
	if err := r.checked(at+".check", e.Check); err != nil {
		return nil, err
	}
	for _, list := range []struct {
		field string
		from  []callEntry
		to    *[]assay.Expected
	}{
		{".calls", e.Calls, &j.Calls},
		{".allowed", e.Allowed, &j.Allowed},
		{".forbidden", e.Forbidden, &j.Forbidden},
	} {
		var err error
		if *list.to, err = r.calls(at+list.field, list.from, r.argument); err != nil {
			return nil, err
		}
	}
	for k, call := range e.Forbidden {
		if j.Forbidden[k].Severity = call.Severity; call.Severity == "" {
			continue
		}
		if message, hint := unknownHarm(call.Severity); message != "" {
			return nil, r.doc.At(fmt.Sprintf("%s.forbidden[%d].severity", at, k), message, hint)
		}
	}
	return j, nil
}

// opinion sets the rubric of a task's judge, and the model that reads it. Each is the task's own, or else
// the file's.
func (r *taskReader) opinion(i int, at string, e *opinion, j *assay.Judge) error {
	file := r.file.Judge
	j.Rubric = strings.TrimSpace(cmp.Or(e.Rubric, file.Rubric))
	j.Model = strings.TrimSpace(cmp.Or(e.Model, file.Model))
	id := r.file.Tasks[i].ID
	switch {
	case j.Rubric != "" && j.Model == "":
		return r.doc.At(at, fmt.Sprintf("no model judges task %s by its rubric", id),
			"add model: beside rubric:, or judge: {model: …} to the file")
	case j.Rubric == "" && e.Model != "":
		return r.doc.At(at+".model", fmt.Sprintf("the judge of task %s has a model and no rubric", id),
			"add rubric: with what a success is, in words")
	case j.Rubric == "":
		j.Model = ""
	}
	return nil
}

// checked returns an error at a path if a function cannot be a check. Tools cannot, because they
// answer models.
func (r *taskReader) checked(path, name string) error {
	checks := slices.DeleteFunc(r.tools.kit.Checks(), func(f string) bool {
		_, isTool := r.tools.catalog.Tool(f)
		return isTool
	})
	if name == "" || slices.Contains(checks, name) {
		return nil
	}
	if r.tools.kit.Has(name) {
		return r.doc.At(path, fmt.Sprintf("the function %s cannot be a check", name),
			"a check is a function of its own, no tool, with the parameters (state, calls, answer)")
	}
	hint := assay.NameHint(name, checks)
	if hint == "" {
		hint = "write def " + name + "(state, calls, answer): into the script"
	}
	return r.doc.At(path, fmt.Sprintf("the script has no function %s", name), hint)
}

// demands returns an error if a condition of a judge holds, or fails, whatever happens.
func (r *taskReader) demands(i int, at string, e *judgeEntry, j *assay.Judge) error {
	for _, list := range []struct {
		field, always string
		texts         []string
	}{
		{".answer", "every answer has it", e.Answer}, {".not_answer", "no answer is without it", e.NotAnswer},
	} {
		for k, text := range list.texts {
			if strings.TrimSpace(text) == "" {
				return r.doc.At(fmt.Sprintf("%s%s[%d]", at, list.field, k),
					"this text is empty, so "+list.always, "write what the answer says, or remove it")
			}
		}
	}
	if e.State.part == nil {
		return nil
	}
	path := ""
	if len(e.State.part) == 0 {
		path = ".state"
	} else if start, err := r.tools.kit.Begin(r.state(i)).Part(j.State); err == nil {
		var s any
		_ = json.Unmarshal(start, &s) // we made it
		path = nothingAsked(e.State.part, s, ".state")
	}
	if path == "" {
		return nil
	}
	return r.doc.At(at+path, "an empty mapping asks for nothing, because every mapping contains it",
		"write the values that count; state: plan or a check can ask that nothing is there")
}

// byPlan returns an error if the judge of a task cannot compare its state with the plan's.
func (r *taskReader) byPlan(i int, word string) error {
	const field = ".judge.state"
	switch id := r.file.Tasks[i].ID; {
	case word != "plan":
		return r.at(i, field, fmt.Sprintf("unknown state %q", word),
			"write the values that count, or plan")
	case r.tools.catalog.Server() != nil:
		return r.at(i, field, fmt.Sprintf("the state of task %s is its server's", id),
			"write observe:, and the results that count here")
	case r.file.Tasks[i].Plan == nil && r.file.Tasks[i].Answer == "":
		return r.at(i, field, fmt.Sprintf("task %s has no plan that leads to a state", id),
			"add plan:, or write the values that count")
	}
	return nil
}

// calls reads a list of calls. Check looks at each that names a tool.
func (r *taskReader) calls(
	path string, entries []callEntry, check func(path string, e *callEntry) error,
) ([]assay.Expected, error) {
	var calls []assay.Expected
	for k := range entries {
		call, err := r.call(fmt.Sprintf("%s[%d]", path, k), &entries[k], check)
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

// forbids matches the paths of entries that may state a severity.
var forbids = regexp.MustCompile(`\.judge\.forbidden\[\d+\]$`)

func (r *taskReader) call(
	path string, e *callEntry, check func(path string, e *callEntry) error,
) (assay.Expected, error) {
	if e.Severity != "" && !forbids.MatchString(path) {
		return assay.Expected{}, r.doc.At(path+".severity", "only an entry of forbidden has a severity",
			"state that of what a tool changes beside its effect")
	}
	if e.AnyOf != nil && len(e.AnyOf) == 0 {
		return assay.Expected{}, r.doc.At(path+".any_of", "the list any_of is empty, so no call is one of it",
			"list calls, such as any_of: [{tool: get_order}, {tool: find_orders}], or remove it")
	}
	if (e.Tool == "") == (len(e.AnyOf) == 0) {
		return assay.Expected{}, r.doc.At(path, "a call has either a tool or any_of",
			"for example {tool: get_order, arguments: {order_id: 7}}")
	}
	if e.Tool != "" {
		err := r.known(path+".tool", e.Tool)
		if err == nil {
			err = check(path, e)
		}
		if err != nil {
			return assay.Expected{}, err
		}
	}
	alternatives, err := r.calls(path+".any_of", e.AnyOf, check)
	return assay.Expected{
		Tool: e.Tool, Arguments: jsonOf(e.Arguments), Alternatives: alternatives,
	}, err
}
