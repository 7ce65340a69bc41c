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
	"simple_task":          {1, 2, 2, 2},
	"basic_task":           {2, 3},
	"data_pipeline":        {3, 4},
	"api_integration":      {4, 5},
	"multi_stage_pipeline": {5, 6, 7},
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
			for k, path := range g.paths(typ, n) {
				if !g.atAll(typ, k, path, nth[len(path)], yield) {
					return
				}
				nth[len(path)]++
			}
		}
	}, nil
}

// atAll yields the k-th task of a type, which is the nth of its length, at all difficulties.
func (g *Grammar) atAll(
	typ string, k int, path []operation, nth int, yield func(assay.Task) bool,
) bool {
	prefix, _, _ := strings.Cut(typ, "_")
	dice := g.dice(typ, k)
	month := time.Date(2031, time.Month(1+dice.IntN(24)), 1, 0, 0, 0, 0, time.UTC)
	inputs, records := g.inputs(dice, path, month)
	task := assay.Task{
		ID: assay.TaskID(fmt.Sprintf("%s-%03d", prefix, k+1)), Type: typ,
		Inputs: inputs, Expected: expected(records),
	}
	for _, s := range path {
		task.Required = append(task.Required, s.name)
	}
	team := pick(dice, g.drawn[path[0].from.domain].Teams)
	d := describer{g, dice, path, month.Format("January 2006"), team}
	for _, task.Difficulty = range assay.Difficulties {
		task.Description = d.describe(task.Difficulty, nth)
		if !yield(task) {
			return false
		}
	}
	return true
}

// paths returns the paths of the tasks of a type. Each path of a length has its turn before any
// has another one, so that all libraries have the same share of each plan's length.
func (g *Grammar) paths(typ string, n int) [][]operation {
	var paths [][]operation
	rest := make(map[int][][]operation)
	dice := g.dice("paths", typ)
	for k := range n {
		length := lengths[typ][k%len(lengths[typ])]
		if len(rest[length]) == 0 {
			rest[length] = g.turn(dice, length)
		}
		paths = append(paths, rest[length][0])
		rest[length] = rest[length][1:]
	}
	return paths
}

// turn returns the paths of a length in random order, but with paths that pass the same number of
// gated steps at equal distances.
func (g *Grammar) turn(dice *rand.Rand, length int) [][]operation {
	of := make(map[int][][]operation) // by the number of gated steps
	for _, path := range g.pathsOf(length) {
		gated := 0
		for _, s := range path {
			if s.gated {
				gated++
			}
		}
		of[gated] = append(of[gated], path)
	}
	type entry struct {
		path []operation
		at   float64
	}
	var order []entry
	for _, gated := range slices.Sorted(maps.Keys(of)) {
		paths := of[gated]
		for i, k := range dice.Perm(len(paths)) {
			order = append(order, entry{paths[k], (float64(i) + .5) / float64(len(paths))})
		}
	}
	slices.SortStableFunc(order, func(a, b entry) int { return cmp.Compare(a.at, b.at) })
	var paths [][]operation
	for _, e := range order {
		paths = append(paths, e.path)
	}
	return paths
}

// pathsOf returns the paths of a length that begin on the line of a domain and end at a kind that
// another step works on.
func (g *Grammar) pathsOf(length int) (paths [][]operation) {
	var walk func(at kindPlace, path []operation)
	walk = func(at kindPlace, path []operation) {
		if len(path) == length {
			if len(g.from(at)) > 0 {
				paths = append(paths, slices.Clone(path))
			}
			return
		}
		for _, s := range g.from(at) {
			walk(s.to, append(path, s))
		}
	}
	for i := range g.drawn {
		for number := range line {
			walk(kindPlace{i, number}, nil)
		}
	}
	return paths
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
