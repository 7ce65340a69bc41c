package fresh

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// lengths are the numbers of required tools of the tasks of each type. They take turns.
var lengths = map[string][]int{
	"simple_task":          {3},
	"basic_task":           {3, 4},
	"data_pipeline":        {4, 5},
	"api_integration":      {5, 6},
	"multi_stage_pipeline": {6, 7},
}

// MaxTasks is the largest number of tasks of a type, because IDs have three digits.
const MaxTasks = 999

// Tasks yields n tasks of each type, each at all five difficulties.
func (g *Grammar) Tasks(n int) (iter.Seq[assay.Task], error) {
	if n < 1 || n > MaxTasks {
		return nil, fmt.Errorf("cannot generate %d tasks of each type\n"+
			"hint: choose a number from 1 to %d", n, MaxTasks)
	}
	return func(yield func(assay.Task) bool) {
		for _, typ := range assay.TaskTypes {
			nth := make(map[int]int) // by length
			for k, s := range g.solutions(typ, n) {
				if !g.atAll(typ, k, s, nth[len(s.path)], yield) {
					return
				}
				nth[len(s.path)]++
			}
		}
	}, nil
}

// atAll yields the k-th task of a type, which is the nth of its length, at all difficulties.
func (g *Grammar) atAll(
	typ string, k int, s solution, nth int, yield func(assay.Task) bool,
) bool {
	prefix, _, _ := strings.Cut(typ, "_")
	d, inputs, records := g.describer(typ, k, s)
	task := assay.Task{
		ID: assay.TaskID(fmt.Sprintf("%s-%03d", prefix, k+1)), Type: typ,
		Inputs: inputs, Expected: expected(records),
	}
	for _, step := range s.path {
		task.Required = append(task.Required, step.name)
	}
	for _, task.Difficulty = range assay.Difficulties {
		task.Description = plainly(d.describe(task.Difficulty, nth))
		if !yield(task) {
			return false
		}
	}
	return true
}

// describer returns the describer of the k-th task of a type, and the task's inputs with their number of
// records.
func (g *Grammar) describer(
	typ string, k int, s solution,
) (d describer, inputs json.RawMessage, records int) {
	dice := g.dice(typ, k)
	month := time.Date(2031, time.Month(1+dice.IntN(24)), 1, 0, 0, 0, 0, time.UTC)
	inputs, records = g.inputs(dice, s.path, month)
	return g.newDescriber(dice, s, month.Format("January 2006")), inputs, records
}

// A solution is a path that is the only one from its first records to its last ones that keeps to
// the limits of a profile.
type solution struct {
	path    []operation
	profile int
}

// solutions returns the solutions of the tasks of a type. Each of a length has its turn before any
// has another one, so that all libraries have the same share of each plan's length.
func (g *Grammar) solutions(typ string, n int) []solution {
	var drawn []solution
	rest := make(map[int][]solution)
	dice := g.dice("paths", typ)
	for k := range n {
		length := lengths[typ][k%len(lengths[typ])]
		if len(rest[length]) == 0 {
			rest[length] = g.turn(dice, length)
		}
		drawn = append(drawn, rest[length][0])
		rest[length] = rest[length][1:]
	}
	return drawn
}

