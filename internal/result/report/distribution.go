package report

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Curve is a model's success by reliability in one variant.
type Curve struct {
	Model   string       `json:"model"`
	Variant string       `json:"variant"`
	Points  []CurvePoint `json:"points"`
}

// A CurvePoint has a rate and, as its ceiling, the best policy's mean chance.
type CurvePoint struct {
	Reliability float64       `json:"reliability"`
	Done        int           `json:"done"`
	Rate        float64       `json:"rate"`
	Interval    stat.Interval `json:"interval"`
	Best        *float64      `json:"best_possible"`
}

// A Spread describes the effort of a model's outcomes. Quantiles of tokens are exact to 2.5 %.
type Spread struct {
	Model string `json:"model"`
	Done  int    `json:"done"`
	// Turns counts outcomes by their number of replies.
	Turns       map[int]int `json:"turns"`
	TurnQuarts  [3]float64  `json:"turn_quartiles"`
	TokenQuarts [3]float64  `json:"token_quartiles"`
	Token95     float64     `json:"tokens_95"`
	// Tokens counts outcomes by their number of tokens, fewest first.
	Tokens  []TokenCount `json:"-"`
	CostUSD float64      `json:"cost_usd"` // of all attempts
	// Unpriced counts the tokens with an unknown cost, which CostUSD leaves out.
	Unpriced int `json:"unpriced_tokens"`
	// CostPerFull is the dollars of the model's [Standing.Price]. So it covers the attempts at the
	// tasks of the common trials, and CostUSD all attempts, also at trials that are not done.
	CostPerFull *float64 `json:"cost_per_full_success"`
	// The simulated user of all attempts, which the fields above leave out.
	UserCostUSD  float64 `json:"user_cost_usd,omitempty"`
	UserTokens   int     `json:"user_tokens,omitempty"`
	UserUnpriced int     `json:"user_unpriced_tokens,omitempty"`
	// CachedShare is the share of all input that was read from a cache, and ReasoningShare the
	// share of all output that was thinking.
	CachedShare    float64  `json:"cached_share"`
	ReasoningShare float64  `json:"reasoning_share"`
	TokensPer      float64  `json:"tokens_per_trial"`
	CallsPer       float64  `json:"calls_per_trial"`
	WastedShare    float64  `json:"wasted_share"` // of calls
	MistakeShare   float64  `json:"mistake_share"`
	Assisted       Share    `json:"assisted"` // outcomes with a correction
	SecondsPer     float64  `json:"working_s_per_trial"`
	Adherence      float64  `json:"adherence"`
	Given          *float64 `json:"given_adherence"`
	Success        Share    `json:"full_success"`
	// Precision is the mean share of successful calls that brought the task forward. Unwanted
	// and Broken are the outcomes with an unwanted effect, and those in which a required tool
	// worked with the wrong data. BrokenAt is the tool of most of these.
	Precision float64 `json:"precision"`
	Unwanted  Share   `json:"unwanted_effects"`
	Broken    Share   `json:"broken_lineage"`
	BrokenAt  string  `json:"broken_at"`
}

// A Repeat describes how much repeats of a task vary.
type Repeat struct {
	Model  string          `json:"model"`
	Passes []stat.Passes   `json:"passes"`
	Noise  stat.NoiseFloor `json:"noise"`
}

// curves returns a curve for each model and variant if the reliability varies.
func curves(cells []*cell) []Curve {
	out := []Curve{}
	by := variantFactor(cells)
	if len(levels(cells, reliability)) < 2 {
		return out
	}
	rates := func(c assay.Cell) float64 { return c.Reliability }
	byReliability := func(x, y CurvePoint) int { return cmp.Compare(x.Reliability, y.Reliability) }
	for _, p := range pool(cells, byModelAnd(by)) {
		c := Curve{Model: p.Model, Variant: level(p.Cell, by)}
		same := func(o assay.Cell) bool { return o.Model == c.Model && level(o, by) == c.Variant }
		for _, p := range pool(where(cells, same), rates) {
			r := p.row()
			point := CurvePoint{p.Reliability, r.Done, r.FullRate, r.FullInterval, r.Best}
			c.Points = append(c.Points, point)
		}
		slices.SortFunc(c.Points, byReliability)
		out = append(out, c)
	}
	return out
}

