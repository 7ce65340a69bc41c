package main

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
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
	// weights tell the tool of a step from others that make the same of the same, by a stem of the
	// task and a trait of the tool.
	weights map[[2]string]float64
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
	p := &pathLearner{make(map[string]bool), make(map[cue]int), make(map[cue]int), make(map[[2]string]float64)}
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
	p.learnChoices(known, difficulty)
	return p.name
}

// learnChoices fits a logistic regression over pairs of a stem of the task and a trait of a tool.
func (p *pathLearner) learnChoices(known []*lesson, difficulty string) {
	const rate = .05
	for range 3 {
		for _, l := range known {
			for _, task := range l.tasks[difficulty] {
				stems := p.stems(task)
				for _, name := range task.Required {
					traits := l.traits(l.paths.Beside(name))
					chances := p.chances(stems, traits)
					for i, tool := range l.paths.Beside(name) {
						d := -chances[i]
						if tool == name {
							d++
						}
						for _, stem := range stems {
							for _, trait := range traits[i] {
								p.weights[[2]string{stem, trait}] += rate * d
							}
						}
					}
				}
			}
		}
	}
}

// stems returns the stems of a task that most libraries have, and the numbers.
func (p *pathLearner) stems(task assay.Task) []string {
	stems := slices.DeleteFunc(bm25.Words(task.Description), func(stem string) bool {
		return !p.common[stem] && !isNumber(stem)
	})
	slices.Sort(stems)
	return append(slices.Compact(stems), "")
}

func isNumber(word string) bool { return '0' <= word[0] && word[0] <= '9' }

// traits returns the words of the descriptions of tools, and which rank each has by each of its
// numbers. A number is called by the word that follows it.
func (l *lesson) traits(tools []string) [][]string {
	traits, numbers := make([][]string, len(tools)), make([]map[string]int, len(tools))
	for i, name := range tools {
		words := bm25.Words(l.description(name))
		traits[i], numbers[i] = words, make(map[string]int)
		for k, word := range words[:len(words)-1] {
			if n, err := strconv.Atoi(word); err == nil {
				numbers[i][words[k+1]] = n
			}
		}
	}
	for i := range tools {
		for _, called := range slices.Sorted(maps.Keys(numbers[i])) {
			rank := 0
			for j := range tools {
				if n, ok := numbers[j][called]; ok && n < numbers[i][called] {
					rank++
				}
			}
			traits[i] = append(traits[i], fmt.Sprint("rank ", rank, " by ", called))
		}
	}
	return traits
}

// chances returns how probable it is that each of several tools is the right one.
func (p *pathLearner) chances(stems []string, traits [][]string) []float64 {
	chances, sum := make([]float64, len(traits)), 0.0
	for i := range traits {
		z := 0.0
		for _, stem := range stems {
			for _, trait := range traits[i] {
				z += p.weights[[2]string{stem, trait}]
			}
		}
		chances[i] = math.Exp(max(-50, min(50, z)))
		sum += chances[i]
	}
	for i := range chances {
		chances[i] /= sum
	}
	return chances
}

var (
	limitText  = regexp.MustCompile(`at (most|least) (\d+) (\w+)`)
	numberText = regexp.MustCompile(`(\d+) (\w+)`)
)

// learnNumbers also compares the first two limits of a task with the numbers of tools. It is written
// for this grammar, so it says what is left to understand.
func learnNumbers(known []*lesson, difficulty string) namer {
	name := learnPaths(known, difficulty)
	return func(l *lesson, task assay.Task) []string {
		limits := limitText.FindAllStringSubmatch(task.Description, 2)
		within := slices.DeleteFunc(slices.Clone(l.catalog.All()), func(tool assay.Tool) bool {
			return slices.ContainsFunc(limits, func(limit []string) bool {
				bound, _ := strconv.Atoi(limit[2])
				return slices.ContainsFunc(numberText.FindAllStringSubmatch(tool.Description, -1),
					func(found []string) bool {
						n, _ := strconv.Atoi(found[1])
						return found[2] == limit[3] && n != bound && n > bound == (limit[1] == "most")
					})
			})
		})
		narrowed := *l
		narrowed.paths = floor.NewMap(functionsOf(within))
		return name(&narrowed, task)
	}
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
		chances := p.chances(p.stems(task), l.traits(step))
		tools = append(tools, step[slices.Index(chances, slices.Max(chances))])
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
