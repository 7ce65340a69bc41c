package audit

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/store"
)

// Priced sums up the attempts whose costs [Price] computed.
type Priced struct {
	File   string `json:"file"`
	SHA256 string `json:"sha256"`
	// Attempts counts those with a price in the list, and Changed those of them whose costs differ.
	Attempts int           `json:"attempts"`
	Changed  int           `json:"changed"`
	Models   []PricedModel `json:"models"`
	// JudgesUSD is what models have cost as judges of tasks, which stays as it was.
	JudgesUSD float64 `json:"judges_usd"`
}

// A PricedModel sums up the attempts at a model, and what it has done as a simulated user, before and
// after.
type PricedModel struct {
	Model string `json:"model"`
	// Listed is false if the list has no price for any of it.
	Listed   bool       `json:"listed"`
	Attempts int        `json:"attempts"`
	Before   assay.Bill `json:"before"`
	After    assay.Bill `json:"after"`
}

// A pricer computes costs by a price list.
type pricer struct {
	list *plan.Prices
	runs map[assay.RunID]*pricedRun
	// now has the latest costs of the attempts whose costs were computed before.
	now map[store.Key]store.Dollars
	sum Priced
	of  map[string]*PricedModel
}

// A pricedRun is what a run knew of prices.
type pricedRun struct {
	known  bool // false if that is lost
	spec   plan.Experiment
	prices map[string]map[string]lane.Price // by model and lane, without lanes that had none
}

// Price computes the costs of all attempts in a store again by a price list, from the tokens of each reply
// and the lane that gave it. It stores the costs that differ, unless dry is true. Models and lanes that
// the list does not name keep the prices of their run. Program is the version of this program, which is
// stored with the costs.
func Price(
	ctx context.Context, db *store.DB, list *plan.Prices, program string, dry bool,
) (sum Priced, err error) {
	p := &pricer{
		list: list, now: make(map[store.Key]store.Dollars), of: make(map[string]*PricedModel),
		sum: Priced{File: list.File, SHA256: list.SHA256, Models: []PricedModel{}},
	}
	if err := p.read(ctx, db); err != nil {
		return sum, err
	}
	var batch []store.Cost
	at := time.Now().UTC()
	save := func() error {
		if dry {
			batch = nil
		}
		err := db.Price(ctx, batch)
		batch = batch[:0]
		return err
	}
	for s, err := range db.Transcripts(ctx, store.Filter{All: true, AsSaved: true}) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return sum, err
		}
		c, changed := p.price(&s.Attempt, s.Transcript)
		if !changed {
			continue
		}
		c.At, c.Program, c.File, c.SHA256 = at, program, list.File, list.SHA256
		if batch = append(batch, c); len(batch) >= RescoreBatch {
			if err := save(); err != nil {
				return sum, err
			}
		}
	}
	for _, model := range slices.Sorted(maps.Keys(p.of)) {
		p.sum.Models = append(p.sum.Models, *p.of[model])
	}
	return p.sum, save()
}

// read reads what runs knew of prices and what costs are now, and refuses a list with a name that is not
// in the store.
func (p *pricer) read(ctx context.Context, db *store.DB) error {
	plans, err := db.Plans(ctx)
	if err != nil {
		return err
	}
	names := make(map[string]bool)
	addLane := func(lane string) {
		names[lane] = true
		if parts := strings.SplitN(lane, "/", 3); len(parts) == 3 { // provider/key/deployment
			names[parts[2]] = true
		}
	}
	p.runs = make(map[assay.RunID]*pricedRun, len(plans))
	for id, e := range plans {
		r := new(pricedRun)
		if err := json.Unmarshal(e.Spec, &r.spec); err == nil && e.Prices != nil {
			r.known = json.Unmarshal(e.Prices, &r.prices) == nil
		}
		p.runs[id] = r
		for _, lanes := range r.prices {
			for name, price := range lanes {
				price.Stated = true
				lanes[name] = price
				addLane(name)
			}
		}
	}
	for a, err := range db.Attempts(ctx, store.Filter{All: true}) {
		if err != nil {
			return err
		}
		addLane(a.Lane)
		names[p.run(&a).base(a.Model)] = true
		names[p.run(&a).base(a.UserModel)] = true
		if names[a.JudgedBy] = true; a.JudgeRequests > 0 {
			p.sum.JudgesUSD = assay.RoundUSD(p.sum.JudgesUSD + a.JudgeCostUSD)
		}
		if a.PriceList != "" {
			p.now[store.Key{Trial: a.ID, Number: a.Number}] = store.DollarsOf(&a)
		}
	}
	delete(names, "")
	if p.list.CheckNames(slices.Collect(maps.Keys(names))) == nil {
		return nil
	}
	// A lane without a price that gave no attempt its last reply is in transcripts only.
	for s, err := range db.Transcripts(ctx, store.Filter{All: true, AsSaved: true}) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return err
		}
		if s.Transcript != nil {
			for _, turn := range s.Transcript.Turns {
				addLane(turn.Lane)
			}
		}
	}
	return p.list.CheckNames(slices.Sorted(maps.Keys(names)))
}

