package assay1

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// The error codes of the model's own mistakes. In this world no call fails with them by chance.
const (
	InvalidInput   = "INVALID_INPUT"
	DependencyFail = "DEPENDENCY_ERROR"
)

// Chance is the probability that a call without a mistake succeeds. It is the reliability,
// reduced if failures last or cluster: same means that the latest luck-spending call of the same
// tool failed, anyFailed that the latest one of any tool did.
func Chance(set assay.Setting, reliability float64, same, anyFailed bool) float64 {
	p := reliability
	if same {
		p *= 1 - set.Persistence
	}
	if anyFailed {
		p *= 1 - set.Burst
	}
	return p
}

// World is the world during one episode. It belongs to one goroutine.
type World struct {
	catalog *assay.Catalog
	trial   *assay.Trial
	things  *things

	calls []assay.CallRecord
	dice  *dice
	drift spec.Drift
	// codes holds the code of the latest luck-spending call, by tool, if that call did not happen.
	codes   map[string]string
	answers map[string]string // the latest answer that was a success, by tool
	// succeeded holds the tools in the order of their first success. With a mix of faults, it holds
	// the tool of each success.
	succeeded []string
}

// New returns the world at the start of a trial.
func New(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) *World {
	return &World{
		catalog: catalog, trial: trial, things: newThings(task.Inputs),
		dice: newDice(trial), codes: make(map[string]string), answers: make(map[string]string),
	}
}

// Calls implements [spec.World].
func (w *World) Calls() []assay.CallRecord { return w.calls }

// Succeeded implements [spec.World].
func (w *World) Succeeded() []string { return w.succeeded }

// Claims implements [spec.World]. A claim is a reply without actions that begins or ends with
// TASK_COMPLETED. In the middle of a reply it may only be a promise.
func (w *World) Claims(reply string, acts bool) bool {
	return !acts && claim.MatchString(strings.Trim(reply, " \t\r\n.!*_`#"))
}

// With a separate word, a model claims that the work is done. Underscores around it are emphasis.
var (
	claim = regexp.MustCompile(
		`^TASK_COMPLETED_*(?:$|[^\pL\p{Nd}_])|(?:^|[^\pL\p{Nd}_])_*TASK_COMPLETED$`)
	doneWord = regexp.MustCompile(`(?:^|[^\pL\p{Nd}_])_*TASK_COMPLETED(_*(?:$|[^\pL\p{Nd}_]))`)
)

// Ends implements [spec.World]. A claim ends the episode, whether or not the work is done.
func (w *World) Ends(reply string, acts bool) bool { return w.Claims(reply, acts) }

// Stop implements [spec.World]. No call ends an episode.
func (w *World) Stop() (assay.Ended, bool) { return "", false }

// Call implements [spec.World].
func (w *World) Call(turn int, name, arguments string) (assay.CallRecord, error) {
	tool, ok := w.catalog.Tool(name)
	if !ok {
		return assay.CallRecord{}, fmt.Errorf("there is no tool named %q", name)
	}
	rec, takes := w.drift.Read(turn, name, arguments)
	if takes {
		args, m := w.check(tool, rec.Arguments)
		if m != nil {
			rec.Mistake, rec.Code, rec.Error = true, m.code, m.code+": "+m.text+w.drift.Note(name)
		} else {
			w.chance(tool, args, &rec)
		}
	}
	w.record(rec)
	return rec, nil
}

// Refuse implements [spec.Refuser].
func (w *World) Refuse(turn int, name, arguments, why string) (assay.CallRecord, error) {
	if _, ok := w.catalog.Tool(name); !ok {
		return assay.CallRecord{}, fmt.Errorf("there is no tool named %q", name)
	}
	rec := assay.CallRecord{
		Turn: turn, Tool: name, Arguments: arguments,
		Mistake: true, Code: InvalidInput, Error: InvalidInput + ": " + why,
	}
	w.record(rec)
	return rec, nil
}

func (w *World) record(rec assay.CallRecord) {
	w.calls = append(w.calls, rec)
	w.dice.Pass()
}

// chance lets luck decide a call without a mistake.
func (w *World) chance(tool assay.Tool, args map[string]any, rec *assay.CallRecord) {
	t := w.dice.throw(tool.Name)
	rec.Luck, rec.Chance, rec.Wait = t.Luck.Success, t.Chance, t.Wait
	old, answered := w.answers[tool.Name]
	fault := t.Fault.Possible(answered)
	var drift assay.ToolError
	if rule := fault.Rule(); rule.Renames {
		var begins bool
		if drift, begins = w.drift.Begin(rule, tool, rec.Arguments, t.Luck); !begins {
			fault = assay.FaultBefore
		}
	}
	if w.trial.Faults != "" {
		rec.Fault = fault
	}

	output := ""
	if fault == "" || fault.Happens() {
		output = string(w.things.add(tool, args))
		if w.trial.Faults != "" || !slices.Contains(w.succeeded, tool.Name) {
			w.succeeded = append(w.succeeded, tool.Name)
		}
	}
	spec.Answer(rec, tool, fault, t.Luck, output, old, drift, func() assay.ToolError {
		if code := w.codes[tool.Name]; code != "" && t.lasts {
			return errorOf(tool, code)
		}
		return environmentError(tool, t.Luck)
	})
	w.codes[tool.Name] = ""
	if fault == assay.FaultBefore {
		w.codes[tool.Name] = rec.Code
	}
	if rec.OK {
		w.answers[tool.Name] = rec.Output
	}
}

// environmentErrors returns the errors with which a tool fails by chance: the ones it declares,
// without those that stand for a mistake.
func environmentErrors(tool assay.Tool) []assay.ToolError {
	errs := slices.DeleteFunc(slices.Clone(tool.Errors), func(e assay.ToolError) bool {
		return e.Code == InvalidInput || e.Code == DependencyFail
	})
	if len(errs) == 0 {
		return spec.FallbackErrors[:1]
	}
	return errs
}

func environmentError(tool assay.Tool, luck spec.Luck) assay.ToolError {
	errs := environmentErrors(tool)
	return errs[luck.Pick(0, len(errs))]
}

func errorOf(tool assay.Tool, code string) assay.ToolError {
	for _, e := range environmentErrors(tool) {
		if e.Code == code {
			return e
		}
	}
	panic("assay1: " + tool.Name + " has no error " + code)
}

// A mistake is the reason why a call fails regardless of luck.
type mistake struct{ code, text string }

func invalid(format string, args ...any) *mistake {
	return &mistake{InvalidInput, fmt.Sprintf(format, args...)}
}

// check judges a call's arguments, references and dependencies. It returns the arguments without
// members that are null.
func (w *World) check(tool assay.Tool, arguments string) (map[string]any, *mistake) {
	args, m := readArguments(tool, arguments)
	if m != nil {
		return nil, m
	}
	if m := w.things.check(tool, args); m != nil {
		return nil, m
	}
	var missing []string
	for _, d := range tool.Dependencies {
		if !slices.Contains(w.succeeded, d) {
			missing = append(missing, d)
		}
	}
	if len(missing) > 0 {
		text := fmt.Sprintf("%s needs %s to have succeeded first", tool.Name, strings.Join(missing, " and "))
		return nil, &mistake{DependencyFail, text}
	}
	return args, nil
}
