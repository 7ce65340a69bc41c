package main

import (
	"encoding/json"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/floor"
	"github.com/assay-eval/assay/internal/task/bm25"
)

// A pathLearner finds the kinds of records that a task begins and ends with, and searches a path of
// tools from one to the other by shared words. From known libraries it has learnt which sentence
// names these kinds, and how.
type pathLearner struct {
	common map[string]bool // stems of the tasks of most libraries
	// right and seen count how often a cue named the right kind.
	right, seen map[cue]int
}

// A cue is a way to read a kind out of a sentence of a form. The form is what is left of a sentence
// without the words that only few libraries have.
type cue struct {
	end        bool // of the path
	way, place int  // place counts the sentences from that end
	form       string
}

// The ways to read a kind out of a sentence: the kind that shares most words with it, or what the
// tool works on or makes that does.
const ways = 3

func kindBy(m *floor.Map, way int, sentence string) int {
	takes, makes := m.Tool(sentence)
	return [ways]int{m.Kind(sentence), takes, makes}[way]
}

var sentenceEnd = regexp.MustCompile(`[.:]\s*`)

func sentencesOf(text string) []string {
	return slices.DeleteFunc(sentenceEnd.Split(text, -1), func(s string) bool { return s == "" })
}

func learnPaths(known []*lesson, difficulty string) namer {
	p := &pathLearner{make(map[string]bool), make(map[cue]int), make(map[cue]int)}
	in := make(map[string]int) // libraries with a stem
	for _, l := range known {
		stems := make(map[string]bool)
		for _, task := range l.tasks[difficulty] {
			for _, stem := range bm25.Words(task.Description) {
				stems[stem] = true
			}
		}
		for stem := range stems {
			in[stem]++
		}
	}
	maps.DeleteFunc(in, func(_ string, n int) bool { return 2*n <= len(known) })
	for stem := range in {
		p.common[stem] = true
	}
	for _, l := range known {
		for _, task := range l.tasks[difficulty] {
			begin, end := l.ends(task)
			p.each(l.paths, task, func(c cue, kind int) {
				place := c
				place.form = ""
				p.seen[c]++
				p.seen[place]++
				if !c.end && kind == begin || c.end && kind == end {
					p.right[c]++
					p.right[place]++
				}
			})
		}
	}
	return p.name
}

// ends returns the kinds of records that a task begins and ends with.
func (l *lesson) ends(task assay.Task) (begin, end int) {
	begin, _ = l.paths.Of(task.Required[0])
	_, end = l.paths.Of(task.Required[len(task.Required)-1])
	return begin, end
}

// each yields all cues in a task with the kinds that they name.
func (p *pathLearner) each(m *floor.Map, task assay.Task, yield func(cue, int)) {
	sentences := sentencesOf(task.Description)
	for place, sentence := range sentences {
		form := p.form(sentence)
		for way := range ways {
			kind := kindBy(m, way, sentence)
			yield(cue{false, way, place, form}, kind)
			yield(cue{true, way, len(sentences) - place, form}, kind)
		}
	}
}

func (p *pathLearner) form(sentence string) string {
	return strings.Join(slices.DeleteFunc(bm25.Words(sentence), func(stem string) bool {
		return !p.common[stem]
	}), " ")
}

// name takes the kinds of the cues that were right most often.
func (p *pathLearner) name(l *lesson, task assay.Task) (tools []string) {
	var kinds [2]int
	var best [2]float64
	p.each(l.paths, task, func(c cue, kind int) {
		i := 0
		if c.end {
			i = 1
		}
		if trust := p.trust(c); trust > best[i] {
			kinds[i], best[i] = kind, trust
		}
	})
	dice := diceOf(task)
	for _, step := range l.paths.Path(kinds[0], kinds[1], dice) {
		tools = append(tools, step[dice.IntN(len(step))])
	}
	return tools
}

// trust estimates how often a cue is right: among its own form, of which there may be few, and among
// the sentences at its place.
func (p *pathLearner) trust(c cue) float64 {
	const weight = 2 // of the place
	place := c
	place.form = ""
	prior := float64(p.right[place]) / float64(max(1, p.seen[place]))
	return (float64(p.right[c]) + weight*prior) / (float64(p.seen[c]) + weight)
}

// diceOf returns the random numbers for a task.
func diceOf(task assay.Task) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(task.Description))
	return rand.New(rand.NewPCG(h.Sum64(), 1))
}

// functionsOf describes tools as a model sees them, as far as a [floor.Map] reads it.
func functionsOf(tools []assay.Tool) (all []assay.Function) {
	for _, t := range tools {
		properties := make(map[string]any)
		for _, p := range t.Parameters {
			properties[p.Name] = map[string]any{"description": p.Description}
		}
		b, _ := json.Marshal(map[string]any{"properties": properties}) // strings
		all = append(all, assay.Function{Name: t.Name, Description: t.Description, Parameters: b})
	}
	return all
}
