package own

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// InvalidInput is the error code of arguments that do not fit a tool's schema.
const InvalidInput = "INVALID_INPUT"

// A Backend carries out the tools of one attempt. If the error of a call is an [assay.Fault], the
// attempt ends with it. Any other error is the tool's answer.
type Backend interface {
	Call(ctx context.Context, tool string, arguments json.RawMessage) (json.RawMessage, error)
	// State returns the state of the tools, which the verdict judges, or nil if it is unknown.
	State(ctx context.Context) (json.RawMessage, error)
	io.Closer
}

// Start returns the backend of an attempt: the library's script, its server or its environment. It
// must be closed.
func Start(ctx context.Context, catalog *assay.Catalog, task *assay.Task) (Backend, error) {
	if server := catalog.Server(); server != nil && server.OpenEnv {
		e := &environmentBackend{catalog: catalog, task: task}
		if err := e.begin(ctx, 0); err != nil {
			return nil, errors.Join(err, e.Close())
		}
		return e, nil
	}
	kit, err := toolkit.Of(catalog)
	if err != nil {
		return nil, &assay.Fault{
			Kind: assay.ToolServer, Detail: err.Error(), Err: err, Hopeless: true,
		}
	}
	if catalog.Server() != nil {
		return &servedBackend{catalog: catalog, task: task}, nil
	}
	return script{kit.Begin(task.State)}, nil
}

// script is a backend in memory.
type script struct{ *toolkit.Session }

func (s script) State(context.Context) (json.RawMessage, error) { return s.Session.State() }
func (script) Close() error                                     { return nil }

// World is the world during one episode. It belongs to one goroutine.
type World struct {
	ctx     context.Context
	kit     *toolkit.Kit
	backend Backend
	catalog *assay.Catalog
	trial   *assay.Trial
	task    *assay.Task

	calls     []assay.CallRecord
	spent     map[string]int    // calls that spent luck so far, by tool
	succeeded []string          // tools, in the order of their first success
	answers   map[string]string // the latest success of each tool
	broken    error             // why no call can be carried out
	outages   spec.Outages
	drift     spec.Drift
	pages     spec.Pages
	corrupted map[string]thrown // the first fault that stays, by tool
}

// New returns the world at the start of a trial whose tools a backend carries out. The context is
// the attempt's.
func New(
	ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
	backend Backend,
) *World {
	w := &World{
		ctx: ctx, backend: backend, catalog: catalog, trial: trial, task: task,
		spent: make(map[string]int), answers: make(map[string]string), outages: spec.NewOutages(trial),
	}
	w.kit, w.broken = toolkit.Of(catalog)
	return w
}

// begin returns the world of a catalog with its own backend.
func begin(
	ctx context.Context, catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) *World {
	backend, err := Start(ctx, catalog, task)
	w := New(ctx, catalog, trial, task, backend)
	w.broken = err
	return w
}

// Calls implements [spec.World].
func (w *World) Calls() []assay.CallRecord { return w.calls }

// Succeeded implements [spec.World].
func (w *World) Succeeded() []string { return w.succeeded }

// Claims implements [spec.World].
func (w *World) Claims(reply string, acts bool) bool { return !acts && Claims(w.task, reply) }

// Claims reports whether a reply without actions claims that a task is done: it begins or ends with the
// task's end word.
func Claims(task *assay.Task, reply string) bool {
	_, claims := cutEndWord(reply, EndWordOf(task))
	return claims
}

// Ends implements [spec.World]. A claim ends the episode, whether or not the work is done.
func (w *World) Ends(reply string, acts bool) bool { return w.Claims(reply, acts) }

// Stop implements [spec.World]. No call ends an episode.
func (w *World) Stop() (assay.Ended, bool) { return "", false }

// State returns the state of the tools after the calls so far, or nil if it is unknown.
func (w *World) State() (json.RawMessage, error) {
	if w.broken != nil {
		return nil, w.broken
	}
	return w.backend.State(w.ctx)
}

// End implements [spec.Ender].
func (w *World) End() (json.RawMessage, error) {
	state, err := w.State()
	if w.backend != nil {
		err = errors.Join(err, w.backend.Close())
	}
	return state, err
}

// cutEndWord returns a reply without the end word, and whether it begins or ends with it. The word
// stands alone: no letter or digit is next to it.
func cutEndWord(reply, word string) (rest string, found bool) {
	text := strings.Trim(reply, " \t\r\n.!*_`#")
	if rest, ok := strings.CutSuffix(text, word); ok {
		last, _ := utf8.DecodeLastRuneInString(rest)
		if rest == "" || !wordRune(last) {
			return strings.TrimRight(rest, " \t\r\n*_`#"), true
		}
	}
	if rest, ok := strings.CutPrefix(text, word); ok {
		first, _ := utf8.DecodeRuneInString(rest)
		if !wordRune(first) {
			return strings.TrimLeft(rest, " \t\r\n*_`#:"), true
		}
	}
	return reply, false
}

