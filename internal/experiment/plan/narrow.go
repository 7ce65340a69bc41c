package plan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/assay-eval/assay"
)

// A Narrowing selects cells of an experiment by their levels. An empty list selects every level.
type Narrowing struct {
	Variants, Difficulties, TaskTypes Names
	Reliabilities                     []float64
}

func (n Narrowing) has(c assay.Cell) bool {
	return chosen(n.Variants, c.Variant) && chosen(n.Difficulties, c.Difficulty) &&
		chosen(n.TaskTypes, c.TaskType) && chosen(n.Reliabilities, c.Reliability)
}

func chosen[T comparable](list []T, level T) bool {
	return len(list) == 0 || slices.Contains(list, level)
}

// Narrow restricts which trials are planned. The stored text of the experiment stays the same, so
// the other trials are pending and not forgotten. A level that the experiment does not have is an
// error.
func (e *Experiment) Narrow(by Narrowing) error {
	for _, f := range []struct {
		flag  string
		names *Names
		of    func(Factors) Names
	}{
		{"variant", &by.Variants, func(f Factors) Names { return f.Variants }},
		{"difficulty", &by.Difficulties, func(f Factors) Names { return f.Difficulties }},
		{"task-type", &by.TaskTypes, func(f Factors) Names { return f.TaskTypes }},
	} {
		var levels []string
		for _, factors := range e.EachFactors() {
			levels = append(levels, f.of(factors)...)
		}
		groups := map[string][]string{All: levels}
		if f.flag == "variant" {
			groups = maps.Clone(variantGroups)
		}
		var kept Names
		for _, name := range *f.names {
			named := slices.DeleteFunc(members(Names{name}, groups), func(level string) bool {
				return !slices.Contains(levels, level)
			})
			if len(named) == 0 && slices.Contains(levels, All) { // only the library knows them
				named = Names{name}
			}
			if len(named) == 0 {
				return e.noLevel(f.flag, name, levels)
			}
			kept = append(kept, named...)
		}
		*f.names = kept
	}
	var levels []string
	for _, factors := range e.EachFactors() {
		for _, r := range factors.Reliabilities {
			levels = append(levels, assay.FormatReliability(r))
		}
	}
	for _, r := range by.Reliabilities {
		if text := assay.FormatReliability(r); !slices.Contains(levels, text) {
			return e.noLevel("reliability", text, levels)
		}
	}
	e.only = by
	return nil
}

func (e *Experiment) noLevel(flag, name string, levels []string) error {
	return &Error{
		File:    "experiment " + e.Name,
		Message: fmt.Sprintf("--%s %s selects nothing", flag, name),
		Hint:    assay.NameHint(name, levels),
	}
}

// Join returns the experiment with the further repeats of its earlier plan and, if its models were
// chosen on the command line, with the models of that plan: people who run one after the other
// expect to see all of them together. It returns e itself if the plans differ in anything else.
func (e *Experiment) Join(earlier json.RawMessage) (*Experiment, error) {
	old, err := e.sameDesign(earlier)
	if err != nil || old == nil {
		return e, err
	}
	joined := *e
	joined.Again = max(e.Again, old.Again)
	if !e.modelsChosen {
		return &joined, nil
	}
	joined.Models = old.Models
	if len(old.Levels) > 0 {
		joined.Levels = maps.Clone(old.Levels)
		maps.Copy(joined.Levels, e.Levels)
	}
	if len(old.Agents) > 0 {
		joined.Agents = maps.Clone(old.Agents)
		maps.Copy(joined.Agents, e.Agents)
	}
	for _, m := range e.Models {
		if !slices.Contains(joined.Models, m) {
			joined.Models = append(slices.Clip(joined.Models), m)
		}
	}
	return &joined, nil
}

// RepeatLike sets the further repeats as in an earlier plan, or to zero if that plan differs.
func (e *Experiment) RepeatLike(earlier json.RawMessage) error {
	e.Again = 0
	old, err := e.sameDesign(earlier)
	if old != nil {
		e.Again = old.Again
	}
	return err
}

// sameDesign returns an earlier plan, or nil unless it is the same except for further repeats, the
// providers file, the programs of agents and, if they were chosen on the command line, the models
// with their levels.
func (e *Experiment) sameDesign(earlier json.RawMessage) (*Experiment, error) {
	now, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	var old Experiment
	var x, y map[string]json.RawMessage
	if json.Unmarshal(earlier, &old) != nil || json.Unmarshal(earlier, &x) != nil ||
		json.Unmarshal(now, &y) != nil {
		return nil, nil
	}
	free := []string{"again", "providers"}
	if e.modelsChosen {
		free = append(free, "models", "levels", "agents")
	}
	for agents, fields := range map[*Experiment]map[string]json.RawMessage{e: y, &old: x} {
		if fields["agents"], err = agents.trialsOfAgents(); err != nil {
			return nil, err
		}
	}
	for _, field := range free {
		delete(x, field)
		delete(y, field)
	}
	if !maps.EqualFunc(x, y, func(v, w json.RawMessage) bool { return bytes.Equal(v, w) }) {
		return nil, nil
	}
	return &old, nil
}

// trialsOfAgents returns the agents as JSON without their programs, as trials have them.
func (e *Experiment) trialsOfAgents() (json.RawMessage, error) {
	agents := maps.Clone(e.Agents)
	for name, a := range agents {
		a.Program = nil
		agents[name] = a
	}
	return json.Marshal(agents)
}

// WithOptimal returns the experiment with the optimal plan in place of flawed ones. Needed is
// false if it has other variants, or if no plan is flawed.
func (e *Experiment) WithOptimal() (optimal *Experiment, needed bool) {
	for _, f := range e.EachFactors() {
		if slices.ContainsFunc(f.Variants, func(v string) bool { return !flawed(v) }) {
			return nil, false
		}
	}
	x := *e
	x.Forks = nil
	x.Parts = slices.Clone(e.Parts)
	factors := []*Factors{&x.Factors}
	for i := range x.Parts {
		factors = append(factors, &x.Parts[i].Factors)
	}
	for _, f := range factors {
		f.Variants, f.Severities = Names{assay.Optimal}, nil
	}
	return &x, true
}