func spreads(cells []*cell) []Spread {
	out := []Spread{}
	for _, p := range byModel(cells) {
		n := float64(max(1, p.n(done)))
		calls := float64(max(1, p.calls))
		s := Spread{
			Model: p.Model, Done: p.n(done), CostUSD: p.costUSD, Unpriced: p.usage.UnpricedTokens,
			UserCostUSD: p.userUSD, UserTokens: p.userTokens, UserUnpriced: p.userUnpriced,
			Turns: maps.Collect(maps.All(p.turnCounts)), Tokens: tokenCounts(p.tokenBins),
			TokensPer: float64(p.input+p.output) / n, CallsPer: float64(p.calls) / n,
			WastedShare: float64(p.wasted) / calls, MistakeShare: float64(p.mistakes) / calls,
			Assisted:       p.among(done, assisted),
			CachedShare:    ratio(p.usage.CachedTokens, p.usage.InputTokens),
			ReasoningShare: ratio(p.usage.ReasoningTokens, p.usage.OutputTokens),
			SecondsPer:     float64(p.working) / 1000 / n, Adherence: p.adherence / n,
			Success:   p.among(done, full),
			Precision: p.precision / n, BrokenAt: mostFrequent(p.brokenAt),
			Unwanted: p.among(done, unwanted), Broken: p.among(done, misled),
		}
		for i, q := range []float64{.25, .5, .75} {
			s.TurnQuarts[i] = quantile(p.turnCounts, q, func(n int) float64 { return float64(n) })
			s.TokenQuarts[i] = quantile(p.tokenBins, q, tokensOf)
		}
		s.Token95 = quantile(p.tokenBins, .95, tokensOf)
		if p.givenN > 0 {
			s.Given = new(p.given / float64(p.givenN))
		}
		out = append(out, s)
	}
	return out
}

// priceSpreads copies the prices of successes from the standings, so that a model has one.
func (a *Analysis) priceSpreads() {
	for i := range a.Spreads {
		if s := a.Standing(a.Spreads[i].Model); s != nil && s.Price != nil {
			a.Spreads[i].CostPerFull = s.Price.Dollars
		}
	}
}

// mostFrequent returns the name with the largest count, the first in the alphabet if there are
// several, or "".
func mostFrequent(counts map[string]int) (most string) {
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > counts[most] {
			most = name
		}
	}
	return most
}

func ratio(part, whole int) float64 { return float64(part) / float64(max(1, whole)) }

// quantile returns the smallest value that at least a share of q of the counted values do not
// exceed.
func quantile(counts map[int]int, q float64, value func(int) float64) float64 {
	total := 0
	for _, n := range counts {
		total += n
	}
	due := int(math.Ceil(q * float64(total)))
	for _, v := range slices.Sorted(maps.Keys(counts)) {
		if due -= counts[v]; due <= 0 {
			return value(v)
		}
	}
	return 0
}

// repeats covers models that tried a task more than once in a cell.
func repeats(cells []*cell, lucks map[luck]stat.Group) []Repeat {
	out := []Repeat{}
	for _, m := range modelsOf(cells) {
		tasks := make(map[task]stat.Task)
		most := 0
		for _, c := range ofModel(cells, m) {
			for of, o := range c.tasks {
				t := tasks[of]
				t.Cells = append(t.Cells, stat.Group{Full: int(o[full]), N: int(o[done])})
				tasks[of] = t
				most = max(most, int(o[done]))
			}
		}
		if most < 2 {
			continue
		}
		for _, at := range slices.SortedFunc(maps.Keys(lucks), luck.compare) {
			if at.model == m {
				t := tasks[at.task]
				t.Repeats = append(t.Repeats, lucks[at])
				tasks[at.task] = t
			}
		}
		from := cells[0].from
		var all []stat.Task
		for _, of := range slices.Sorted(maps.Keys(tasks)) {
			t := tasks[of]
			t.Sequence = from.of[of]
			all = append(all, t)
		}
		by := from.bySequence()
		r := Repeat{Model: m, Noise: stat.Noise(all, by), Passes: []stat.Passes{}}
		for k := 1; k <= most; k *= 2 {
			r.Passes = append(r.Passes, stat.PassK(all, k, by))
		}
		if last := r.Passes[len(r.Passes)-1].K; last < most {
			r.Passes = append(r.Passes, stat.PassK(all, most, by))
		}
		out = append(out, r)
	}
	return out
}

// A TokenCount counts outcomes in the same bin of tokens.
type TokenCount struct {
	Tokens   float64
	Outcomes int
}

func tokenCounts(bins map[int]int) (counts []TokenCount) {
	for _, bin := range slices.Sorted(maps.Keys(bins)) {
		counts = append(counts, TokenCount{tokensOf(bin), bins[bin]})
	}
	return counts
}

// BestAt averages the best policy's chance over the outcomes at a reliability. It returns nil if
// that was not measured.
func (a *Analysis) BestAt(reliability string) *float64 {
	sum, n := 0.0, 0
	for _, c := range a.Curves {
		for _, p := range c.Points {
			if p.Best != nil && assay.FormatReliability(p.Reliability) == reliability {
				sum, n = sum+*p.Best*float64(p.Done), n+p.Done
			}
		}
	}
	if n == 0 {
		return nil
	}
	return new(sum / float64(n))
}