// turn returns the solutions of a length in random order, but with ones of the same profile and the
// same number of gated steps at equal distances.
func (g *Grammar) turn(dice *rand.Rand, length int) []solution {
	of := make(map[[2]int][]solution) // by profile and number of gated steps
	for _, s := range g.solutionsOf(length) {
		key := [2]int{s.profile}
		for _, step := range s.path {
			if step.gated {
				key[1]++
			}
		}
		of[key] = append(of[key], s)
	}
	type entry struct {
		solution
		at float64
	}
	var order []entry
	for _, key := range slices.SortedFunc(maps.Keys(of), func(a, b [2]int) int {
		return slices.Compare(a[:], b[:])
	}) {
		start := dice.Float64() // so that no profile begins because it has most solutions
		for i, k := range dice.Perm(len(of[key])) {
			order = append(order, entry{of[key][k], (float64(i) + start) / float64(len(of[key]))})
		}
	}
	slices.SortStableFunc(order, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	var sorted []solution
	for _, e := range order {
		sorted = append(sorted, e.solution)
	}
	return sorted
}

// maxSteps is the largest number of calls that a path is searched with. It is less than a round of
// all domains.
const maxSteps = 10

// solutionsOf returns the solutions of a length that begin on the line of a domain.
func (g *Grammar) solutionsOf(length int) (all []solution) {
	for profile := range profiles {
		for i := range g.drawn {
			for number := range line {
				for _, paths := range g.pathsBy(profile, kindPlace{i, number}) {
					if len(paths) == 1 && len(paths[0]) == length && choices(paths[0]) >= minChoices {
						all = append(all, solution{paths[0], profile})
					}
				}
			}
		}
	}
	return all
}

// minChoices is the smallest number of steps of a task that are chosen among three tools.
const minChoices = 3

// choices counts the steps of a path that are chosen among several tools.
func choices(path []operation) (n int) {
	for _, s := range path {
		if s.beside > 1 {
			n++
		}
	}
	return n
}

// pathsBy yields the kinds to which paths lead that keep to the limits of a profile, with all of
// these paths, in the order of their first ones.
func (g *Grammar) pathsBy(profile int, from kindPlace) iter.Seq2[kindPlace, [][]operation] {
	var order []kindPlace
	found := make(map[kindPlace][][]operation)
	var walk func(at kindPlace, path []operation)
	walk = func(at kindPlace, path []operation) {
		if len(path) > 0 {
			if found[at] == nil {
				order = append(order, at)
			}
			found[at] = append(found[at], slices.Clone(path))
		}
		for _, s := range g.from(at) {
			if len(path) < maxSteps && g.keeps(s, profile) {
				walk(s.to, append(path, s))
			}
		}
	}
	walk(from, nil)
	return func(yield func(kindPlace, [][]operation) bool) {
		for _, to := range order {
			if !yield(to, found[to]) {
				return
			}
		}
	}
}

// from returns the steps that work on records of a kind, and to the steps that make such records.
func (g *Grammar) from(at kindPlace) []operation {
	return slices.DeleteFunc(slices.Clone(g.steps), func(s operation) bool { return s.from != at })
}

func (g *Grammar) to(at kindPlace) []operation {
	return slices.DeleteFunc(slices.Clone(g.steps), func(s operation) bool { return s.to != at })
}

// inputs returns the records that a task begins with, and a value for each parameter of any tool,
// so that the names of the inputs do not give the tools away.
func (g *Grammar) inputs(
	dice *rand.Rand, path []operation, month time.Time,
) (inputs json.RawMessage, records int) {
	d := g.drawn[path[0].from.domain]
	var list []map[string]any
	for i := range 4 + dice.IntN(4) {
		list = append(list, map[string]any{
			"number":     fmt.Sprintf("%c%c-%04d", 'A'+dice.IntN(26), 'A'+dice.IntN(26), dice.IntN(10000)),
			"day":        month.AddDate(0, 0, (7*i+dice.IntN(7))%28).Format(time.DateOnly),
			d.Label.Name: pick(dice, d.Label.Values),
			d.Measure:    1 + dice.IntN(900),
		})
	}
	values := map[string]any{"data": map[string]any{"records": list}}
	for _, d := range g.drawn {
		for _, p := range d.Parameters {
			values[p.Name] = pick(dice, p.Values)
		}
	}
	return mustJSON(values), len(list)
}

// expected returns the result of the last tool if every call succeeds.
func expected(records int) json.RawMessage {
	return mustJSON(map[string]any{
		"success": true, "data": map[string]any{"records": records},
	})
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // cannot happen, because the grammar uses only JSON's types
		panic("fresh: " + err.Error())
	}
	return b
}
