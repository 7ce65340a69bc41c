package floor

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
)

// Unknown stands for a kind of data that no words tell.
const Unknown = -1

// A Map says which tools work on what others make, as far as shared words tell. A kind of data is
// what the descriptions of parameters for data have in words of their own.
type Map struct {
	names []string
	// takes and makes are the kinds that the tools work on and make, or [Unknown].
	takes, makes []int
	tools, kinds *bm25.Index
}

// NewMap returns the map of tools, from what a model is told about them.
func NewMap(tools []assay.Function) *Map {
	m := &Map{}
	var about, data []string
	for _, f := range tools {
		var schema struct {
			Properties map[string]struct{ Description string }
		}
		_ = json.Unmarshal(f.Parameters, &schema) // a tool without a schema takes no data
		m.names = append(m.names, f.Name)
		about = append(about, f.Name+" "+f.Name+" "+f.Description)
		data = append(data, schema.Properties["data"].Description)
	}
	m.tools = bm25.New(about)
	kinds := m.readKinds(data)
	for i, f := range tools {
		m.makes = append(m.makes, madeOf(kinds, m.takes[i], bm25.Words(f.Description)))
	}
	var texts []string
	for _, words := range kinds {
		texts = append(texts, strings.Join(words, " "))
	}
	m.kinds = bm25.New(texts)
	return m
}

// readKinds finds the kinds that tools work on: the words of their data's descriptions that fewer
// than half of these have.
func (m *Map) readKinds(data []string) (kinds [][]string) {
	times := make(map[string]int)
	words := make([][]string, len(data))
	for i, text := range data {
		words[i] = bm25.Words(text)
		slices.Sort(words[i])
		words[i] = slices.Compact(words[i])
		for _, w := range words[i] {
			times[w]++
		}
	}
	for _, list := range words {
		list = slices.DeleteFunc(list, func(w string) bool { return 2*times[w] > len(data) })
		kind := slices.IndexFunc(kinds, func(k []string) bool { return slices.Equal(k, list) })
		if kind < 0 && len(list) > 0 {
			kind, kinds = len(kinds), append(kinds, list)
		}
		m.takes = append(m.takes, kind)
	}
	return kinds
}

// madeOf returns the kind that a description names beside the kind that the tool works on.
func madeOf(kinds [][]string, takes int, description []string) int {
	best := Unknown
	for i, words := range kinds {
		told := !slices.ContainsFunc(words, func(w string) bool {
			return !slices.Contains(description, w)
		})
		if told && i != takes && (best == Unknown || len(words) > len(kinds[best])) {
			best = i
		}
	}
	return best
}

// Kind returns the kind that shares most words with a text, or [Unknown].
func (m *Map) Kind(text string) int { return first(m.kinds.Search(text, 1)) }

// Tool returns the kinds that the tool works on and makes that shares most words with a text.
func (m *Map) Tool(text string) (takes, makes int) {
	tool := first(m.tools.Search(text, 1))
	if tool == Unknown {
		return Unknown, Unknown
	}
	return m.takes[tool], m.makes[tool]
}

// Of returns the kinds that a tool works on and makes.
func (m *Map) Of(name string) (takes, makes int) {
	i := slices.Index(m.names, name)
	if i < 0 {
		return Unknown, Unknown
	}
	return m.takes[i], m.makes[i]
}

// Beside returns the tools that make the same of the same as a tool, itself among them.
func (m *Map) Beside(name string) Step { return m.between(m.Of(name)) }

func first(hits []bm25.Hit) int {
	if len(hits) == 0 {
		return Unknown
	}
	return hits[0].Doc
}

// A Step has the tools that lead from a kind to the next one of a path.
type Step []string

// Path returns a shortest path from one kind to another, one of several by dice. It returns nil if
// there is none.
func (m *Map) Path(from, to int, dice *rand.Rand) (path []Step) {
	if from == Unknown || to == Unknown || from == to {
		return nil
	}
	// away counts the steps from each kind to the last one.
	away := map[int]int{to: 0}
	for grown := true; grown; {
		grown = false
		for i, makes := range m.makes {
			n, ok := away[makes]
			if old, known := away[m.takes[i]]; ok && makes != Unknown && (!known || old > n+1) {
				away[m.takes[i]], grown = n+1, true
			}
		}
	}
	for at := from; at != to; {
		left, ok := away[at]
		if !ok {
			return nil
		}
		var nearer []int // a kind for each tool that makes it
		for i, makes := range m.makes {
			if n, ok := away[makes]; ok && m.takes[i] == at && n == left-1 {
				nearer = append(nearer, makes)
			}
		}
		then := nearer[dice.IntN(len(nearer))]
		path = append(path, m.between(at, then))
		at = then
	}
	return path
}

// between returns the tools that make one kind of another.
func (m *Map) between(from, to int) (s Step) {
	for i, name := range m.names {
		if m.takes[i] == from && m.makes[i] == to {
			s = append(s, name)
		}
	}
	return s
}

// A Reading finds the tools of a task by shared words alone: a kind of data that its first sentence
// names, one that its other sentences name, and a path from one to the other. Of tools that make the
// same of the same it takes any.
type Reading struct {
	Name string
	// Does completes the sentence "an agent solves it that …".
	Does string
	ends func(m *Map, first, rest string) (from, to int)
}

// Readings lists the ways to read a task.
var Readings = []Reading{
	{
		"path", "searches a path from the first data that the task names to the last",
		func(m *Map, first, rest string) (from, to int) { return m.Kind(first), m.Kind(rest) },
	},
	{
		"path-before", "searches a path from the first data that the task names to the last tool named",
		func(m *Map, first, rest string) (from, to int) {
			to, _ = m.Tool(rest)
			return m.Kind(first), to
		},
	},
	{
		"path-between", "searches a path from the first tool that the task names to the last",
		func(m *Map, first, rest string) (from, to int) {
			_, from = m.Tool(first)
			to, _ = m.Tool(rest)
			return from, to
		},
	},
}

// Tools returns the tools of a path.
func (r *Reading) Tools(m *Map, description string, dice *rand.Rand) (tools []string) {
	first, rest, _ := strings.Cut(description, ". ")
	from, to := r.ends(m, first, rest)
	for _, step := range m.Path(from, to, dice) {
		tools = append(tools, step[dice.IntN(len(step))])
	}
	return tools
}
