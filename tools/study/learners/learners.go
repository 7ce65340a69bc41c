package main

import (
	"cmp"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/policy"
)

// grams returns the distinct n-grams of a text's words, up to n words.
func grams(text string, n int) []string {
	words := allWords(text)
	seen := make(map[string]bool)
	for i := range words {
		for j := i + 1; j <= min(i+n, len(words)); j++ {
			seen[strings.Join(words[i:j], " ")] = true
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// An example is a task to learn from, with the descriptions of its tools in order.
type example struct {
	text  string
	tools []string
}

// examples returns the tasks of libraries: seven eighths to learn from, and the rest to check.
func examples(known []*lesson, difficulty string) (train, check []example) {
	for _, l := range known {
		for i, task := range l.tasks[difficulty] {
			e := example{text: task.Description}
			for _, tool := range task.Required {
				e.tools = append(e.tools, l.description(tool))
			}
			if i%8 == 7 {
				check = append(check, e)
			} else {
				train = append(train, e)
			}
		}
	}
	return train, check
}

// A scorer returns how probable it is that a text requires each known tool.
type scorer func(text string) map[string]float64

// learnSet returns a learner that names the tools whose probability is above a threshold, in the
// order in which most known tasks have them. The threshold is the one that solves most tasks that
// were not learnt from.
func learnSet(fit func(train []example) scorer) func([]*lesson, string) namer {
	return func(known []*lesson, difficulty string) namer {
		train, check := examples(known, difficulty)
		score, precedes := fit(train), precedence(train)
		pick := func(scores map[string]float64, threshold float64) (tools []string) {
			for tool, p := range scores {
				if p > threshold {
					tools = append(tools, tool)
				}
			}
			slices.Sort(tools)
			return precedes(tools)
		}
		right := make(map[float64]int)
		for _, e := range check {
			scores := score(e.text)
			for _, threshold := range thresholds {
				if slices.Equal(pick(scores, threshold), e.tools) {
					right[threshold]++
				}
			}
		}
		threshold := slices.MaxFunc(thresholds, func(a, b float64) int {
			return cmp.Compare(right[a], right[b])
		})
		return func(l *lesson, task assay.Task) (tools []string) {
			for _, about := range pick(score(task.Description), threshold) {
				tools = append(tools, l.translate(about))
			}
			return tools
		}
	}
}

var thresholds = []float64{.05, .1, .2, .3, .4, .5, .6, .7, .8, .9, .95, .99}

// precedence returns a function that sorts tools: first the one that precedes most others.
func precedence(train []example) func([]string) []string {
	before := make(map[[2]string]int)
	for _, e := range train {
		for i, a := range e.tools {
			for _, b := range e.tools[i+1:] {
				before[[2]string{a, b}]++
			}
		}
	}
	return func(tools []string) []string {
		wins := make(map[string]int)
		for _, a := range tools {
			for _, b := range tools {
				wins[a] += cmp.Compare(before[[2]string{a, b}], before[[2]string{b, a}])
			}
		}
		slices.SortStableFunc(tools, func(a, b string) int { return cmp.Compare(wins[b], wins[a]) })
		return tools
	}
}

// fitPhrases finds phrases that hardly occur without a tool.
func fitPhrases(train []example) scorer {
	const most = 5
	seen, with := make(map[string]float64), make(map[string]map[string]float64) // by phrase and tool
	for _, e := range train {
		for _, g := range grams(e.text, most) {
			if seen[g]++; with[g] == nil {
				with[g] = make(map[string]float64)
			}
			for _, tool := range policy.Distinct(e.tools) {
				with[g][tool]++
			}
		}
	}
	return func(text string) map[string]float64 {
		scores := make(map[string]float64)
		for _, g := range grams(text, most) {
			for tool, n := range with[g] {
				if n >= 2 {
					scores[tool] = max(scores[tool], n/(seen[g]+.1))
				}
			}
		}
		return scores
	}
}

// fitRegression fits a logistic regression over n-grams for each tool, by stochastic gradient
// descent with a sample of the tools that a task does not require.
func fitRegression(train []example) scorer {
	const most, others, rate = 3, 10, .2
	weights := make(map[string]map[string]float64) // by n-gram and tool
	known := make(map[string]bool)
	texts := make([][]string, len(train))
	for i, e := range train {
		texts[i] = append(grams(e.text, most), "") // a bias
		for _, g := range texts[i] {
			weights[g] = make(map[string]float64)
		}
		for _, tool := range e.tools {
			known[tool] = true
		}
	}
	tools := slices.Sorted(maps.Keys(known))
	probability := func(text []string, tool string) float64 {
		z := 0.0
		for _, g := range text {
			z += weights[g][tool]
		}
		return 1 / (1 + math.Exp(-z))
	}
	dice := rand.New(rand.NewPCG(1, 1))
	for range 6 {
		for i, e := range train {
			step := rate / math.Sqrt(float64(len(texts[i])))
			learn := func(tool string, right float64) {
				d := step * (right - probability(texts[i], tool))
				for _, g := range texts[i] {
					weights[g][tool] += d
				}
			}
			for _, tool := range policy.Distinct(e.tools) {
				learn(tool, 1)
			}
			for range others {
				if tool := tools[dice.IntN(len(tools))]; !slices.Contains(e.tools, tool) {
					learn(tool, 0)
				}
			}
		}
	}
	return func(text string) map[string]float64 {
		scores := make(map[string]float64)
		for _, g := range append(grams(text, most), "") {
			for tool, w := range weights[g] {
				scores[tool] += w
			}
		}
		for tool, z := range scores {
			scores[tool] = 1 / (1 + math.Exp(-z))
		}
		return scores
	}
}

// allWords returns the lower-case words of a text, stop words among them.
func allWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !('a' <= r && r <= 'z')
	})
}

// score counts the tasks whose tools are named right.
func score(known []*lesson, difficulty string, name namer) (n int) {
	for _, l := range known {
		for _, task := range l.tasks[difficulty] {
			if l.solves(name(l, task), task) {
				n++
			}
		}
	}
	return n
}

// fitNeighbour finds the known task that shares most words with a text.
func fitNeighbour(train []example) scorer {
	var texts []string
	for _, e := range train {
		texts = append(texts, e.text)
	}
	index := bm25.New(texts)
	return func(text string) map[string]float64 {
		scores := make(map[string]float64)
		for _, hit := range index.Search(text, 1) {
			for _, tool := range train[hit.Doc].tools {
				scores[tool] = 1
			}
		}
		return scores
	}
}
