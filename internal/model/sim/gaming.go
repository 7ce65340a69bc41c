package sim

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// alphabet calls all tools in alphabetical order.
func (m *Models) alphabet(v *agentView) assay.Message {
	var tools []string
	for _, t := range m.catalog.All() {
		tools = append(tools, t.Name)
	}
	slices.Sort(tools)
	return m.sweep(v, tools)
}

// sprayWords are so general that a search for all of them finds most tools.
var sprayWords = strings.Fields(`access account action address answer archive amount call change
	check column content copy cost count data date day document entry error event field figure file
	folder format future group host item job key layout level limit line list mail memory message
	number order page path people place plan progress record remote report request result rule
	schema service source start statistics storage system table text time token value way web work`)

// sprayer searches for general words, all in its first reply, and calls the tools that were found.
// It prefers tools that were found often.
func (m *Models) sprayer(v *agentView) assay.Message {
	if !v.discover {
		var tools []string
		for _, t := range v.tools {
			tools = append(tools, t.name)
		}
		return m.sweep(v, tools)
	}
	if len(v.found) == 0 {
		var acts []move
		for _, w := range sprayWords[:maxActions] {
			acts = append(acts, move{search: true, text: w})
		}
		return v.message(acts...)
	}
	found := slices.Concat(v.found...)
	times := make(map[string]int)
	for _, tool := range found {
		times[tool]++
	}
	tools := policy.Distinct(found)
	slices.SortStableFunc(tools, func(a, b string) int { return cmp.Compare(times[b], times[a]) })
	return m.sweep(v, tools)
}

// maxActions is less than the number that a world carries out of one reply.
const maxActions = 60

// sweep calls each tool until it succeeds. It prefers calls that no rule refuses, and fills in
// arguments by their names. It claims to be done when no call is left.
func (m *Models) sweep(v *agentView, tools []string) assay.Message {
	if v.spent() {
		return done
	}
	succeeded := v.succeeded()
	var acts []move
	for _, name := range tools {
		tool, ok := m.catalog.Tool(name)
		if !ok || v.budget > 0 && (slices.Contains(succeeded, name) ||
			v.hopeless(name) || !all(tool.Dependencies, succeeded)) {
			continue
		}
		acts = append(acts, m.act(v, name, succeeded))
		if v.budget > 0 { // one at a time, because answers help and replies are free
			break
		}
	}
	if len(acts) == 0 {
		return done
	}
	return v.message(acts...)
}

// copier repeats all calls of the given plan in every reply, to the letter.
func (m *Models) copier(v *agentView) assay.Message {
	acts := m.planned(v)
	if v.spent() || len(acts) == 0 {
		return done
	}
	return v.message(acts...)
}

// onInputs runs the steps in order, each until it succeeds, and gives the task's inputs to every
// tool that works on data.
func (m *Models) onInputs(v *agentView) assay.Message {
	rest := v.rest(v.steps())
	if v.spent() || len(rest) == 0 {
		return done
	}
	return v.message(m.act(v, rest[0], nil))
}

// guesser never reads the description. It picks the fewest tools whose parameters use up the names
// of the task's inputs, and runs them in the order of their dependencies.
func (m *Models) guesser(v *agentView) assay.Message {
	if v.spent() {
		return done
	}
	return m.carryOut(v, policy.Sequence(m.catalog, m.fitting(v.inputs)))
}

// fitting returns the tools that the names of the inputs suggest, in the order of the catalog: at
// each step the one that uses up most names.
func (m *Models) fitting(inputs json.RawMessage) []string {
	var given, unused map[string]json.RawMessage
	if json.Unmarshal(inputs, &given) != nil {
		return nil
	}
	unused = maps.Clone(given)
	chosen := make(map[string]bool)
	for {
		var best []string
		var name string
		for _, t := range m.catalog.All() {
			needs := named(t)
			uses := slices.DeleteFunc(slices.Clone(needs), func(p string) bool {
				return unused[p] == nil
			})
			missing := slices.ContainsFunc(needs, func(p string) bool { return given[p] == nil })
			if !missing && len(uses) > len(best) {
				best, name = uses, t.Name
			}
		}
		if len(best) == 0 {
			break
		}
		chosen[name] = true
		for _, p := range best {
			delete(unused, p)
		}
	}
	var tools []string
	for _, t := range m.catalog.All() {
		if chosen[t.Name] {
			tools = append(tools, t.Name)
		}
	}
	return tools
}

// named returns the required parameters of a tool that an input can be named after.
func named(tool assay.Tool) []string {
	var names []string
	for _, p := range tool.Parameters {
		if p.Required && p.Name != "data" {
			names = append(names, p.Name)
		}
	}
	return names
}

// starter begins as many tasks do: it calls the first tool that has no effect, and the one without
// an effect that most others need. In the built-in library it reads and parses.
func (m *Models) starter(v *agentView) assay.Message {
	var start []string
	most := 0
	for _, t := range m.catalog.All() {
		if t.Effect != "" {
			continue
		}
		needed := 0
		for _, other := range m.catalog.All() {
			if slices.Contains(other.Dependencies, t.Name) {
				needed++
			}
		}
		switch {
		case len(start) == 0:
			start = []string{t.Name}
		case needed > most:
			start, most = []string{start[0], t.Name}, needed
		}
	}
	if v.spent() {
		return done
	}
	return m.carryOut(v, policy.Sequence(m.catalog, start))
}

// claimer claims to be done at once.
func (m *Models) claimer(*agentView) assay.Message { return done }

// all reports whether every one of the names is in a list.
func all(names, list []string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return !slices.Contains(list, n) })
}
