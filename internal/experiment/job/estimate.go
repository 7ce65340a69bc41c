package job

import (
	"context"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/experiment/validate"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
)

// An Estimate is the result of `assay plan`: the size, power, cost and time of an experiment.
type Estimate struct {
	Experiment string `json:"experiment"`
	Cells      int    `json:"cells"`
	Planned    int    `json:"planned"`
	Done       int    `json:"done"`
	Pending    int    `json:"pending"`
	// Library describes the origin of the tasks, and the omissions.
	Library library.Meta `json:"library"`
	// Changed lists the changes of the library since the latest run of the experiment.
	Changed []library.Change `json:"changed,omitempty"`
	// Gaps count the pending trials of each part and model.
	Gaps []Gap `json:"gaps"`
	// NotApplicable counts the tasks that are left out of flawed cells.
	NotApplicable []plan.NotApplicable `json:"not_applicable"`
	Power         []Power              `json:"power"`
	Ceilings      []Ceiling            `json:"ceilings"`
	Unsolvable    Unsolvable           `json:"unsolvable"`
	// Unsound holds the findings of a short check of tasks with own tools.
	Unsound validate.Unsound `json:"unsound"`
	// Notes are those of the [Pools].
	Notes []string `json:"notes,omitempty"`
	Forecast
	// User and Judges are the shares of the models that do not act, as far as attempts have settled.
	User   *AsideForecast  `json:"user,omitempty"`
	Judges []AsideForecast `json:"judges,omitempty"`
	// Cost includes these shares.
	Cost float64 `json:"cost_usd"`
}

// An AsideForecast is what the model behind a simulated user will do, or one that judges. It is
// extrapolated from the attempts so far, because no rehearsal can know what they say.
type AsideForecast struct {
	Model    string  `json:"model"`
	Requests int     `json:"requests"`
	Tokens   int     `json:"tokens"`
	Cost     float64 `json:"cost_usd"`
	Unpriced bool    `json:"unpriced,omitempty"`
	// Settled counts the attempts that the forecast is based on.
	Settled int `json:"settled_attempts"`
}

// aside adds the forecasts for the simulated user and for the judges, as far as something is known.
func (j *Job) aside(ctx context.Context, db *store.DB, out *Estimate) error {
	if db == nil {
		return nil
	}
	users, err := db.Users(ctx, j.Experiment.Name)
	if err != nil {
		return err
	}
	for _, u := range users {
		if u.Model == j.Experiment.User && u.Settled > 0 {
			out.User = new(forecastOf(u, float64(out.Pending)))
			out.Cost += out.User.Cost
		}
	}
	judges, err := db.Judges(ctx, j.Experiment.Name)
	settled := 0
	for _, u := range judges {
		settled += u.Settled
	}
	for _, u := range judges {
		if u.Settled > 0 {
			f := forecastOf(u, float64(out.Pending)*float64(u.Settled)/float64(settled))
			out.Judges = append(out.Judges, f)
			out.Cost += f.Cost
		}
	}
	return err
}

// forecastOf extrapolates what a model has used to more trials.
func forecastOf(u store.AsideUse, trials float64) AsideForecast {
	each := func(sum float64) float64 { return sum / float64(u.Settled) * trials }
	return AsideForecast{
		Model: u.Model, Requests: int(each(float64(u.Requests)) + 0.5),
		Tokens: int(each(float64(u.Tokens)) + 0.5), Cost: assay.RoundUSD(each(u.CostUSD)),
		Unpriced: u.Unpriced > 0, Settled: u.Settled,
	}
}

// A Gap counts the trials of one model in one part of an experiment. A trial that two parts share
// counts in both.
type Gap struct {
	Model   string `json:"model"`
	Part    string `json:"part"`
	Planned int    `json:"planned"`
	Done    int    `json:"done"`
	Pending int    `json:"pending"`
}

// Estimate counts pending trials and forecasts their cost and time. It sends no request and needs
// no keys. The store may be nil if it does not exist yet.
func (j *Job) Estimate(
	ctx context.Context, db *store.DB, env Env, simLatency time.Duration,
) (Estimate, error) {
	out := Estimate{
		Experiment: j.Experiment.Name, Planned: j.Planned(), Library: j.Library.Meta(),
	}
	pools, err := j.Pools(keyless(env), simLatency)
	if err != nil {
		return out, err
	}
	defer pools.Close()
	out.Notes = pools.Notes
	var settled store.Set
	if db != nil {
		if err := pools.Recall(ctx, db); err != nil {
			return out, err
		}
		if settled, err = db.Settled(ctx); err != nil {
			return out, err
		}
		if out.Changed, err = j.Changes(ctx, db); err != nil {
			return out, err
		}
	}

	pending := j.countPending(&out, settled)
	sequences, err := j.sequences(ctx)
	if err != nil {
		return out, err
	}
	out.Power, out.Unsolvable = j.power(sequences), j.unsolvable(sequences)
	out.Ceilings = j.ceilings(sequences)
	if out.Unsound, err = j.QuickUnsound(ctx); err != nil {
		return out, err
	}
	out.NotApplicable = append(out.NotApplicable, j.Plan.NotApplicable()...)
	if out.Forecast, err = j.Forecast(ctx, db, pools, pending, simLatency); err != nil {
		return out, err
	}
	for _, m := range out.Models {
		out.Cost += m.Cost
	}
	return out, j.aside(ctx, db, &out)
}

// keyless makes up a value for every variable that is not set.
func keyless(env Env) Env {
	return func(name string) (string, bool) {
		if v, ok := env(name); ok && v != "" {
			return v, true
		}
		return "none", true
	}
}

// countPending fills in the counts of cells, trials and gaps, and returns the number of pending
// trials of each model.
func (j *Job) countPending(out *Estimate, settled store.Set) map[string]int {
	pending := make(map[string]int)
	parts := j.Plan.Parts()
	for _, m := range j.Experiment.Models {
		done := make(map[assay.Cell]int)
		if settled.Len() > 0 { // otherwise there is no need to compute a million IDs
			for t := range j.Plan.Trials(m) {
				if settled.Has(t.ID) {
					done[t.Cell]++
				}
			}
		}

		pending[m] = j.Plan.Planned(m)
		gaps := make([]Gap, len(parts))
		for cell, planned := range j.Plan.Cells(m) {
			out.Cells++
			out.Done += done[cell]
			pending[m] -= done[cell]
			for i, part := range parts {
				if part.Has(cell) {
					gaps[i].Planned += planned
					gaps[i].Done += done[cell]
				}
			}
		}
		for i, g := range gaps {
			g.Model, g.Part, g.Pending = m, parts[i].Name, g.Planned-g.Done
			out.Gaps = append(out.Gaps, g)
		}
	}
	out.Pending = out.Planned - out.Done
	return pending
}
