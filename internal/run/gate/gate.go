// Package gate decides whether a trial is still worth running: whether a
// budget has room for it, and whether its cell or model was given up by a stop
// rule. It counts what a run spends and how its trials end, and reads nothing
// by itself.
//
// It does not stop anything: the engine asks before a trial, and whoever sends
// requests asks before each of them.
package gate

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
)

// A Gate is safe for concurrent use.
type Gate struct {
	budgets Budgets
	rules   StopRules

	mu     sync.Mutex // guards what follows
	run    account
	models map[string]*account
	cells  map[assay.Cell]*account
	stops  []Stop
}

// An account is what was spent on, and came of, the trials of a run, a model
// or a cell.
type account struct {
	tokens   int
	usd      float64
	inFlight int
	episodes int // that ended, for the mean

	outcomes, full, malformed int
	stopped                   string
}

// A Stop is a cell, or a model whose Cell names nothing else, that a rule has
// given up.
type Stop struct {
	assay.Cell
	Reason string `json:"reason"`
	// Outcomes is how many there were when the rule was met.
	Outcomes int `json:"outcomes"`
	// Skipped counts the trials that this run did not run because of it.
	Skipped int `json:"skipped"`
}

func (s Stop) String() string {
	name := s.Model
	if s.Cell != (assay.Cell{Model: s.Model}) {
		words := []string{s.Model, s.Variant, s.Severity, s.Difficulty, s.TaskType, assay.FormatReliability(s.Reliability)}
		name = strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
	}
	return fmt.Sprintf("%s stopped early: %s", name, s.Reason)
}

// New returns a gate that knows of no trial yet.
func New(budgets Budgets, rules StopRules) *Gate {
	return &Gate{budgets: budgets, rules: rules, models: make(map[string]*account), cells: make(map[assay.Cell]*account)}
}

// accounts are those that a cell's trials count in.
func (g *Gate) accountsLocked(c assay.Cell) [3]*account {
	model, cell := g.models[c.Model], g.cells[c]
	if model == nil {
		model = new(account)
		g.models[c.Model] = model
	}
	if cell == nil {
		cell = new(account)
		g.cells[c] = cell
	}
	return [3]*account{&g.run, model, cell}
}

// Outcome counts a trial that has an outcome, of this run or an earlier one,
// and returns what a rule gives up because of it.
func (g *Gate) Outcome(c assay.Cell, level assay.Level, category string) []Stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for _, a := range all {
		a.outcomes++
		if level == assay.FullSuccess {
			a.full++
		}
		if category == assay.CategoryToolCallFormat {
			a.malformed++
		}
	}
	known := len(g.stops)
	g.judgeLocked(assay.Cell{Model: c.Model}, all[1], PerModel)
	g.judgeLocked(c, all[2], PerCell)
	return slices.Clone(g.stops[known:])
}

// judgeLocked asks the rules. What they have given up stays so for the run.
func (g *Gate) judgeLocked(c assay.Cell, a *account, per string) {
	if a.stopped != "" {
		return
	}
	if a.stopped = g.rules.Reason(a.outcomes, a.full, a.malformed, per); a.stopped != "" {
		g.stops = append(g.stops, Stop{Cell: c, Reason: a.stopped, Outcomes: a.outcomes})
	}
}

// Begin counts an episode of a cell that begins, and End one that has ended.
func (g *Gate) Begin(c assay.Cell) { g.count(c, func(a *account) { a.inFlight++ }) }

// End is the counterpart of Begin.
func (g *Gate) End(c assay.Cell) {
	g.count(c, func(a *account) { a.inFlight--; a.episodes++ })
}

// Spend counts what a turn took.
func (g *Gate) Spend(c assay.Cell, u assay.Usage, usd float64) {
	g.count(c, func(a *account) { a.tokens += u.Total(); a.usd += usd })
}

func (g *Gate) count(c assay.Cell, f func(*account)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.accountsLocked(c) {
		f(a)
	}
}

// Skip says why a trial is not to be started, "" if it is. A budget is kept
// for episodes in flight: each is taken to cost as much as those that ended.
// Rule says that a stop rule is the reason, and not a budget.
func (g *Gate) Skip(c assay.Cell) (reason string, rule bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for i, a := range all[1:] {
		if a.stopped == "" {
			continue
		}
		whose := c
		if i == 0 {
			whose = assay.Cell{Model: c.Model}
		}
		for j := range g.stops {
			if g.stops[j].Cell == whose {
				g.stops[j].Skipped++
			}
		}
		return a.stopped, true
	}
	for i, b := range g.budgetList() {
		a := all[i]
		share := 0.0
		if a.episodes > 0 {
			share = float64(a.inFlight+1) / float64(a.episodes)
		}
		if reached(float64(a.tokens), share, float64(b.Tokens)) || reached(a.usd, share, b.USD) {
			return budgetText(i, c, b), false
		}
	}
	return "", false
}

// reached reports whether a budget, 0 for none, is spent, or will be when a
// share of what was spent comes on top.
func reached(spent, share, budget float64) bool {
	return budget > 0 && (spent >= budget || spent*(1+share) > budget)
}

// Allow returns a fault if a budget is spent, so that not even a trial in
// flight may send another request. It stays pending.
func (g *Gate) Allow(c assay.Cell) *assay.Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for i, b := range g.budgetList() {
		if a := all[i]; b.Tokens > 0 && a.tokens >= b.Tokens || b.USD > 0 && a.usd >= b.USD {
			return &assay.Fault{Kind: assay.Interrupted, Detail: budgetText(i, c, b)}
		}
	}
	return nil
}

// budgetList is in the order of accountsLocked.
func (g *Gate) budgetList() [3]Budget {
	return [3]Budget{g.budgets.Budget, g.budgets.PerModel, g.budgets.PerCell}
}

func budgetText(i int, c assay.Cell, b Budget) string {
	whose := [3]string{"the run", c.Model, "a cell of " + c.Model}[i]
	var bounds []string
	if b.USD > 0 {
		bounds = append(bounds, fmt.Sprintf("$%g", b.USD))
	}
	if b.Tokens > 0 {
		bounds = append(bounds, fmt.Sprintf("%d tokens", b.Tokens))
	}
	return fmt.Sprintf("the budget of %s is spent (%s)", whose, strings.Join(bounds, ", "))
}

// Stops returns what the rules have given up, in the order of time.
func (g *Gate) Stops() []Stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Stop{}, g.stops...)
}
