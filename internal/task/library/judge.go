package library

import (
	"encoding/json"
	"fmt"

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
}

// The orders of required calls.
const (
	listedOrder = "listed"
	anyOrder    = "any"
)

func (r *taskReader) judge(i int, e *judgeEntry) (*assay.Judge, error) {
	at := fmt.Sprintf("$.tasks[%d].judge", i)
	if e == nil {
		return nil, r.at(i, "", fmt.Sprintf("task %s has no judge", r.file.Tasks[i].ID),
			"add judge: with calls, state, answer or check")
	}
	j := &assay.Judge{
		AnyOrder: e.Order == anyOrder, State: jsonOf(e.State.part), Answer: e.Answer,
		NotAnswer: e.NotAnswer, Check: e.Check,
	}
	if word := e.State.word; word != "" {
		if err := r.byPlan(i, word); err != nil {
			return nil, err
		}
		j.State = json.RawMessage(`"plan"`)
	}
	if len(e.Calls) == 0 && len(j.State) == 0 && len(e.Answer) == 0 && e.Check == "" {
		return nil, r.doc.At(at, "a judge without conditions is satisfied by everybody",
			"add calls, state, answer or check")
	}
	if e.Order != "" && e.Order != listedOrder && e.Order != anyOrder {
		return nil, r.doc.At(at+".order", fmt.Sprintf("unknown order %q", e.Order),
			assay.NameHint(e.Order, []string{listedOrder, anyOrder}))
	}
	if e.Check != "" && !r.tools.kit.Has(e.Check) {
		return nil, r.doc.At(at+".check", fmt.Sprintf("the script has no function %s", e.Check),
			assay.NameHint(e.Check, r.tools.kit.Functions()))
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
		if *list.to, err = r.calls(at+list.field, list.from); err != nil {
			return nil, err
		}
	}
	return j, nil
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

func (r *taskReader) calls(path string, entries []callEntry) ([]assay.Expected, error) {
	var calls []assay.Expected
	for k := range entries {
		call, err := r.call(fmt.Sprintf("%s[%d]", path, k), &entries[k])
		if err != nil {
			return nil, err
		}
		calls = append(calls, call)
	}
	return calls, nil
}

func (r *taskReader) call(path string, e *callEntry) (assay.Expected, error) {
	if (e.Tool == "") == (len(e.AnyOf) == 0) {
		return assay.Expected{}, r.doc.At(path, "a call has either a tool or any_of",
			"for example {tool: get_order, arguments: {order_id: 7}}")
	}
	if e.Tool != "" {
		if err := r.known(path+".tool", e.Tool); err != nil {
			return assay.Expected{}, err
		}
	}
	alternatives, err := r.calls(path+".any_of", e.AnyOf)
	return assay.Expected{
		Tool: e.Tool, Arguments: jsonOf(e.Arguments), Alternatives: alternatives,
	}, err
}

// reference reads a plan, whose calls are definite and fit the tools' schemas.
