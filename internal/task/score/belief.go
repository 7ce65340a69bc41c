package score

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// damaged returns the calls before a place whose answers were old, wrong or lacked a part, and that were not
// made again with success. Where data are passed by reference, nobody reads the answers.
func (q *inquiry) damaged(before int) (calls []int) {
	if world.Of(q.trial.World).References {
		return nil
	}
	for i, c := range q.tr.Calls[:before] {
		work := q.catalog.Work(c.Tool)
		again := func(l assay.CallRecord) bool { return q.catalog.Work(l.Tool) == work && l.Met() == "" && l.OK }
		if c.Fault.Rule().Misleads != "" && !slices.ContainsFunc(q.tr.Calls[i+1:before], again) {
			calls = append(calls, i)
		}
	}
	return calls
}

// source returns the call whose wrong answer has a wrong value of a call, or -1 if the value is the
// model's own.
func (q *inquiry) source(call int) int {
	var wanted []string
	for s := range q.facts.Steps {
		if q.isOf(s, q.tr.Calls[call].Tool) {
			wanted = append(wanted, scalars(string(q.facts.Steps[s].Arguments))...)
		}
	}
	for _, i := range q.damaged(call) {
		says := misleading(&q.tr.Calls[i])
		for _, v := range scalars(q.tr.Calls[call].Arguments) {
			if slices.Contains(says, v) && !slices.Contains(wanted, v) && !strings.Contains(q.task.Description, v) {
				return i
			}
		}
	}
	return -1
}

// misleading returns the values in the wrong answer of a call that may be wrong: all, unless it is known
// which one is.
func misleading(c *assay.CallRecord) []string {
	if c.Wrong != "" {
		return scalars(c.Wrong)
	}
	return scalars(c.Output)
}

// told returns the call whose wrong answer the model handed on in its own, or -1. From a part of a list,
// any answer follows.
func (q *inquiry) told() int {
	for _, i := range q.damaged(len(q.tr.Calls)) {
		c := &q.tr.Calls[i]
		if c.Fault.Rule().Pages || strings.HasPrefix(strings.TrimSpace(c.Output), "[") && c.Wrong == "" {
			return i
		}
		for _, v := range misleading(c) {
			if v != "" && strings.Contains(q.said(), v) && !strings.Contains(q.task.Description, v) {
				return i
			}
		}
	}
	return -1
}

// halved returns the call whose wrong answer lacks a value that a step needs and that the task does not
// state, or -1.
func (q *inquiry) halved(step int) int {
	for _, i := range q.damaged(len(q.tr.Calls)) {
		c := &q.tr.Calls[i]
		says, truth := scalars(c.Output), scalars(c.Truth)
		for _, v := range scalars(string(q.facts.Steps[step].Arguments)) {
			if v != "" && (c.Wrong == "" || slices.Contains(truth, v)) && !slices.Contains(says, v) && !strings.Contains(q.task.Description, v) {
				return i
			}
		}
	}
	return -1
}

// believed explains a step that went wrong because the model acted on the answer of a call.
func (q *inquiry) believed(i int) Reason {
	c := &q.tr.Calls[i]
	because, again := fmt.Sprintf(c.Fault.Rule().Misleads, i+1, c.Tool), "a call of "+c.Tool+" again"
	if c.Fault.Rule().Stays {
		again = "to learn the truth elsewhere, because the tool always says so"
		if other := q.substitute(c.Tool); other != "" {
			again = "a call of " + other + ", which does the same"
		}
	}
	return q.at(i, assay.BelievedAnswer, because, "to notice that, and "+again)
}

// scalars returns the texts, numbers and truth values in a JSON value, as text.
func scalars(text string) (all []string) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return nil
	}
	var add func(v any)
	add = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for _, e := range v {
				add(e)
			}
		case []any:
			for _, e := range v {
				add(e)
			}
		case nil:
		default:
			all = append(all, fmt.Sprint(v))
		}
	}
	add(v)
	return all
}

// sameJSON reports whether two arguments are equal as JSON. None are an empty object.
func sameJSON(a, b string) bool {
	return a == b || canonical(a) == canonical(b)
}

func canonical(text string) string {
	if strings.TrimSpace(text) == "" {
		return "{}"
	}
	var v any
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return text
	}
	b, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return string(b)
}
