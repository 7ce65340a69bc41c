package world

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Assay1Name is the name of the default world. docs/worlds.md holds its rules.
const Assay1Name = "assay-1"

// The codes of calls that fail by the model's own mistake. In assay-1 no call
// fails with them by chance.
const (
	InvalidInput   = "INVALID_INPUT"
	DependencyFail = "DEPENDENCY_ERROR"
)

// Assay1Chance is the probability that a call without mistake works: the
// reliability, less where failures last or cluster. Same says that the latest
// luck-spending call of the same tool failed, any that the latest of any tool
// did.
func Assay1Chance(set assay.Setting, reliability float64, same, anyFailed bool) float64 {
	p := reliability
	if same {
		p *= 1 - set.Persistence
	}
	if anyFailed {
		p *= 1 - set.Burst
	}
	return p
}

// Assay1 is the world assay-1 during one episode. It belongs to one goroutine.
type Assay1 struct {
	catalog *assay.Catalog
	trial   *assay.Trial
	things  *things

	calls     []assay.CallRecord
	spent     map[string]int    // luck-spending calls so far, by tool
	failed    map[string]string // code of the latest luck-spending call, by tool; "" where it worked
	latest    bool              // the latest luck-spending call of any tool failed
	succeeded []string          // tools, in the order of their first success
}

var _ World = (*Assay1)(nil)

// NewAssay1 returns the world at the start of a trial.
func NewAssay1(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) *Assay1 {
	return &Assay1{
		catalog: catalog, trial: trial, things: newThings(task.Inputs),
		spent: make(map[string]int), failed: make(map[string]string),
	}
}

// Calls implements [World].
func (w *Assay1) Calls() []assay.CallRecord { return w.calls }

// Succeeded implements [World].
func (w *Assay1) Succeeded() []string { return w.succeeded }

// Claims implements [World]: a claim is a reply without any action that begins or
// ends with the word.
func (w *Assay1) Claims(reply string, acts bool) bool {
	reply = strings.Trim(reply, " \t\r\n.!*_`#")
	return !acts && (strings.HasPrefix(reply, claim) || strings.HasSuffix(reply, claim))
}

// claim is the word with which a model says that the work is done. Elsewhere in
// a reply it may be a promise.
const claim = "TASK_COMPLETED"

// Ends implements [World]: a claim ends the episode, whatever was done.
func (w *Assay1) Ends(reply string, acts bool) bool { return w.Claims(reply, acts) }

// Stop implements [World]: no call ends an episode.
func (w *Assay1) Stop() (assay.Ended, bool) { return "", false }

// Call implements [World].
func (w *Assay1) Call(turn int, name, arguments string) (assay.CallRecord, error) {
	tool, ok := w.catalog.Tool(name)
	if !ok {
		return assay.CallRecord{}, fmt.Errorf("no tool is named %q", name)
	}
	rec := assay.CallRecord{Turn: turn, Tool: name, Arguments: arguments}
	args, m := w.check(tool, arguments)
	if m != nil {
		rec.Mistake, rec.Code, rec.Error = true, m.code, m.code+": "+m.text
	} else {
		w.chance(tool, args, &rec)
	}
	w.calls = append(w.calls, rec)
	return rec, nil
}

// chance lets luck decide a call without mistake.
func (w *Assay1) chance(tool assay.Tool, args map[string]any, rec *assay.CallRecord) {
	set, reliability := w.trial.Setting, w.trial.Reliability
	luck := Draw(w.trial.Seed, tool.Name, w.spent[tool.Name])
	before := w.failed[tool.Name]
	rec.Luck, rec.Chance = luck.Success, Assay1Chance(set, reliability, before != "", w.latest)
	rec.OK = rec.Luck < rec.Chance
	if rec.OK {
		rec.Output = string(w.things.add(tool, args))
		if !slices.Contains(w.succeeded, tool.Name) {
			w.succeeded = append(w.succeeded, tool.Name)
		}
	} else {
		e := environmentError(tool, luck)
		// Luck that would have been enough says that the failure has lasted.
		if before != "" && rec.Luck < Assay1Chance(set, reliability, false, w.latest) {
			e = errorOf(tool, before)
		}
		rec.Code, rec.Error = e.Code, failureText(tool, e, luck)
	}
	w.spent[tool.Name]++
	w.failed[tool.Name] = rec.Code
	w.latest = !rec.OK
}

// environmentErrors are the codes with which a tool fails by chance: its own
// but for those that mean a mistake.
func environmentErrors(tool assay.Tool) []assay.ToolError {
	errs := slices.DeleteFunc(slices.Clone(tool.Errors), func(e assay.ToolError) bool {
		return e.Code == InvalidInput || e.Code == DependencyFail
	})
	if len(errs) == 0 {
		return fallbackErrors[:1]
	}
	return errs
}

func environmentError(tool assay.Tool, luck Luck) assay.ToolError {
	errs := environmentErrors(tool)
	return errs[luck.pick(0, len(errs))]
}

func errorOf(tool assay.Tool, code string) assay.ToolError {
	for _, e := range environmentErrors(tool) {
		if e.Code == code {
			return e
		}
	}
	panic("world: " + tool.Name + " has no error " + code)
}

// A mistake is why a call fails whatever the luck.
type mistake struct{ code, text string }

func invalid(format string, args ...any) *mistake {
	return &mistake{InvalidInput, fmt.Sprintf(format, args...)}
}

// check judges a call's arguments, references and dependencies, and returns
// the arguments as far as they count.
func (w *Assay1) check(tool assay.Tool, arguments string) (map[string]any, *mistake) {
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
		return nil, &mistake{DependencyFail, fmt.Sprintf("%s needs %s to have succeeded first", tool.Name, strings.Join(missing, " and "))}
	}
	return args, nil
}
