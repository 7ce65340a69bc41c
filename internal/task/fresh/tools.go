package fresh

import (
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
)

// next stands for kind 0 of the next domain, so that the domains form a ring.
const next = 6

// line is the number of kinds of a domain that tasks begin with. They are made of each other in turn,
// and the last one leads to the next domain.
const line = 5

// An edge says that a domain's tools make one kind of another. The shape is the same for all seeds,
// so that all libraries are equally hard; names and numbers are drawn.
type edge struct {
	from, to int
	// gated steps need the domain's book to be open, and lasting ones have an effect.
	gated, lasting bool
	spans          []span // of the tools
}

// free are the choices of the edges that are never closed, in any order; see [spansOf].
var free = []string{"1111", "1111", "1111", "1122", "2222", "2233", "3333", "3333", "3333"}

// closings are the choices of the other two edges of each domain's line. Under one profile each is
// closed, and another way is open: from kind 1 to 3 at once, or from 2 to 4 by way of 5. Under all
// other profiles these ways are as short or shorter, but closed.
var closings = [domainsDrawn][2]string{{"0123", "1102"}, {"2203", "1023"}, {"1230", "2033"}}

// edgesOf returns the edges of the i-th domain.
func edgesOf(i int, free []string) []edge {
	line := func(from int, choice string) edge {
		spans := spansOf(choice)
		return edge{from: from, to: from + 1, spans: spans[:]}
	}
	closed := func(choice string) int { return strings.Index(choice, "0") }
	early, late := closings[i][0], closings[i][1]
	short, round := closed(early), closed(late)
	edges := []edge{
		line(0, free[0]), line(1, free[1]), line(2, early), line(3, late), line(4, free[2]),
		{from: 1, to: 3, spans: []span{{short, short}}},
		{from: 2, to: 5, lasting: true, spans: []span{{round, min(round+1, profiles-1)}}},
		{from: 5, to: 4, gated: true, spans: []span{{max(round-1, 0), round}}},
	}
	edges[2].gated, edges[4].lasting, edges[4].to = true, true, next
	return edges
}

// A purse hands out words that share no stem with each other or with the wordings, so that each
// identifies what it names.
type purse struct {
	dice *rand.Rand
	used map[string]bool
}

func newPurse(dice *rand.Rand) *purse {
	p := &purse{dice, make(map[string]bool)}
	w := words()
	for _, m := range w.Measures {
		p.take(mark.ReplaceAllString(m.Is+" "+m.Limit, ""))
	}
	for _, list := range [][]string{
		w.Tools.Does, w.Tools.Law, w.Tools.Measured,
		{w.Tools.Effect, w.Tools.Opens},
		w.Tasks.First, w.Tasks.Next, w.Tasks.Last, w.Tasks.Full, w.Tasks.Short, w.Tasks.Begins,
		w.Tasks.Origins, w.Tasks.Goals, w.Tasks.Sequels, w.Tasks.Asides,
		w.Tasks.Limits, w.Tasks.Rules, w.Tasks.Changes, w.Tasks.Deciders,
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

// ownVerbs is the number of a domain's operations that have a verb of the domain at most.
const ownVerbs = 12

func (g *Grammar) drawSteps(p *purse) {
	choices := slices.Clone(free)
	p.dice.Shuffle(len(choices), func(i, j int) { choices[i], choices[j] = choices[j], choices[i] })
	for i, d := range g.drawn {
		edges, tools := edgesOf(i, choices[3*i:]), 0
		for _, e := range edges {
			tools += len(e.spans)
		}
		verbs := p.draw(ownVerbs, d.Verbs)
		verbs = append(verbs, p.draw(tools-len(verbs), words().Verbs)...)
		p.dice.Shuffle(len(verbs), func(i, j int) { verbs[i], verbs[j] = verbs[j], verbs[i] })
		for _, e := range edges {
			for _, numbers := range g.numbers(p.dice, e.spans) {
				s := operation{
					verb: verbs[0], from: kindPlace{i, e.from}, to: kindPlace{i, e.to},
					gated: e.gated, lasting: e.lasting, numbers: numbers, beside: len(e.spans),
				}
				if e.to == next {
					s.to = kindPlace{(i + 1) % domainsDrawn, 0}
				}
				s.name = s.verb + "_" + g.kind(s.from).head
				g.steps, verbs = append(g.steps, s), verbs[1:]
			}
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
	for _, s := range g.steps {
		g.tools = append(g.tools, g.tool(dice, s))
	}
	dice.Shuffle(len(g.tools), func(i, j int) { g.tools[i], g.tools[j] = g.tools[j], g.tools[i] })
}

// tool returns a tool for an operation.
func (g *Grammar) tool(dice *rand.Rand, s operation) assay.Tool {
	d, w := g.drawn[s.from.domain], words().Tools
	m := g.about(s)
	m["book"], m["outlet"] = d.Book, pick(dice, d.Outlets)
	tool := assay.Tool{
		Name: s.name, Category: d.Name, Operation: s.verb,
		Description: capital(m.fill(pick(dice, w.Does))) + " " +
			g.measured(dice, pick(dice, w.Measured), s.numbers),
		Parameters:   []assay.Parameter{dataParameter(m), pick(dice, d.Parameters).required()},
		Returns:      returns(m),
		Errors:       errorsOf(d),
		Dependencies: []string{},
	}
	if s.gated {
		tool.Description += " " + m.fill(pick(dice, w.Law))
		tool.Dependencies = []string{g.gates[s.from.domain].Name}
	}
	if s.lasting {
		tool.Effect = m.fill(w.Effect)
	}
	return tool
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
