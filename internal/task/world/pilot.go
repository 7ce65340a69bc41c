package world

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
)

// PilotName is the name of the world whose rules are those of the 2025
// original's simulator.
const PilotName = "pilot"

// The bounds of a call's chance in the pilot world: even a reliability of 1
// fails one call in twenty, and nothing is hopeless.
const (
	pilotFloor   = 0.10
	pilotCeiling = 0.95
)

// The pilot's stop rules.
const (
	// PilotFailureStreak failed calls in a row end the episode.
	PilotFailureStreak = 5
	// pilotCallLimit successful calls are allowed; one more ends the episode.
	pilotCallLimit = 15
	// pilotRepeat successful calls of one tool in a row end the episode.
	pilotRepeat = 5
)

// A Dependency is how a tool's dependency stands when the tool is called.
type Dependency int

// The states of a dependency.
const (
	Ready   Dependency = iota // its latest call succeeded
	Missing                   // it never succeeded
	Broken                    // it succeeded once, but its latest call failed
)

// PilotChance is the probability that a call succeeds in the pilot world.
// Recent are the outcomes of the episode's latest calls, oldest first; only
// the last three count, and only when there are three.
func PilotChance(reliability float64, deps []Dependency, recent []bool) float64 {
	p := reliability
	for _, d := range deps {
		switch d {
		case Missing:
			p *= 0.5
		case Broken:
			p *= 0.7
		}
	}
	if n := len(recent); n >= 3 {
		for _, ok := range recent[n-3:] {
			if !ok {
				p *= 0.9
			}
		}
	}
	return min(pilotCeiling, max(pilotFloor, p))
}

// Pilot is the pilot world during one episode. It belongs to one goroutine.
type Pilot struct {
	catalog     *assay.Catalog
	seed        uint64
	reliability float64

	required []string

	calls     []assay.CallRecord
	made      map[string]int  // calls so far, by tool
	latest    map[string]bool // outcome of the latest call, by tool
	worked    map[string]bool // tools that have succeeded
	succeeded []string        // these, in the order of their first success
}

var _ World = (*Pilot)(nil)

// NewPilot returns the world at the start of a trial of a task with these
// required tools.
func NewPilot(catalog *assay.Catalog, trial assay.Trial, required []string) *Pilot {
	return &Pilot{
		catalog:     catalog,
		required:    required,
		seed:        trial.Seed,
		reliability: trial.Reliability,
		made:        make(map[string]int),
		latest:      make(map[string]bool),
		worked:      make(map[string]bool),
	}
}

// Call executes a tool and records it. Arguments are recorded and otherwise
// ignored, as in the original. A tool that the catalog does not have is an
// error, which spends no luck and leaves no record.
func (p *Pilot) Call(turn int, name, arguments string) (assay.CallRecord, error) {
	tool, ok := p.catalog.Tool(name)
	if !ok {
		return assay.CallRecord{}, fmt.Errorf("no tool is named %q", name)
	}
	luck := Draw(p.seed, name, p.made[name])
	chance := PilotChance(p.reliability, p.dependencies(tool), p.recent())
	rec := assay.CallRecord{
		Turn: turn, Tool: name, Arguments: arguments,
		OK: luck.Success < chance, Chance: chance, Luck: luck.Success,
	}
	if rec.OK {
		rec.Output = p.output(tool, luck)
	} else {
		rec.Code, rec.Error = failure(tool, luck)
	}
	p.calls = append(p.calls, rec)
	p.made[name]++
	p.latest[name] = rec.OK
	if rec.OK && !p.worked[name] {
		p.worked[name] = true
		p.succeeded = append(p.succeeded, name)
	}
	return rec, nil
}

func (p *Pilot) dependencies(tool assay.Tool) []Dependency {
	deps := make([]Dependency, len(tool.Dependencies))
	for i, d := range tool.Dependencies {
		switch {
		case !p.worked[d]:
			deps[i] = Missing
		case !p.latest[d]:
			deps[i] = Broken
		}
	}
	return deps
}

func (p *Pilot) recent() []bool {
	var recent []bool
	for _, c := range p.calls[max(0, len(p.calls)-3):] {
		recent = append(recent, c.OK)
	}
	return recent
}

// Calls implements [World].
func (p *Pilot) Calls() []assay.CallRecord { return p.calls }

