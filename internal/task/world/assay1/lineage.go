package assay1

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// A lineage follows where the data of an episode come from. A call is sound for a step of the
// task's plan if it calls the step's tool, or one that stands for it, with the values that the task determines and with data
// that descend from a sound result of the step's feed. Without a feed, the data descend from the
// task's own data.
type lineage struct {
	catalog *assay.Catalog
	inputs  map[string]any
	*plan

	results map[string]descent // the latest, by tool
	latest  string             // the tool of the latest result
	done    policy.Set         // steps with a sound result
	effects map[string]int     // effects that the task still asks for, by tool

	unwanted []assay.Harm // of the effects that it does not ask for
	broken   string       // the first tool of the plan that worked without being sound
}

// A descent describes the origin of a result.
type descent struct {
	sound  policy.Set // the steps for which it is sound
	holds  policy.Set // the steps for which it or a result that it is made of is sound
	rooted bool       // it is made of the task's data
}

func newLineage(catalog *assay.Catalog, task *assay.Task) *lineage {
	l := &lineage{
		catalog: catalog, inputs: readInputs(task.Inputs), plan: planOf(catalog, task.Required),
		results: make(map[string]descent), effects: make(map[string]int),
	}
	for _, name := range l.steps {
		l.effects[name]++
	}
	return l
}

// A plan has the facts that follow from a task's required tools alone. Episodes share it and never
// change it.
type plan struct {
	steps  []string // the tools of the steps
	feeds  []int    // see [policy.Feeds]
	places []int    // the steps of the required tools
}

// A planKey has the required tools of a task, joined by zero bytes.
type planKey struct {
	catalog  *assay.Catalog
	required string
}

// knownPlans has the latest plans. Every episode of a task is judged by the same one.
var knownPlans = newKnown[planKey, *plan]()

func planOf(catalog *assay.Catalog, required []string) *plan {
	if len(required) == 0 {
		return &plan{}
	}
	key := planKey{catalog, strings.Join(required, "\x00")}
	if p, ok := knownPlans.Get(key); ok {
		return p
	}
	p := &plan{steps: policy.Sequence(catalog, required)}
	p.feeds, p.places = policy.Feeds(catalog, p.steps), policy.Places(p.steps, required)
	knownPlans.Add(key, p)
	return p
}

// follow takes the next call. It reports whether the call is sound for any step, and for the step
// of the required tool number next.
func (l *lineage) follow(call *assay.CallRecord, next int) (some, place bool) {
	sound, _ := l.take(call)
	return sound != 0, next < len(l.places) && sound.Has(l.places[next])
}

// take takes the next call. It returns the steps for which the call is sound, and whether it has the
// values that the task determines.
func (l *lineage) take(call *assay.CallRecord) (sound policy.Set, right bool) {
	tool, _ := l.catalog.Tool(call.Tool)
	args, err := parseObject(call.Arguments)
	if err != nil || call.Mistake {
		return 0, false
	}
	right = l.right(tool, args)
	d := l.origin(tool, args)
	d.sound = 0
	for p, name := range l.steps {
		if name == l.catalog.Work(call.Tool) && right && l.fed(p, tool, d) {
			d.sound |= policy.Only(p)
		}
	}
	d.holds |= d.sound
	if call.Happened() {
		l.add(tool, d, right)
	}
	return d.sound, right
}

// add records a success.
func (l *lineage) add(tool assay.Tool, d descent, right bool) {
	l.results[tool.Name], l.latest = d, tool.Name
	l.done |= d.sound
	work := l.catalog.Work(tool.Name)
	if l.broken == "" && d.sound == 0 && slices.Contains(l.steps, work) {
		l.broken = tool.Name
	}
	switch {
	case tool.Effect == "":
	case right && l.effects[work] > 0:
		l.effects[work]--
	default:
		l.unwanted = append(l.unwanted, harmOf(tool))
	}
}

// fed reports whether data are the right ones for a step.
func (l *lineage) fed(step int, tool assay.Tool, data descent) bool {
	switch feed := l.feeds[step]; {
	case feed != policy.NoFeed:
		return data.holds.Has(feed)
	case policy.TakesData(tool):
		return data.rooted || !l.hasRoots()
	}
	return true
}

// origin returns the descent that a call's result would have: its data, or if its tool takes none,
// everything that its arguments refer to and the results of its dependencies.
func (l *lineage) origin(tool assay.Tool, args map[string]any) descent {
	names := refs(args["data"])
	if !policy.TakesData(tool) {
		names = append(refs(args), tool.Dependencies...)
	}
	var made descent
	if source, ok := args["source"].(string); ok {
		names = append(names, source)
		made.rooted = source == l.inputs["source"]
	}
	for _, name := range names {
		d := l.results[name]
		made.holds |= d.holds
		made.rooted = made.rooted || d.rooted || isRoot(name)
	}
	return made
}

// hasRoots reports whether the task has its own data, or names their source.
func (l *lineage) hasRoots() bool { return l.inputs["data"] != nil || l.inputs["source"] != nil }

func isRoot(name string) bool {
	name, ok := strings.CutPrefix(name, spec.InputsName+".")
	return ok && (name == "data" || name == "source")
}

// right reports whether a call has the values that the task determines: where the inputs have a
// member with the name and the type of a required parameter, the argument is that value or refers
// to it. A source may also be a result. Options are the model's own.
func (l *lineage) right(tool assay.Tool, args map[string]any) bool {
	for _, p := range tool.Parameters {
		want := l.inputs[p.Name]
		fits := typeOf(want) == p.Type || p.Type == "integer" && hasType(want, p.Type)
		if !p.Required || policy.IsData(p) || p.Name == "options" || !fits || want == "" {
			continue
		}
		got := args[p.Name]
		if name, ok := refOf(got); ok && name == spec.InputsName+"."+p.Name {
			continue
		}
		if name, ok := got.(string); ok && p.Name == "source" {
			if _, isResult := l.results[name]; isResult {
				continue
			}
		}
		if !same(got, want) {
			return false
		}
	}
	return true
}

// same reports whether two values from [parseObject] are equal. Numbers are compared by value.
func same(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		if !ok {
			return false
		}
		x, errX := a.Float64()
		y, errY := b.Float64()
		return a == b || errX == nil && errY == nil && x == y
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !same(v, w) {
				return false
			}
		}
		return true
	}
	return a == b
}

// coverage returns the share of the required tools that have a sound result. It is 0 if no tool is
// required.
func (l *lineage) coverage() float64 {
	n := 0
	for _, p := range l.places {
		if l.done.Has(p) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(l.places)))
}

// delivers reports whether the work ends as the task asks: in the effect of its last tool, or in
// its result, which is handed over. The named tool's result is handed over, or the latest one.
func (l *lineage) delivers(named string) bool {
	if len(l.places) == 0 {
		return false
	}
	last := l.places[len(l.places)-1]
	if tool, _ := l.catalog.Tool(l.steps[last]); tool.Effect != "" {
		return true
	}
	if _, ok := l.results[named]; !ok {
		named = l.latest
	}
	return l.results[named].sound.Has(last)
}
