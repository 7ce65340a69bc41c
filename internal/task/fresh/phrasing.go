package fresh

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/phrasing"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// otherWords is the content of phrasings.yaml, which explains the fields.
type otherWords struct {
	Reordered struct{ Last, Before, First, Goals, Sources []string }
	// Casual has the words that begin steps, and the wordings of each kind of statements.
	Casual map[string][]string
}

var rephrased = yamldoc.Embedded[otherWords](dataFiles, "data/phrasings.yaml")

// Phrasings returns the texts of a task, by its descriptions and then by their phrasings. It is nil if
// the grammar has no such task.
func (g *Grammar) Phrasings(id assay.TaskID) map[string]map[string]string {
	d, nth, ok := g.describerOf(id)
	if !ok {
		return nil
	}
	texts := make(map[string]map[string]string)
	for _, difficulty := range assay.Difficulties {
		said := d.describe(difficulty, nth)
		plain := plainly(said)
		dice := func(name string) *rand.Rand { return g.dice("phrasing", id, difficulty, name) }
		texts[plain] = map[string]string{
			assay.Casual:    chat(dice(assay.Casual), said),
			assay.Typed:     g.mistype(dice(assay.Typed), plain, said),
			assay.Reordered: reorder(dice(assay.Reordered), said),
		}
	}
	return texts
}

// describerOf returns the describer of a task and its number among the tasks of its length.
func (g *Grammar) describerOf(id assay.TaskID) (d describer, nth int, ok bool) {
	prefix, number, _ := strings.Cut(string(id), "-")
	k, err := strconv.Atoi(number)
	i := slices.IndexFunc(assay.TaskTypes, func(typ string) bool { return strings.HasPrefix(typ, prefix+"_") })
	if err != nil || i < 0 || k < 1 || k > MaxTasks {
		return d, 0, false
	}
	all := g.solved(assay.TaskTypes[i])
	for _, s := range all[:k-1] {
		if len(s.path) == len(all[k-1].path) {
			nth++
		}
	}
	d, _, _ = g.describer(assay.TaskTypes[i], k-1, all[k-1])
	return d, nth, true
}

// A phrasingCache keeps what [Grammar.Phrasings] needs for every task: the solutions of each type, because
// the earlier ones of a task count, and the vocabulary.
type phrasingCache struct {
	mu    sync.Mutex
	types map[string][]solution
	words map[string]bool
}

// solved returns the solutions of all tasks of a type.
func (g *Grammar) solved(typ string) []solution {
	g.cache.mu.Lock()
	defer g.cache.mu.Unlock()
	if g.cache.types == nil {
		g.cache.types = make(map[string][]solution)
	}
	if g.cache.types[typ] == nil {
		g.cache.types[typ] = g.solutions(typ, MaxTasks)
	}
	return g.cache.types[typ]
}

// orders are the orders of statements, by the kinds that a description consists of. Nothing that a
// sentence refers to comes after it. Steps count once and are told backwards.
var orders = map[string][][]string{
	"short":                              {{saysShort}},
	"full":                               {{saysFull}},
	"begin short limit":                  {{saysLimit, saysShort, saysBegin}, {saysLimit, saysBegin, saysShort}, {saysShort, saysLimit, saysBegin}},
	"begin goal limit":                   {{saysLimit, saysGoal, saysBegin}, {saysGoal, saysBegin, saysLimit}},
	"begin sequel rule decider":          {{saysRule, saysWho, saysBegin, saysSequel}, {saysRule, saysWho, saysSequel, saysBegin}, {saysSequel, saysBegin, saysRule, saysWho}, {saysSequel, saysRule, saysWho, saysBegin}, {saysBegin, saysRule, saysWho, saysSequel}},
	"origin aside sequel change decider": {{saysChange, saysWho, saysSequel, saysOrigin, saysAside}, {saysSequel, saysOrigin, saysAside, saysChange, saysWho}, {saysChange, saysWho, saysOrigin, saysSequel, saysAside}, {saysSequel, saysAside, saysOrigin, saysChange, saysWho}, {saysOrigin, saysChange, saysWho, saysAside, saysSequel}},
}

// reorder states the same in another order.
func reorder(dice *rand.Rand, said []statement) string {
	of := make(map[string][]statement) // copies
	var kinds []string
	for _, s := range said {
		if len(of[s.kind]) == 0 {
			kinds = append(kinds, s.kind)
		}
		of[s.kind] = append(of[s.kind], s)
	}
	w := rephrased().Reordered
	if len(of[saysGoal]) > 0 { // the goal comes first, so the words after it refer to it
		of[saysGoal][0].text = of[saysGoal][0].marks.fill(pick(dice, w.Goals))
		of[saysBegin][0].text = of[saysBegin][0].marks.fill(pick(dice, w.Sources))
	}
	var all []statement
	for _, kind := range pick(dice, orders[strings.Join(kinds, " ")]) {
		if of[kind][0].isStep() {
			slices.Reverse(of[kind])
			for i := range of[kind] {
				leads := w.Before
				switch i {
				case 0:
					leads = w.Last
				case len(of[kind]) - 1:
					leads = w.First
				}
				of[kind][i].lead = pick(dice, leads)
			}
		}
		all = append(all, of[kind]...)
	}
	return plainly(all)
}

// chat says the same as to a colleague.
func chat(dice *rand.Rand, said []statement) string {
	w := rephrased().Casual
	var sentences []string
	for i, s := range said {
		s.text = s.marks.fill(pick(dice, w[s.kind]))
		if s.isStep() {
			leads := w["next"]
			switch {
			case i == 0 || !said[i-1].isStep():
				leads = w["first"]
			case i == len(said)-1 || !said[i+1].isStep():
				leads = w["last"]
			}
			s.lead = pick(dice, leads)
		}
		sentences = append(sentences, s.plain())
	}
	return phrasing.Chat(dice, sentences)
}

// mistype makes typing errors in words that name nothing.
func (g *Grammar) mistype(dice *rand.Rand, description string, said []statement) string {
	names := make(map[string]bool)
	for _, s := range said {
		m := maps.Clone(s.marks)
		for _, name := range []string{"a", "b", "c", "d"} {
			delete(m, name) // these are wordings, too
		}
		maps.Copy(names, phrasing.Words(slices.Collect(maps.Values(m))...))
	}
	for _, s := range g.scales {
		maps.Copy(names, phrasing.Words(s.Limit))
	}
	return phrasing.Type(dice, description, func(w string) bool { return names[w] }, g.vocabulary())
}

// vocabulary returns all words that descriptions of the library's tasks can have.
func (g *Grammar) vocabulary() map[string]bool {
	g.cache.mu.Lock()
	defer g.cache.mu.Unlock()
	if g.cache.words == nil {
		w := words().Tasks
		texts := slices.Concat(w.First, w.Next, w.Last, w.Full, w.Short, w.Begins, w.Origins, w.Goals, w.Sequels,
			w.Asides, w.Limits, w.Rules, w.Changes, w.Deciders)
		for _, s := range g.steps {
			texts = slices.AppendSeq(texts, maps.Values(g.about(s)))
		}
		for _, d := range g.drawn {
			texts = append(texts, d.Teams...)
		}
		for _, s := range g.scales {
			texts = append(texts, s.Limit)
		}
		for m := time.January; m <= time.December; m++ {
			texts = append(texts, m.String())
		}
		g.cache.words = phrasing.Words(texts...)
	}
	return g.cache.words
}