func (p *pricer) run(a *assay.Attempt) *pricedRun {
	if r := p.runs[a.Run]; r != nil {
		return r
	}
	return new(pricedRun)
}

// base returns the name of a model in price lists: that behind an agent, without the label of a level.
func (r *pricedRun) base(model string) string {
	if !r.known {
		model, _, _ = strings.Cut(model, "@")
	}
	return r.spec.Served(model)
}

// A rate is the prices of tokens in the run of an attempt, and now.
type rate struct {
	before, after lane.Price
	listed        bool
}

// rate returns the rate of a model at a lane.
func (p *pricer) rate(r *pricedRun, at, model string) (x rate) {
	x.before = r.prices[model][at]
	if x.after, x.listed = p.list.At(at, r.base(model)); !x.listed {
		x.after = x.before
	}
	return x
}

// userRate returns the rate of a simulated user's model. Which of its lanes gave a reply is not stored, so
// there is none if they differ.
func (p *pricer) userRate(r *pricedRun, model string) (x rate, ok bool) {
	x, ok = p.rate(r, "", model), true
	first := true
	for at := range r.prices[model] {
		one := p.rate(r, at, model)
		ok = ok && (first || reflect.DeepEqual(one, x))
		x, first = one, false
	}
	return x, ok
}

// dollars returns what changes in the cost of a usage, and in its tokens of unknown cost.
func (x rate) dollars(u assay.Usage) (usd float64, unpriced int) {
	switch {
	case x.after.Free():
		unpriced = -u.UnpricedTokens
	case x.before.Unknown() && !x.after.Unknown(): // of requests whose usage is not reported, nothing is known still
		unpriced = -min(u.Total(), u.UnpricedTokens)
	}
	return x.after.Of(u) - x.before.Of(u), unpriced
}

// cached returns a usage of which only input, output and cost are stored, with the tokens from a cache
// that explain the cost.
func (x rate) cached(u assay.Usage, usd float64) assay.Usage {
	p := x.before
	if p.Cached == nil || p.CacheWrite != nil || *p.Cached >= p.Input {
		return u
	}
	n := math.Round((p.Of(u) - usd) * 1e6 / (p.Input - *p.Cached))
	u.CachedTokens = int(max(0, min(n, float64(u.InputTokens))))
	return u
}

// A share is a part of an attempt's tokens, and the lane that used it.
type share struct {
	lane string
	assay.Usage
}

// shares returns the tokens of each reply, and the rest, which has no record of its own, such as those of
// requests that failed, as those of the last lane.
func shares(a *assay.Attempt, t *assay.Transcript) (all []share) {
	rest := a.Usage()
	if t != nil {
		for _, turn := range t.Turns {
			all = append(all, share{turn.Lane, turn.Usage})
			rest = rest.Less(turn.Usage)
		}
	}
	if rest.Negative() { // the replies are not all on the attempt's own bill
		return []share{{a.Lane, a.Usage()}}
	}
	return append(all, share{a.Lane, rest})
}

