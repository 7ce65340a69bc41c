package conversation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// A history is one way in which the calls of a conversation may have gone.
type history struct {
	calls []assay.CallRecord
	state json.RawMessage
	// blind is why the state is unknown, and odd counts the results that differ from those of the tools.
	blind string
	odd   int
	// open are the numbers of the calls of which the conversation does not say what became of them, from 1.
	open []int
	// foreign is a call that worked of a tool that the library does not have.
	foreign string
}

// maxHistories limits in how many ways a conversation may have gone: six calls whose fate is unknown.
const maxHistories = 64

// histories returns every way in which the calls may have gone. If there are some in which all results are
// those of the tools, only these are left.
func histories(kit *toolkit.Kit, catalog *assay.Catalog, task *assay.Task, calls []call) ([]history, error) {
	var all []history
	var path choices
	for {
		r := replay{kit: kit, catalog: catalog, task: task, path: &path}
		if catalog.Server() == nil {
			r.session = kit.Begin(task.State)
		} else {
			r.blind = "the tools are those of a server, which cannot be asked afterwards"
		}
		for i := range calls {
			if err := r.take(i, &calls[i]); err != nil {
				return nil, err
			}
		}
		if r.blind == "" {
			var err error
			if r.state, err = r.session.State(); err != nil {
				return nil, err
			}
		}
		all = append(all, r.history)
		if !path.next() {
			break
		}
		if len(all) == maxHistories {
			return nil, fmt.Errorf("it depends on whether %s happened: the results are errors or missing",
				listed(r.open))
		}
	}
	exact := slices.DeleteFunc(slices.Clone(all), func(h history) bool { return h.odd > 0 })
	if len(exact) > 0 {
		return exact, nil
	}
	return all, nil
}

// choices are the decisions on the way through a conversation, and how many alternatives each one had.
type choices struct {
	taken, of []int
	at        int
}

func (c *choices) choose(of int) int {
	if c.at == len(c.taken) {
		c.taken, c.of = append(c.taken, 0), append(c.of, of)
	}
	c.at++
	return c.taken[c.at-1]
}

// next goes on to the next way, and returns false after the last one.
func (c *choices) next() bool {
	c.at = 0
	for last := len(c.taken) - 1; last >= 0; last-- {
		if c.taken[last]++; c.taken[last] < c.of[last] {
			c.taken, c.of = c.taken[:last+1], c.of[:last+1]
			return true
		}
	}
	return false
}

// A replay carries out the calls of a conversation once more.
type replay struct {
	kit     *toolkit.Kit
	catalog *assay.Catalog
	task    *assay.Task
	session *toolkit.Session // nil if a server has the tools
	path    *choices
	history
}

// take adds the i-th call.
func (r *replay) take(i int, c *call) error {
	if c.record != nil {
		return r.again(i, *c.record)
	}
	_, known := r.catalog.Tool(c.tool)
	if !known || len(r.task.Tools) > 0 && !slices.Contains(r.task.Tools, c.tool) {
		if c.answered && !c.failed {
			r.foreign = fmt.Sprintf("call %d is of %s, which the task does not have, so nobody knows what it changed",
				i+1, c.tool)
		}
		return nil
	}
	if !c.answered && c.failed { // it was refused before it reached a tool
		return nil
	}
	rec := assay.CallRecord{Turn: c.turn, Tool: c.tool, Arguments: c.arguments}
	args, wrong := r.kit.ReadArguments(c.tool, c.arguments)
	if !c.answered {
		if r.open = append(r.open, i+1); wrong != nil || r.path.choose(2) == 0 {
			return nil
		}
		rec.Fault, rec.Code, rec.Error = assay.FaultAfter, unknown, "there is no result"
		r.calls = append(r.calls, rec)
		return r.repeat(i, &rec, args)
	}
	if rec.OK = !c.failed; rec.OK {
		rec.Output = c.text
	} else if rec.Error, rec.Code = c.text, c.code; rec.Code == "" {
		rec.Code = unknown
	}
	switch {
	case wrong == nil:
		if err := r.fate(i, c, &rec, args); err != nil {
			return err
		}
	case c.failed:
		rec.Mistake, rec.Code, rec.Error = true, own.InvalidInput, own.InvalidInput+": "+wrong.Error()
	default:
		r.differs(i, "although its arguments do not fit the tool of the library")
	}
	r.calls = append(r.calls, rec)
	if wrong != nil || !rec.Happened() {
		return nil
	}
	return r.repeat(i, &rec, args)
}

