package fresh

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
)

// next stands for kind 0 of the next domain, so that the domains form a ring.
const next = 15

// shape says which kinds of a domain are made of which. It is the same for all domains and seeds,
// so that all libraries are equally hard; the names are drawn. Kinds 0 to 6 are a line that every
// task begins on. 7, 9, 11 and 13 branch off, and 14 is another way to make two kinds, which no
// task has. From any kind to any other there is only one path, unless it goes round the ring.
var shape = []struct {
	from, to int
	// gated steps need the domain's book to be open, and lasting ones have an effect.
	gated, lasting bool
}{
	{from: 0, to: 1},
	{from: 1, to: 2},
	{from: 2, to: 3, gated: true},
	{from: 3, to: 4},
	{from: 4, to: 5},
	{from: 5, to: 6, gated: true},
	{from: 6, to: next, lasting: true},
	{from: 1, to: 7},
	{from: 7, to: 8, lasting: true},
	{from: 2, to: 9},
	{from: 9, to: 10, lasting: true},
	{from: 4, to: 11},
	{from: 11, to: 12, lasting: true},
	{from: 3, to: 13, lasting: true},
	{from: 14, to: 3},
	{from: 14, to: 6},
}

// line is the number of kinds that tasks begin with.
const line = 7

// A purse hands out words that share no stem with each other or with the wordings, so that each
// identifies what it names.
type purse struct {
	dice *rand.Rand
	used map[string]bool
}

func newPurse(dice *rand.Rand) *purse {
	p := &purse{dice, make(map[string]bool)}
	w := words()
	for _, list := range [][]string{
		w.Tools.Does, w.Tools.Law,
		{w.Tools.Effect, w.Tools.Opens},
		w.Tasks.First, w.Tasks.Next, w.Tasks.Last, w.Tasks.Full, w.Tasks.Short, w.Tasks.Begins,
		w.Tasks.Origins, w.Tasks.Goals, w.Tasks.Sequels, w.Tasks.Asides,
	} {
		for _, text := range list {
			p.take(mark.ReplaceAllString(text, ""))
		}
	}
	return p
}

// take marks the stems of a text as used. It returns false if one was used before.
func (p *purse) take(text string) bool {
	fresh := true
	for _, stem := range bm25.Words(text) {
		fresh = fresh && !p.used[stem]
		p.used[stem] = true
	}
	return fresh
}

// draw returns n unused words of a list.
func (p *purse) draw(n int, list string) []string {
	all := strings.Fields(list)
	p.dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	var drawn []string
	for _, word := range all {
		if len(drawn) < n && p.take(word) {
			drawn = append(drawn, word)
		}
	}
	return drawn
}

// name invents a name.
func (p *purse) name() string {
	for {
		var name strings.Builder
		for _, list := range words().Names {
			name.WriteString(pick(p.dice, strings.Fields(list)))
		}
		if p.take(name.String()) {
			return name.String()
		}
	}
}

// drawKinds names the kinds. Half of the names are invented.
func (g *Grammar) drawKinds(dice *rand.Rand) {
	p := newPurse(dice)
	for _, d := range g.drawn {
		for _, text := range append(slices.Clone(d.Teams), d.Book) {
			p.take(text)
		}
	}
	for _, d := range g.drawn {
		heads := p.draw(next, d.Heads)
		ordinary := p.draw(next/2, words().Modifiers)
		kinds := make([]recordKind, next)
		for i, at := range dice.Perm(next) {
			kinds[at].head = heads[i]
			if i < len(ordinary) {
				kinds[at].modifier = ordinary[i]
			} else {
				kinds[at].modifier = p.name()
			}
		}
		g.kinds = append(g.kinds, kinds)
	}
	g.drawSteps(p)
}

// ownVerbs is the number of a domain's operations that have a verb of the domain.
const ownVerbs = 12

