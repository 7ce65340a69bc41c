package job

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
)

// A Stopper decides whether a trial is still worth running: whether the budgets have room for it,
// and whether a stop rule has stopped its cell or its model. It counts the spending of a run and how
// its trials end. It does not end trials: the engine asks before each trial, and providers ask
// before each request. It is safe for concurrent use.
type Stopper struct {
	budgets plan.Budgets
	rules   plan.StopRules

	mu     sync.Mutex // guards the fields below
	run    account
	models map[string]*account
	cells  map[assay.Cell]*account
	stops  []Stop
}

// An account counts the costs and outcomes of a run, a model or a cell.
type account struct {
	tokens   int
	usd      float64
	lost     assay.Lost // the part of both that requests may have cost whose usage is unknown
	inFlight int
	episodes int  // episodes that have ended
	stops    bool // its budget has stopped a trial

	outcomes, full, malformed int
	stopped                   string // the reason, or "" if no rule is met
}

// A Stop is a cell or a model that a stop rule has stopped. For a model, all fields of the cell
// except Model are empty.
type Stop struct {
	assay.Cell
	Reason string `json:"reason"`
	// Outcomes is the number of outcomes when the rule was met.
	Outcomes int `json:"outcomes"`
	// Skipped counts the trials that the stop skips; see [Tally.Stops].
	Skipped int `json:"skipped"`
}

func (s Stop) String() string {
	name := s.Model
	if s.Cell != (assay.Cell{Model: s.Model}) {
		name = cellName(s.Cell)
	}
	return fmt.Sprintf("%s stopped early: %s", name, s.Reason)
}

func cellName(c assay.Cell) string {
	words := []string{
		c.Model, c.Variant, c.Severity, c.Difficulty, c.TaskType, assay.FormatReliability(c.Reliability),
	}
	return strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " ")
}

// NewStopper returns a stopper without any trials.
func NewStopper(budgets plan.Budgets, rules plan.StopRules) *Stopper {
	return &Stopper{
		budgets: budgets, rules: rules,
		models: make(map[string]*account), cells: make(map[assay.Cell]*account),
	}
}

// Budgets returns the budgets of the run.
func (g *Stopper) Budgets() plan.Budgets { return g.budgets }

// accountsLocked returns the accounts of the run, of the cell's model and of the cell.
func (g *Stopper) accountsLocked(c assay.Cell) [3]*account {
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

// Outcome counts an outcome of this run or of an earlier one. It returns the stops that this
// outcome causes.
func (g *Stopper) Outcome(c assay.Cell, level assay.Level, callless bool) []Stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for _, a := range all {
		a.outcomes++
		if level == assay.FullSuccess {
			a.full++
		}
		if callless {
			a.malformed++
		}
	}
	known := len(g.stops)
	g.judgeLocked(assay.Cell{Model: c.Model}, all[1], plan.PerModel)
	g.judgeLocked(c, all[2], plan.PerCell)
	return slices.Clone(g.stops[known:])
}

// judgeLocked checks the rules for an account. A stop lasts until the end of the run.
func (g *Stopper) judgeLocked(c assay.Cell, a *account, per string) {
	if a.stopped != "" {
		return
	}
	if a.stopped = g.rules.Reason(a.outcomes, a.full, a.malformed, per); a.stopped != "" {
		g.stops = append(g.stops, Stop{Cell: c, Reason: a.stopped, Outcomes: a.outcomes})
	}
}

// Begin counts an episode that begins. Every Begin needs an [Stopper.End].
func (g *Stopper) Begin(c assay.Cell) { g.count(c, func(a *account) { a.inFlight++ }) }

// End counts an episode that has ended.
func (g *Stopper) End(c assay.Cell) {
	g.count(c, func(a *account) { a.inFlight--; a.episodes++ })
}

// Spend counts the tokens and dollars of a request, and what it may have cost if it was lost.
func (g *Stopper) Spend(c assay.Cell, u assay.Usage, usd float64, lost assay.Lost) {
	g.count(c, func(a *account) {
		a.tokens += u.Total() + lost.Tokens
		a.usd = assay.RoundUSD(a.usd + usd + lost.USD)
		a.lost = a.lost.Add(lost)
	})
}

func (g *Stopper) count(c assay.Cell, f func(*account)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.accountsLocked(c) {
		f(a)
	}
}

// Skip returns the reason why a trial must not start, or "" if it may start. The reason comes
// from a stop rule if rule is true, and from a budget otherwise.
//
// Skip keeps part of a budget for the episodes in flight. It assumes that each of them costs as
// much as the mean of the ended ones.
func (g *Stopper) Skip(c assay.Cell) (reason string, rule bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for _, a := range all[1:] {
		if a.stopped != "" {
			return a.stopped, true
		}
	}

	for i, b := range g.budgetList() {
		a := all[i]
		share := 0.0
		if a.episodes > 0 {
			share = float64(a.inFlight+1) / float64(a.episodes)
		}
		if exceeds(float64(a.tokens), share, float64(b.Tokens)) || exceeds(a.usd, share, b.USD) {
			a.stops = true
			return budgetText(i, c, b), false
		}
	}
	return "", false
}

// exceeds reports whether a budget is spent already, or will be exceeded when the given share of
// the costs so far is added. A budget of 0 has no bound.
func exceeds(spent, share, budget float64) bool {
	return budget > 0 && (spent >= budget || spent*(1+share) > budget)
}

// Allow returns a fault if a budget is spent. A trial in flight must not send another request
// then; it is interrupted and stays pending.
func (g *Stopper) Allow(c assay.Cell) *assay.Fault {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for i, b := range g.budgetList() {
		if all[i].spent(b) {
			return &assay.Fault{Kind: assay.Interrupted, Detail: budgetText(i, c, b)}
		}
	}
	return nil
}