// unknown is the code of an error that has none.
const unknown = "ERROR"

// fate decides what became of a call whose arguments fit.
func (r *replay) fate(i int, c *call, rec *assay.CallRecord, args json.RawMessage) error {
	if c.fault != nil {
		rec.Fault = *c.fault
		rec.Mistake = rec.Fault == "" && c.failed
		return nil
	}
	if !c.failed {
		return nil
	}
	refusal, err := r.refusal(c.tool, args)
	if err != nil {
		return err
	}
	if refusal != nil && strings.Contains(c.code+" "+c.text, refusal.Code) {
		rec.Mistake, rec.Code = true, refusal.Code
		return nil
	}
	r.open = append(r.open, i+1)
	switch second := r.path.choose(2) == 1; {
	case refusal != nil:
		rec.Mistake = second
	case second:
		rec.Fault = assay.FaultAfter
	}
	return nil
}

// again takes a call that Assay has recorded.
func (r *replay) again(i int, rec assay.CallRecord) error {
	r.calls = append(r.calls, rec)
	if !rec.Happened() {
		return nil
	}
	args, err := r.kit.ReadArguments(rec.Tool, rec.Arguments)
	if err != nil {
		r.differs(i, "although its arguments do not fit the tool of the library")
		return nil
	}
	return r.repeat(i, &rec, args)
}

// repeat carries out a call that happened, and compares its result. A planted fault may have changed that.
func (r *replay) repeat(i int, rec *assay.CallRecord, args json.RawMessage) error {
	if r.session == nil {
		return nil
	}
	output, err := r.session.Call(context.Background(), rec.Tool, args)
	refusal := (*toolkit.ToolError)(nil)
	switch {
	case errors.As(err, &refusal):
		r.differs(i, "but the tool of the library refuses it: "+refusal.Error())
	case err != nil:
		return err
	case rec.OK && rec.Fault == "" && rec.Cursor == "" && rec.Output != "" && !equal(rec.Output, string(output)):
		r.differs(i, "with another result than the tool of the library has")
	}
	return nil
}

// refusal returns the error with which a tool would answer a call now, or nil.
func (r *replay) refusal(tool string, args json.RawMessage) (*toolkit.ToolError, error) {
	if r.session == nil {
		return nil, nil
	}
	state, err := r.session.State()
	if err != nil {
		return nil, err
	}
	copied, err := r.kit.After(state)
	if err != nil {
		return nil, err
	}
	var refusal *toolkit.ToolError
	if _, err = copied.Call(context.Background(), tool, args); errors.As(err, &refusal) {
		err = nil
	}
	return refusal, err
}

// differs notes that a call went otherwise than it goes with the tools of the library. The state is unknown
// from then on.
func (r *replay) differs(i int, how string) {
	r.odd++
	if r.blind == "" {
		r.blind = fmt.Sprintf("call %d worked, %s", i+1, how)
	}
}

// equal reports whether a result says what a tool returned: the same value as JSON, or a text without its
// quotes.
func equal(result, output string) bool {
	var is, want any
	if json.Unmarshal([]byte(output), &want) != nil {
		return result == output
	}
	return want == any(result) || json.Unmarshal([]byte(result), &is) == nil && reflect.DeepEqual(is, want)
}

// listed names calls by their numbers.
func listed(calls []int) string {
	if len(calls) == 1 {
		return fmt.Sprintf("call %d", calls[0])
	}
	return "calls " + strings.Trim(strings.ReplaceAll(fmt.Sprint(calls), " ", ", "), "[]")
}