func (g *Grammar) drawSteps(p *purse) {
	for i, d := range g.drawn {
		verbs := p.draw(ownVerbs, d.Verbs)
		verbs = append(verbs, p.draw(len(shape)-len(verbs), words().Verbs)...)
		p.dice.Shuffle(len(verbs), func(i, j int) { verbs[i], verbs[j] = verbs[j], verbs[i] })
		for k, e := range shape {
			s := operation{
				verb: verbs[k], from: kindPlace{i, e.from}, to: kindPlace{i, e.to}, gated: e.gated,
			}
			if e.to == next {
				s.to = kindPlace{(i + 1) % domainsDrawn, 0}
			}
			s.name = s.verb + "_" + g.kind(s.from).head
			g.steps = append(g.steps, s)
		}
	}
}

// about returns the words for a step.
func (g *Grammar) about(s operation) marks {
	return marks{"ins": g.kind(s.from).plural(), "outs": g.kind(s.to).plural()}.verb(s.verb)
}

// drawTools makes a tool of each step and of each book, and shuffles them.
func (g *Grammar) drawTools(dice *rand.Rand) {
	for _, d := range g.drawn {
		g.gates = append(g.gates, gate(d, dice))
	}
	g.tools = slices.Clone(g.gates)
	for i, s := range g.steps {
		edge := shape[i%len(shape)]
		d, w := g.drawn[s.from.domain], words().Tools
		m := g.about(s)
		m["book"], m["outlet"] = d.Book, pick(dice, d.Outlets)
		tool := assay.Tool{
			Name: s.name, Category: d.Name, Operation: s.verb,
			Description:  capital(m.fill(pick(dice, w.Does))),
			Parameters:   []assay.Parameter{dataParameter(m), pick(dice, d.Parameters).required()},
			Returns:      returns(m),
			Errors:       errorsOf(d),
			Dependencies: []string{},
		}
		if s.gated {
			tool.Description += " " + m.fill(pick(dice, w.Law))
			tool.Dependencies = []string{g.gates[s.from.domain].Name}
		}
		if edge.lasting {
			tool.Effect = m.fill(w.Effect)
		}
		g.tools = append(g.tools, tool)
	}
	dice.Shuffle(len(g.tools), func(i, j int) { g.tools[i], g.tools[j] = g.tools[j], g.tools[i] })
}

// gate returns the tool that opens a domain's book.
func gate(d domain, dice *rand.Rand) assay.Tool {
	m := marks{"book": d.Book}
	return assay.Tool{
		Name: "open_" + strings.ReplaceAll(d.Book, " ", "_"), Category: d.Name, Operation: "open",
		Description:  m.fill(words().Tools.Opens),
		Parameters:   []assay.Parameter{pick(dice, d.Parameters).required()},
		Returns:      []assay.Return{success, metadata},
		Errors:       errorsOf(d),
		Dependencies: []string{},
	}
}

var (
	success  = assay.Return{Name: "success", Type: "boolean", Description: "True if it did its work."}
	metadata = assay.Return{
		Name: "metadata", Type: "object", Description: "How many records it worked on, and when.",
	}
)

func returns(m marks) []assay.Return {
	data := assay.Return{
		Name: "data", Type: "object", Description: m.fill("The {outs}, in the order of the {ins}."),
	}
	return []assay.Return{success, data, metadata}
}

func dataParameter(m marks) assay.Parameter {
	return assay.Parameter{
		Name: "data", Type: "object", Description: m.fill("The {ins} to work on."), Required: true,
	}
}

func (p parameter) required() assay.Parameter {
	typ := "string"
	if _, ok := p.Values[0].(int); ok {
		typ = "number"
	}
	return assay.Parameter{Name: p.Name, Type: typ, Description: p.Description, Required: true}
}

func errorsOf(d domain) []assay.ToolError {
	return []assay.ToolError{
		{Code: "INVALID_INPUT", Description: "An argument is missing, or it makes no sense here."},
		d.Error,
		{Code: "TIMEOUT", Description: "The work took too long and was stopped."},
	}
}