// price computes the costs of an attempt, which is as it was saved, and reports whether they differ from
// its latest ones.
func (p *pricer) price(a *assay.Attempt, t *assay.Transcript) (c store.Cost, changed bool) {
	c.Key = store.Key{Trial: a.ID, Number: a.Number}
	run, saved := p.run(a), store.DollarsOf(a)
	now, ok := p.now[c.Key]
	if !ok {
		now = saved
	}
	used := make(map[string]lane.Price)
	c.Dollars, ok = p.own(run, a, t, used)
	user, userOK := p.user(run, a, used)
	if ok || userOK {
		p.sum.Attempts++
	}
	if !ok {
		c.USD, c.Unpriced, c.ConfidenceUSD = now.USD, now.Unpriced, now.ConfidenceUSD
	}
	if c.UserUSD, c.UserUnpriced = user.UserUSD, user.UserUnpriced; !userOK {
		c.UserUSD, c.UserUnpriced = now.UserUSD, now.UserUnpriced
	}
	before := assay.Bill{Tokens: a.Total(), USD: now.USD, Unpriced: now.Unpriced, Unmetered: a.Bill().Unmetered}
	after := before
	after.USD, after.Unpriced = c.USD, c.Unpriced
	p.count(run.base(a.Model), ok, before, after)
	if a.UserRequests > 0 {
		n := a.OfUser().Total()
		p.count(run.base(a.UserModel), userOK, assay.Bill{Tokens: n, USD: now.UserUSD, Unpriced: now.UserUnpriced},
			assay.Bill{Tokens: n, USD: c.UserUSD, Unpriced: c.UserUnpriced})
	}
	if c.Dollars == now {
		return c, false
	}
	p.sum.Changed++
	prices, err := json.Marshal(used)
	if err != nil {
		panic("audit: prices: " + err.Error())
	}
	c.Prices = prices
	return c, true
}

// own computes what the agent of an attempt cost. It reports whether the list has a price for any of it,
// and adds the prices to used.
func (p *pricer) own(
	run *pricedRun, a *assay.Attempt, t *assay.Transcript, used map[string]lane.Price,
) (d store.Dollars, listed bool) {
	d = store.DollarsOf(a)
	if !run.known { // what it cost then says nothing of prices
		d.USD, d.Unpriced, d.ConfidenceUSD = 0, a.UnpricedTokens, 0
	}
	complete := true
	for _, s := range shares(a, t) {
		if s.Usage == (assay.Usage{}) {
			continue
		}
		x := p.rate(run, s.lane, a.Model)
		usd, unpriced := x.dollars(s.Usage)
		d.USD, d.Unpriced = max(0, assay.RoundUSD(d.USD+usd)), max(0, d.Unpriced+unpriced)
		listed, complete = listed || x.listed, complete && (x.listed || run.known)
		if !x.after.Unknown() {
			used[s.lane] = x.after
		}
	}
	if u := (assay.Usage{InputTokens: a.ConfidenceInputTokens, OutputTokens: a.ConfidenceOutputTokens}); u.Total() > 0 {
		x := p.rate(run, a.Lane, a.Model)
		usd, _ := x.dollars(x.cached(u, a.ConfidenceCostUSD))
		d.ConfidenceUSD = max(0, assay.RoundUSD(d.ConfidenceUSD+usd))
	}
	return d, listed && complete
}

// user is own for the model behind a simulated user.
func (p *pricer) user(
	run *pricedRun, a *assay.Attempt, used map[string]lane.Price,
) (d store.Dollars, listed bool) {
	if a.UserRequests == 0 {
		return d, false
	}
	x, ok := p.userRate(run, a.UserModel)
	if !ok || !x.listed {
		return d, false
	}
	d.UserUSD, d.UserUnpriced = a.UserCostUSD, a.UserUnpricedTokens
	if !run.known {
		d.UserUSD = 0
	}
	usd, unpriced := x.dollars(x.cached(a.OfUser().Usage(), a.UserCostUSD))
	used[a.UserModel] = x.after
	d.UserUSD, d.UserUnpriced = max(0, assay.RoundUSD(d.UserUSD+usd)), max(0, d.UserUnpriced+unpriced)
	return d, true
}

// count adds the bills of an attempt, before and after, to those of a model.
func (p *pricer) count(model string, listed bool, before, after assay.Bill) {
	m := p.of[model]
	if m == nil {
		m = &PricedModel{Model: model}
		p.of[model] = m
	}
	m.Listed = m.Listed || listed
	m.Attempts++
	m.Before.Add(before)
	m.After.Add(after)
}