// spent reports whether a budget is spent.
func (a *account) spent(b plan.Budget) bool {
	return b.Tokens > 0 && a.tokens >= b.Tokens || b.USD > 0 && a.usd >= b.USD
}

// Interrupted notes that an episode was interrupted. If a budget is spent, that is the reason.
func (g *Stopper) Interrupted(c assay.Cell) {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for i, b := range g.budgetList() {
		if all[i].spent(b) {
			all[i].stops = true
			return
		}
	}
}

// budgetList returns the budgets in the order of accountsLocked.
func (g *Stopper) budgetList() [3]plan.Budget {
	return [3]plan.Budget{g.budgets.Budget, g.budgets.PerModel, g.budgets.PerCell}
}

func budgetText(i int, c assay.Cell, b plan.Budget) string {
	scope := [3]string{"the run", c.Model, "a cell of " + c.Model}[i]
	var bounds []string
	if b.USD > 0 {
		bounds = append(bounds, fmt.Sprintf("$%g", b.USD))
	}
	if b.Tokens > 0 {
		bounds = append(bounds, fmt.Sprintf("%d tokens", b.Tokens))
	}
	return fmt.Sprintf("the budget of %s is spent (%s)", scope, strings.Join(bounds, ", "))
}

// Exhausted returns the budgets that have stopped trials, with what is spent of them by now.
func (g *Stopper) Exhausted() []Exhausted {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []Exhausted
	add := func(of string, a *account, b plan.Budget, reason string) {
		if a.stops {
			all = append(all, Exhausted{
				Of: of, Reason: reason, Spent: spentText(a, b),
				NoRoom: !a.spent(b),
			})
		}
	}
	add("the run", &g.run, g.budgets.Budget, budgetText(0, assay.Cell{}, g.budgets.Budget))
	for _, model := range slices.Sorted(maps.Keys(g.models)) {
		b := g.budgets.PerModel
		add(model, g.models[model], b, budgetText(1, assay.Cell{Model: model}, b))
	}
	first := len(all)
	for c, a := range g.cells {
		add(cellName(c), a, g.budgets.PerCell, budgetText(2, c, g.budgets.PerCell))
	}
	slices.SortFunc(all[first:], func(a, b Exhausted) int { return strings.Compare(a.Of, b.Of) })
	return all
}

// An Exhausted is a budget that has stopped trials.
type Exhausted struct {
	// Of is "the run", a model or a cell.
	Of string `json:"of"`
	// Reason is why its trials did not start.
	Reason string `json:"reason"`
	// Spent has dollars and tokens: those that are known, and those that lost replies may have cost.
	Spent string `json:"spent"`
	// NoRoom is true if the rest of the budget would probably not suffice for another trial.
	NoRoom bool `json:"no_room,omitempty"`
}

func (e Exhausted) String() string {
	how := "is spent"
	if e.NoRoom {
		how = "has no room for another trial"
	}
	return fmt.Sprintf("the budget of %s %s: %s", e.Of, how, e.Spent)
}

// spentText says what is spent of a budget, so that its parts add up.
func spentText(a *account, b plan.Budget) string {
	var parts []string
	if b.USD > 0 {
		parts = append(parts, a.dollarsOf(b.USD))
	}
	if b.Tokens > 0 {
		parts = append(parts, a.tokensOf(b.Tokens))
	}
	return strings.Join(parts, ", ")
}

func (a *account) dollarsOf(budget float64) string {
	digits := 2
	if budget < 1 {
		digits = 4
	}
	return a.partsOf(fmt.Sprintf("$%.*f", digits, a.usd-a.lost.USD), fmt.Sprintf("$%.*f", digits, a.lost.USD),
		fmt.Sprintf("$%g", budget))
}

func (a *account) tokensOf(budget int) string {
	return a.partsOf(fmt.Sprint(a.tokens-a.lost.Tokens), fmt.Sprint(a.lost.Tokens),
		fmt.Sprintf("%d tokens", budget))
}

func (a *account) partsOf(known, lost, budget string) string {
	if a.lost.Requests == 0 {
		return known + " of " + budget
	}
	return fmt.Sprintf("%s plus up to %s for %s whose replies were lost, of %s", known, lost,
		assay.Counted(a.lost.Requests, "request"), budget)
}

// Short returns how many of the pending trials the budget of the run has no room for, if their mean
// cost is that of the trials which the run has done, and what is spent of the budget.
func (g *Stopper) Short(ran, pending int) (short int, spent string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	b, room := g.budgets.Budget, float64(pending)
	lower := func(used, of float64, text string) {
		if of == 0 || used == 0 {
			return
		}
		if n := max(0, (of-used)/(used/float64(ran))); n < room {
			room, spent = n, text
		}
	}
	lower(g.run.usd, b.USD, g.run.dollarsOf(b.USD))
	lower(float64(g.run.tokens), float64(b.Tokens), g.run.tokensOf(b.Tokens))
	return pending - int(room), spent
}

// stopOf returns the stop that skips the trials of a cell, or nil. That of its model comes first.
func (g *Stopper) stopOf(c assay.Cell) *Stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, of := range [2]assay.Cell{{Model: c.Model}, c} {
		for i := range g.stops {
			if g.stops[i].Cell == of {
				return &g.stops[i]
			}
		}
	}
	return nil
}

// Stops returns all stops, oldest first.
func (g *Stopper) Stops() []Stop {
	g.mu.Lock()
	defer g.mu.Unlock()
	return append([]Stop{}, g.stops...)
}