func wordRune(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Call implements [spec.World].
func (w *World) Call(turn int, name, arguments string) (assay.CallRecord, error) {
	tool, err := w.tool(name)
	if err != nil {
		return assay.CallRecord{}, err
	}
	rec, takes := w.drift.Read(turn, name, arguments)
	if takes && w.pages.Read(&rec) {
		args, err := w.kit.ReadArguments(name, rec.Arguments)
		if err != nil {
			rec.Mistake, rec.Code, rec.Error = true, InvalidInput, InvalidInput+": "+err.Error()+w.drift.Note(name)
		} else if err := w.chance(tool, args, &rec); err != nil {
			return assay.CallRecord{}, err
		}
	}
	w.record(rec)
	return rec, nil
}

// Refuse implements [spec.Refuser].
func (w *World) Refuse(turn int, name, arguments, why string) (assay.CallRecord, error) {
	if _, err := w.tool(name); err != nil {
		return assay.CallRecord{}, err
	}
	rec := assay.CallRecord{
		Turn: turn, Tool: name, Arguments: arguments,
		Mistake: true, Code: InvalidInput, Error: InvalidInput + ": " + why,
	}
	w.record(rec)
	return rec, nil
}

// tool returns a tool that the task may use, or why it cannot be called.
func (w *World) tool(name string) (assay.Tool, error) {
	tool, ok := w.catalog.Tool(name)
	if !ok || len(w.task.Tools) > 0 && !slices.Contains(w.task.Tools, name) {
		return tool, fmt.Errorf("there is no tool named %q", name)
	}
	return tool, w.broken
}

func (w *World) record(rec assay.CallRecord) {
	w.calls = append(w.calls, rec)
	w.outages.Pass()
}

// chance lets luck decide a call whose arguments fit. It returns an error if the backend broke. A
// call that the tool refuses is a mistake and spends no luck.
func (w *World) chance(tool assay.Tool, args json.RawMessage, rec *assay.CallRecord) error {
	t := throw(w.trial, tool, w.spent[tool.Name], &w.outages)
	old, answered := w.answers[tool.Name]
	t.Fault = t.Fault.Possible(answered)
	if t.Fault == "" {
		t.Fault = w.corrupted[tool.Name].Fault
	}
	var drift assay.ToolError
	if rule := t.Fault.Rule(); rule.Renames {
		var begins bool
		if drift, begins = w.drift.Begin(rule, tool, rec.Arguments, t.Luck); !begins {
			t.Fault = assay.FaultBefore
		}
	}
	output := ""
	if t.Fault == "" || t.Fault.Happens() {
		result, injected, err := w.call(tool.Name, args, t.Fault)
		if t.Fault == assay.FaultInjected && !injected {
			t.Fault = ""
		}
		if fault := (*assay.Fault)(nil); errors.As(err, &fault) {
			return fault
		}
		if err != nil {
			rec.Mistake, rec.Code, rec.Error = true, codeOf(err), err.Error()
			return nil
		}
		output = w.pages.Rest(rec, string(result))
		if t.Fault.Rule().Rereads {
			var lands bool
			if output, lands = w.misreport(tool, rec, t, output); !lands {
				t.Fault = ""
			}
		}
	}
	w.spent[tool.Name]++
	rec.Luck, rec.Chance, rec.Wait = t.Luck.Success, t.Chance, t.Wait
	if t.named {
		rec.Fault = t.Fault
	}
	spec.Answer(rec, tool, t.Fault, t.Luck, output, old, drift, func() assay.ToolError {
		return environmentError(tool, t.Luck)
	})
	if rec.OK {
		w.answers[tool.Name] = rec.Output
		if !slices.Contains(w.succeeded, tool.Name) {
			w.succeeded = append(w.succeeded, tool.Name)
		}
	}
	return nil
}

// misreport returns an answer with a wrong value, or with half of a list. It returns false, and the whole
// answer, if it has nothing to change. A fault that stays always has the luck of the first call that met it, so
// that the same answer is wrong in the same way.
func (w *World) misreport(tool assay.Tool, rec *assay.CallRecord, t thrown, output string) (string, bool) {
	rule, luck := t.Fault.Rule(), t.Luck
	if rule.Pages {
		return w.pages.Cut(tool, rec, output, luck)
	}
	if rule.Stays {
		if first, known := w.corrupted[tool.Name]; known {
			luck = first.Luck
		}
	}
	output, lands := spec.Misstate(rec, output, luck)
	if rule.Stays && lands {
		if w.corrupted == nil {
			w.corrupted = make(map[string]thrown)
		}
		t.Luck = luck
		w.corrupted[tool.Name] = t
	}
	return output, lands
}

// call makes a call, with an attacker's words in the result if that is its fault.
func (w *World) call(tool string, args json.RawMessage, fault assay.ToolFault) (
	result json.RawMessage, injected bool, err error,
) {
	if e, ok := w.backend.(*environmentBackend); ok && fault == assay.FaultInjected {
		return e.Inject(w.ctx, tool, args)
	}
	result, err = w.backend.Call(w.ctx, tool, args)
	return result, false, err
}

// codeOf returns the code of a tool's own error.
func codeOf(err error) string {
	if refusal := (*toolkit.ToolError)(nil); errors.As(err, &refusal) {
		return refusal.Code
	}
	return "TOOL_ERROR"
}

// ChanceErrors returns the errors with which a tool fails by chance: those that it declares, or two
// that any tool can have.
func ChanceErrors(tool assay.Tool) []assay.ToolError {
	if len(tool.Errors) > 0 {
		return tool.Errors
	}
	return []assay.ToolError{spec.FallbackErrors[0], spec.Timeout(tool)}
}

func environmentError(tool assay.Tool, luck spec.Luck) assay.ToolError {
	errs := ChanceErrors(tool)
	return errs[luck.Pick(0, len(errs))]
}
