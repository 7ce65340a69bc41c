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

// A tallyOf counts in how many tasks n-grams and tools occur, and both together.
type tallyOf struct {
	tasks    float64
	gram, of map[string]float64
	with     map[string]map[string]float64 // by n-gram and tool
	often    map[float64]bool              // the values of the map of
}

func tallyGrams(train []example, n int) *tallyOf {
	t := &tallyOf{
		tasks: float64(len(train)), gram: make(map[string]float64), of: make(map[string]float64),
		with: make(map[string]map[string]float64),
	}
	for _, e := range train {
		tools := policy.Distinct(e.tools)
		for _, tool := range tools {
			t.of[tool]++
		}
		for _, g := range grams(e.text, n) {
			t.gram[g]++
			if t.with[g] == nil {
				t.with[g] = make(map[string]float64)
			}
			for _, tool := range tools {
				t.with[g][tool]++
			}
		}
	}
	t.often = make(map[float64]bool)
	for _, of := range t.of {
		t.often[of] = true
	}
	return t
}

// fitPhrases finds phrases that hardly occur without a tool.
func fitPhrases(train []example) scorer {
	t := tallyGrams(train, 5)
	return func(text string) map[string]float64 {
		scores := make(map[string]float64)
		for _, g := range grams(text, 5) {
			for tool, n := range t.with[g] {
				if n >= 2 {
					scores[tool] = max(scores[tool], n/(t.gram[g]+.1))
				}
			}
		}
		return scores
	}
}

// fitBayes judges each tool by the n-grams that are there, as if they were independent.
func fitBayes(train []example) scorer {
	t := tallyGrams(train, 3)
	evidence := func(n, seen, of float64) float64 {
		const smooth = .05
		return math.Log((n+smooth)/(of+2*smooth)) -
			math.Log((seen-n+smooth)/(t.tasks-of+2*smooth))
	}
	return func(text string) map[string]float64 {
		scores, without := make(map[string]float64), make(map[float64]float64)
		for _, g := range grams(text, 3) {
			if t.gram[g] > 1 {
				for of := range t.often {
					without[of] += evidence(0, t.gram[g], of)
				}
				for tool, n := range t.with[g] {
					of := t.of[tool]
					scores[tool] += evidence(n, t.gram[g], of) - evidence(0, t.gram[g], of)
				}
			}
		}
		for tool, of := range t.of {
			z := scores[tool] + without[of] + math.Log(of/(t.tasks-of+1))
			scores[tool] = 1 / (1 + math.Exp(-z/5)) // n-grams overlap
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

// learnNeighbours names the tools of the most similar task.
func learnNeighbours(known []*lesson, difficulty string) namer {
	var texts []string
	var abouts [][]string
	for _, l := range known {
		for _, task := range l.tasks[difficulty] {
			texts = append(texts, task.Description)
			var about []string
			for _, tool := range task.Required {
				about = append(about, l.description(tool))
			}
			abouts = append(abouts, about)
		}
	}
	index := bm25.New(texts)
	return func(l *lesson, task assay.Task) (tools []string) {
		for _, hit := range index.Search(task.Description, 1) {
			for _, about := range abouts[hit.Doc] {
				tools = append(tools, l.translate(about))
			}
		}
		return tools
	}
}

// best returns the key with the highest score, or "".
func best(scores map[string]float64) (key string) {
	for k, s := range scores {
		if key == "" || s > scores[key] || s == scores[key] && k < key {
			key = k
		}
	}
	return key
}

// A regression is a logistic one over sparse features.
type regression struct {
	bias    float64
	weights map[string]float64
}

func (r *regression) probability(features []string) float64 {
	z := r.bias
	for _, f := range features {
		z += r.weights[f]
	}
	return 1 / (1 + math.Exp(-z))
}

// learn makes a step of stochastic gradient descent.
func (r *regression) learn(features []string, right bool) {
	const rate = .1
	d := -r.probability(features)
	if right {
		d++
	}
	r.bias += rate * d
	for _, f := range features {
		r.weights[f] += rate * d
	}
}

// learnRanking looks at words that a task shares with a tool: a feature is the word before it in
// the task and the word before it in the description.
func learnRanking(known []*lesson, difficulty string) namer {
	return learnPairs(known, difficulty, func(task, tool []string) (features []string) {
		for i, a := range task {
			for k, b := range tool {
				if a != b {
					continue
				}
				before := before(task, i, 1) + "|" + before(tool, k, 1)
				features = append(features, before, before+"|"+before2(task, i)+"|"+before2(tool, k))
			}
		}
		if len(features) == 0 {
			features = []string{"nothing in common"}
		}
		return features
	})
}

func before(words []string, i, n int) string {
	if i < n {
		return "^"
	}
	return words[i-n]
}

func before2(words []string, i int) string { return before(words, i, 2) }

// allWords returns the lower-case words of a text, stop words among them.
func allWords(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !('a' <= r && r <= 'z')
	})
}

// learnPairs trains a regression on pairs of a task and a tool, and finds the threshold of the
// probability that names most tools of the known tasks right.
func learnPairs(
	known []*lesson, difficulty string, features func(task, tool []string) []string,
) namer {
	r := &regression{weights: make(map[string]float64)}
	for range 2 {
		for _, l := range known {
			for _, task := range l.tasks[difficulty] {
				words := allWords(task.Description)
				for i, name := range l.names {
					required := slices.Contains(task.Required, name)
					if !required && i%5 != len(words)%5 { // a fifth of the others is enough
						continue
					}
					r.learn(features(words, l.words(i)), required)
				}
			}
		}
	}
	namerAt := func(threshold float64) namer {
		return func(l *lesson, task assay.Task) []string {
			return r.name(l, task, threshold, features)
		}
	}
	threshold := slices.MaxFunc([]float64{.2, .35, .5, .65, .8, .95}, func(a, b float64) int {
		return cmp.Compare(score(known[:1], difficulty, namerAt(a)),
			score(known[:1], difficulty, namerAt(b)))
	})
	return namerAt(threshold)
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

// words returns the words of the i-th tool's name and description.
func (l *lesson) words(i int) []string {
	t := l.catalog.All()[i]
	return allWords(t.Name + " . " + t.Description)
}

// name returns the tools whose probability is above a threshold, or the most probable one, in the
// order of the clauses that they fit best.
func (r *regression) name(
	l *lesson, task assay.Task, threshold float64, features func(task, tool []string) []string,
) (tools []string) {
	words := allWords(task.Description)
	scores := make(map[string]float64)
	for i, name := range l.names {
		scores[name] = r.probability(features(words, l.words(i)))
		if scores[name] > threshold {
			tools = append(tools, name)
		}
	}
	if len(tools) == 0 {
		tools = []string{best(scores)}
	}
	at := make(map[string]int)
	for _, name := range tools {
		at[name] = l.place(name, task.Description)
	}
	slices.SortStableFunc(tools, func(a, b string) int { return cmp.Compare(at[a], at[b]) })
	return tools
}

// place returns the number of the clause that fits a tool best.
func (l *lesson) place(tool, text string) (place int) {
	most := 0.0
	for i, clause := range clauses(text) {
		for _, hit := range l.index.Search(clause, len(l.names)) {
			if l.names[hit.Doc] == tool && hit.Score > most {
				place, most = i, hit.Score
			}
		}
	}
	return place
}
