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

	mu      sync.Mutex // guards the fields below
	run     account
	models  map[string]*account
	cells   map[assay.Cell]*account
	flights map[assay.TrialID]*flight
	stops   []Stop
}

// An account counts the costs and outcomes of a run, a model or a cell.
type account struct {
	tokens   int
	usd      float64
	lost     assay.Lost // the part of both that requests may have cost whose usage is unknown
	inFlight int
	began    int  // trials
	stops    bool // its budget has stopped a trial

	// known is what counts trials of a model have cost, of which proven have settled: none or all. If all, it
	// includes what trials have cost that were cut off, or faulted in this run. Those that a budget cuts off are
	// the dear ones more often, so the mean of the others alone would be too low. With all costs over the number
	// of trials that have settled, it is the maximum-likelihood estimate from censored costs, if these are
	// exponential (Lawless, Statistical Models and Methods for Lifetime Data, 2nd ed., 4.1).
	known          cost
	counts, proven int

	outcomes, full, malformed int
	stopped                   string // the reason, or "" if no rule is met
}

// A cost is in tokens and dollars.
type cost struct{ tokens, usd float64 }

// A flight is a trial in flight with its cost so far.
type flight struct {
	cell  assay.Cell
	spent cost
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
		flights: make(map[assay.TrialID]*flight),
	}
}

// Continue makes the budgets those of an earlier run, too: what that one has spent counts.
func (g *Stopper) Continue(earlier *Stopper) {
	earlier.mu.Lock()
	defer earlier.mu.Unlock()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run.spentBefore(&earlier.run)
	for model, a := range earlier.models {
		g.accountsLocked(assay.Cell{Model: model})[1].spentBefore(a)
	}
	for c, a := range earlier.cells {
		g.accountsLocked(c)[2].spentBefore(a)
	}
}

func (a *account) spentBefore(earlier *account) {
	a.tokens, a.usd, a.lost, a.began = earlier.tokens, earlier.usd, earlier.lost, earlier.began
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

// Expect sets what a trial of a model probably costs, as so many earlier trials have shown with those that were
// cut off, or a forecast if there are none.
func (g *Stopper) Expect(model string, earlier, tokens int, usd float64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.accountsLocked(assay.Cell{Model: model})[1]
	a.counts, a.proven = max(1, earlier), earlier
	a.known = cost{float64(tokens), usd}.times(float64(a.counts))
}

// Begin counts a trial that begins. Every Begin needs an [Stopper.End].
func (g *Stopper) Begin(t *assay.Trial) {
	g.count(t.Cell, func(a *account) { a.inFlight++; a.began++ })
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flights[t.ID] = &flight{cell: t.Cell}
}

// End counts a trial that has ended. The attempt may be nil.
func (g *Stopper) End(t *assay.Trial, a *assay.Attempt) {
	g.count(t.Cell, func(a *account) { a.inFlight-- })
	g.mu.Lock()
	defer g.mu.Unlock()
	f, m := g.flights[t.ID], g.accountsLocked(t.Cell)[1]
	delete(g.flights, t.ID)
	switch {
	case a != nil && a.Settles():
		if m.proven == 0 { // the forecast has served
			m.counts, m.known = 0, cost{}
		}
		m.counts, m.proven = m.counts+1, m.proven+1
		m.known.tokens += float64(a.Whole().Total())
		m.known.usd += a.Whole().CostUSD
	case f != nil && m.proven > 0:
		m.known.tokens += f.spent.tokens
		m.known.usd += f.spent.usd
	}
}

// Spend counts the tokens and dollars of a request, and what it may have cost if it was lost.
func (g *Stopper) Spend(t *assay.Trial, u assay.Usage, usd float64, lost assay.Lost) {
	tokens, dollars := u.Total()+lost.Tokens, usd+lost.USD
	g.count(t.Cell, func(a *account) {
		a.tokens += tokens
		a.usd = assay.RoundUSD(a.usd + dollars)
		a.lost = a.lost.Add(lost)
	})
	g.mu.Lock()
	defer g.mu.Unlock()
	if f := g.flights[t.ID]; f != nil {
		f.spent.tokens += float64(tokens)
		f.spent.usd += dollars
	}
}

func (g *Stopper) count(c assay.Cell, f func(*account)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.accountsLocked(c) {
		f(a)
	}
}

// Skip returns the reason why a trial must not start, or "" if it may start or [Stopper.Waits]. The
// reason comes from a stop rule if rule is true, and from a budget otherwise.
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
		if a := all[i]; a.spent(b) || a.inFlight == 0 && !g.roomLocked(i, b, c) {
			a.stops = true
			return budgetText(i, c, b), false
		}
	}
	return "", false
}

// Waits reports whether a trial should not start before others have ended, because these will
// probably need what is left of a budget.
func (g *Stopper) Waits(c assay.Cell) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.accountsLocked(c)
	for i, b := range g.budgetList() {
		if all[i].inFlight > 0 && !g.roomLocked(i, b, c) {
			return true
		}
	}
	return false
}

// roomLocked reports whether the i-th budget has room for another trial besides those in flight. It
// always has room for the first one.
func (g *Stopper) roomLocked(i int, b plan.Budget, c assay.Cell) bool {
	a := g.accountsLocked(c)[i]
	if b == (plan.Budget{}) || a.began == 0 {
		return true
	}
	need := g.models[c.Model].expected()
	if a.inFlight > 0 {
		need = need.times(g.models[c.Model].caution())
		for _, f := range g.flights {
			if i == 0 || f.cell == c || i == 1 && f.cell.Model == c.Model {
				m := g.models[f.cell.Model]
				rest := m.expected().times(m.caution())
				need.tokens += max(0, rest.tokens-f.spent.tokens)
				need.usd += max(0, rest.usd-f.spent.usd)
			}
		}
	}
	return (b.Tokens == 0 || float64(a.tokens)+need.tokens <= float64(b.Tokens)) &&
		(b.USD == 0 || assay.RoundUSD(a.usd+need.usd) <= b.USD)
}

// expected returns what a trial of a model costs.
func (a *account) expected() cost { return a.known.times(1 / float64(max(1, a.counts))) }

// caution is how many times as much as expected a trial may cost. A forecast may be wrong by a factor
// of four; the more trials have settled, the better their mean is known.
func (a *account) caution() float64 { return 1 + 3/float64(1+a.proven) }

func (c cost) times(x float64) cost { return cost{c.tokens * x, c.usd * x} }

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
