// Package fresh generates libraries that nobody can have memorised: from a seed it draws the kinds
// of records, the tools that make one kind out of another, and tasks whose shortest solution is a
// path through these tools. Several tools make the same records of the same others. They differ in
// two numbers, such as minutes and credits, and the limits of a task decide which of them are right.
//
// It owns the grammar and its words (`data/`). Which tool leads where is drawn, so only somebody
// who reads the descriptions can find a path. It does not write files: package library does.
package fresh

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/assay-eval/assay"
)

// Version identifies the grammar. It changes whenever a seed gives other tools or tasks.
const Version = "2"

// domainsDrawn is the number of domains of a library.
const domainsDrawn = 3

// A Grammar holds what a seed has drawn. It is safe for concurrent use.
type Grammar struct {
	seed  string
	drawn []domain
	// kinds are the kinds of records, by domain and number in the [shape].
	kinds  [][]recordKind
	scales [2]scale // of the tools' measures
	steps  []operation
	gates  []assay.Tool // of the domains
	tools  []assay.Tool

	cache phrasingCache
}

// A recordKind is a kind of record, such as an amber voucher.
type recordKind struct{ modifier, head string }

func (k recordKind) plural() string { return k.modifier + " " + plural(k.head) }

// A kindPlace is a kind by its domain and its number in the [shape].
type kindPlace struct{ domain, number int }

// An operation is the operation of a tool: it makes records of the kind at one place from records
// of the kind at another one.
type operation struct {
	verb     string
	from, to kindPlace
	name     string // the tool's
	gated    bool   // it needs the domain's book to be open
	lasting  bool   // it has an effect
	numbers  [2]int // its measures
	beside   int    // the tools that make the same of the same, itself among them
}

// New draws the library of a seed. The same seed always gives the same library.
func New(seed string) *Grammar {
	g := &Grammar{seed: seed}
	dice := g.dice("tools")
	all := slices.Clone(domains())
	dice.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	g.drawn = all[:domainsDrawn]
	g.scales = drawScales(dice)
	g.drawKinds(dice)
	g.drawTools(dice)
	return g
}

// WithSubstitutes adds tools that do the same as others: one for each operation, with a probability. Their
// words and parameters are drawn anew, and their numbers are the same, so that the limits of a task allow
// both or none. The tasks stay as they are.
func (g *Grammar) WithSubstitutes(probability float64) *Grammar {
	dice := g.dice("substitutes")
	for _, s := range g.steps {
		if dice.Float64() >= probability {
			continue
		}
		tool := g.tool(dice, s)
		tool.StandsFor, tool.Name = tool.Name, tool.Name+"_standby"
		g.tools = slices.Insert(g.tools, dice.IntN(len(g.tools)+1), tool)
	}
	return g
}

// dice returns the random numbers for a purpose. Whoever does not know the seed cannot predict
// them, whatever others of them were seen.
func (g *Grammar) dice(purpose ...any) *rand.Rand {
	text := fmt.Sprintf("assay fresh %s\x00%s\x00%q", Version, g.seed, fmt.Sprint(purpose...))
	return rand.New(rand.NewChaCha8(sha256.Sum256([]byte(text))))
}

// Tools returns the tools in an order that says nothing about them.
func (g *Grammar) Tools() []assay.Tool { return g.tools }

func (g *Grammar) kind(p kindPlace) recordKind { return g.kinds[p.domain][p.number] }

// pick returns one of a list.
func pick[T any](dice *rand.Rand, list []T) T { return list[dice.IntN(len(list))] }