// Succeeded implements [World].
func (p *Pilot) Succeeded() []string { return p.succeeded }

// Claims implements [World]: the original looked for phrases, in a reply with
// calls too.
func (p *Pilot) Claims(reply string, _ bool) bool { return PilotFinished(reply) }

// Ends implements [World]: a claim counts once every required tool has
// succeeded. The calls of that reply are not executed.
func (p *Pilot) Ends(reply string, _ bool) bool {
	return PilotFinished(reply) && !slices.ContainsFunc(p.required, func(t string) bool { return !p.worked[t] })
}

// Stop implements [World].
func (p *Pilot) Stop() (assay.Ended, bool) {
	n := len(p.calls)
	if n >= PilotFailureStreak && !slices.ContainsFunc(p.calls[n-PilotFailureStreak:], func(c assay.CallRecord) bool { return c.OK }) {
		return assay.FailureStreak, true
	}
	var succeeded []string
	for _, c := range p.calls {
		if c.OK {
			succeeded = append(succeeded, c.Tool)
		}
	}
	n = len(succeeded)
	if n > pilotCallLimit {
		return assay.CallLimit, true
	}
	if n >= pilotRepeat && len(slices.Compact(slices.Clone(succeeded[n-pilotRepeat:]))) == 1 {
		return assay.Loop, true
	}
	return "", false
}

// fallbackErrors serve a tool that declares none.
var fallbackErrors = []assay.ToolError{
	{Code: "OPERATION_FAILED", Description: "The operation did not complete"},
	{Code: "INVALID_INPUT", Description: "The input was not accepted"},
	{Code: "TIMEOUT", Description: "The operation took too long"},
	{Code: "DEPENDENCY_ERROR", Description: "Something this operation builds on is not there"},
	{Code: "RESOURCE_ERROR", Description: "A resource ran out"},
}

// failure draws one of the tool's own codes, whatever the cause, and a text.
func failure(tool assay.Tool, luck Luck) (code, text string) {
	errs := tool.Errors
	if len(errs) == 0 {
		errs = fallbackErrors
	}
	e := errs[luck.pick(0, len(errs))]
	return e.Code, failureText(tool, e, luck)
}

// failureText is what the model is told of a failure by chance.
func failureText(tool assay.Tool, e assay.ToolError, luck Luck) string {
	text := e.Code + ": " + e.Description
	if c := context(tool, e.Code, luck); c != "" {
		text += " (" + c + ")"
	}
	return text
}

func context(tool assay.Tool, code string, luck Luck) string {
	one := func(words ...string) string { return words[luck.pick(1, len(words))] }
	switch code {
	case "TIMEOUT":
		return fmt.Sprintf("after %d seconds", 10+luck.pick(1, 51))
	case "NETWORK_ERROR":
		return one("server", "endpoint", "service") + " unreachable"
	case "FILE_NOT_FOUND":
		return fmt.Sprintf("/data/%s_%d.dat", tool.Name, 100+luck.pick(1, 900))
	case "PERMISSION_DENIED":
		return one("read", "write", "execute") + " access"
	case "INVALID_INPUT":
		return one("JSON", "XML", "CSV") + " expected"
	case "DEPENDENCY_ERROR":
		return one("data source", "configuration", "previous step") + " missing"
	}
	return ""
}

// output makes a result with the fields that the tool declares. As in the
// original it depends on luck alone: no data flows between calls.
func (p *Pilot) output(tool assay.Tool, luck Luck) string {
	step := 1
	for _, c := range p.calls {
		if c.OK {
			step++
		}
	}
	count := 20 + luck.pick(1, 181)
	out := make(map[string]any, len(tool.Returns))
	for _, r := range tool.Returns {
		out[r.Name] = field(tool, r, count, step)
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic("world: output of " + tool.Name + ": " + err.Error())
	}
	return string(b)
}

func field(tool assay.Tool, r assay.Return, count, step int) any {
	switch {
	case r.Name == "metadata":
		return map[string]any{"operation": tool.Operation, "items": count, "step": step}
	case r.Type == "boolean":
		return true
	case r.Type == "array":
		return []any{}
	case r.Type == "number" || r.Type == "integer":
		return count
	case r.Type == "string":
		return fmt.Sprintf("%s-%d", tool.Operation, count)
	}
	return map[string]any{"items": count, "status": "complete"}
}
