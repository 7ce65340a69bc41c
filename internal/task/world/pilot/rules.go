package pilot

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// The bounds of a call's chance. Even with a reliability of 1, one call in twenty fails, and every
// call has a chance of at least one in ten.
const (
	floor   = 0.10
	ceiling = 0.95
)

// The stop rules.
const (
	// failureStreak failed calls in a row end the episode.
	failureStreak = 5
	// callLimit successful calls are allowed. One more ends the episode.
	callLimit = 15
	// repeatLimit successful calls of one tool in a row end the episode.
	repeatLimit = 5
)

// A Dependency is the state of a tool's dependency when the tool is called.
type Dependency int

// The states of a dependency.
const (
	Ready   Dependency = iota // its latest call succeeded
	Missing                   // it never succeeded
	Broken                    // it succeeded once, but its latest call failed
)

// Chance is the probability that a call succeeds. recent holds the outcomes of the episode's
// latest calls, oldest first. Only the last three count, and only if there are at least three.
func Chance(reliability float64, deps []Dependency, recent []bool) float64 {
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
	return min(ceiling, max(floor, p))
}

// World is the world during one episode. It belongs to one goroutine.
type World struct {
	catalog     *assay.Catalog
	seed        uint64
	reliability float64
	spared      int // the call, from 1, that succeeds whatever its luck

	required []string

	calls     []assay.CallRecord
	made      map[string]int  // calls so far, by tool
	latest    map[string]bool // outcome of the latest call, by tool
	worked    map[string]bool // tools that have succeeded
	succeeded []string        // the same tools, in the order of their first success
}

// New returns the world at the start of a trial of a task with these required tools.
func New(catalog *assay.Catalog, trial assay.Trial, required []string) *World {
	return &World{
		catalog:     catalog,
		required:    required,
		seed:        trial.Seed,
		reliability: trial.Reliability,
		spared:      trial.SparedCall(),
		made:        make(map[string]int),
		latest:      make(map[string]bool),
		worked:      make(map[string]bool),
	}
}

// Call implements [spec.World]. Arguments are recorded but otherwise ignored, as in the original.
func (p *World) Call(turn int, name, arguments string) (assay.CallRecord, error) {
	tool, ok := p.catalog.Tool(name)
	if !ok {
		return assay.CallRecord{}, fmt.Errorf("there is no tool named %q", name)
	}
	luck := spec.Draw(p.seed, name, p.made[name])
	chance := Chance(p.reliability, p.dependencies(tool), p.recent())
	if len(p.calls)+1 == p.spared {
		chance = 1
	}
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

func (p *World) dependencies(tool assay.Tool) []Dependency {
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

func (p *World) recent() []bool {
	var recent []bool
	for _, c := range p.calls[max(0, len(p.calls)-3):] {
		recent = append(recent, c.OK)
	}
	return recent
}

// Calls implements [spec.World].
func (p *World) Calls() []assay.CallRecord { return p.calls }

// Succeeded implements [spec.World].
func (p *World) Succeeded() []string { return p.succeeded }

// Claims implements [spec.World]. The original looked for phrases, even in replies with calls.
func (p *World) Claims(reply string, _ bool) bool { return Finished(reply) }

// Ends implements [spec.World]. A claim counts once every required tool has succeeded. The calls
// of that reply are not executed.
func (p *World) Ends(reply string, _ bool) bool {
	unfinished := func(t string) bool { return !p.worked[t] }
	return Finished(reply) && !slices.ContainsFunc(p.required, unfinished)
}

// Stop implements [spec.World].
func (p *World) Stop() (assay.Ended, bool) {
	n := len(p.calls)
	worked := func(c assay.CallRecord) bool { return c.OK }
	if n >= failureStreak && !slices.ContainsFunc(p.calls[n-failureStreak:], worked) {
		return assay.FailureStreak, true
	}
	var succeeded []string
	for _, c := range p.calls {
		if c.OK {
			succeeded = append(succeeded, c.Tool)
		}
	}
	n = len(succeeded)
	if n > callLimit {
		return assay.CallLimit, true
	}
	if n >= repeatLimit && len(slices.Compact(slices.Clone(succeeded[n-repeatLimit:]))) == 1 {
		return assay.Loop, true
	}
	return "", false
}

// failure draws one of the tool's own codes, whatever the cause, and words it.
func failure(tool assay.Tool, luck spec.Luck) (code, text string) {
	errs := tool.Errors
	if len(errs) == 0 {
		errs = spec.FallbackErrors
	}
	e := errs[luck.Pick(0, len(errs))]
	return e.Code, spec.FailureText(tool, e, luck)
}

// output makes up a result with the fields that the tool declares. As in the original, it depends
// on luck only: no data flows between calls.
func (p *World) output(tool assay.Tool, luck spec.Luck) string {
	step := 1
	for _, c := range p.calls {
		if c.OK {
			step++
		}
	}
	count := 20 + luck.Pick(1, 181)
	out := make(map[string]any, len(tool.Returns))
	for _, r := range tool.Returns {
		out[r.Name] = field(tool, r, count, step)
	}
	b, err := json.Marshal(out)
	if err != nil {
		panic("pilot: output of " + tool.Name + ": " + err.Error())
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
