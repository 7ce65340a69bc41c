package report

import (
	"errors"
	"iter"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A GatePlan shows how large a run has to be for the verdict of a gate. It takes the rate and the
// correlation of repeats from all trials of a baseline. If the candidate has trials, it takes from
// them how much luck the trials of a pair share.
type GatePlan struct {
	Baseline string `json:"baseline"`
	// Tasks is the question of the verdict, one of [Questions].
	Tasks  string  `json:"tasks"`
	Margin float64 `json:"margin"`
	// Trials counts the trials of the baseline that the plan comes from.
	Trials int     `json:"trials"`
	Rate   float64 `json:"rate"`
	Within float64 `json:"within"`
	// Unrepeated is true if no task was repeated, so that Within is unknown.
	Unrepeated bool    `json:"unrepeated,omitempty"`
	Luck       float64 `json:"luck"`
	// Sizes are runs of growing size. The first has as many trials as the baseline.
	Sizes []GateSize `json:"sizes"`
	// Advised is the place of the size with the fewest trials at which equal candidates pass in 80
	// of 100 cases, or -1 if there is none.
	Advised int `json:"advised"`
	// Library is how many tasks the baseline's library has, or 0 if that is unknown.
	Library int `json:"library_tasks,omitempty"`
	// CannotLose is true if the baseline succeeds too rarely to lose the margin.
	CannotLose bool `json:"baseline_cannot_lose,omitempty"`
	// Least is the smallest loss that as many tasks or sequences as the baseline's can rule out,
	// and Needed how many can rule out the margin. Both are 0 if there are enough, or if the
	// question is about these tasks.
	Least  float64 `json:"least_loss,omitempty"`
	Needed int     `json:"units_needed,omitempty"`
	// Cluster is the unit that counts as independent, [stat.ByTask] or [stat.BySequence], and
	// Clusters how many of them the baseline has.
	Cluster  string `json:"cluster"`
	Clusters int    `json:"clusters"`
	// Unpriced counts the tokens with an unknown cost, which the dollars leave out.
	Unpriced int `json:"unpriced_tokens,omitempty"`
	// AtLeast is true if some of the costs are unknown, so that the dollars are the least.
	AtLeast bool `json:"usd_at_least,omitempty"`
}

// A GateSize is a size of a run, on each side. Repeats counts the trials of a task under all
// conditions together.
type GateSize struct {
	Tasks   int `json:"tasks"`
	Repeats int `json:"repeats"`
	Trials  int `json:"trials"`
	// USD is the expected cost of the candidate's trials.
	USD float64 `json:"usd"`
	stat.GatePower
}

// The largest sizes that a plan tries.
const (
	maxRepeats = 256
	maxTasks   = 3000
)

// ErrNoTrials means that a side has no settled trial.
var ErrNoTrials = errors.New("there is no settled trial")

// PlanGate plans a gate against a baseline before the candidate has trials. The cluster is one of
// [stat.Clusters].
func PlanGate(
	name, cluster string, terms Terms, attempts iter.Seq2[assay.Attempt, error],
) (*GatePlan, error) {
	side, all, err := gather(name, attempts)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, ErrNoTrials
	}
	return planGate(name, cluster, terms, all, side, nil), nil
}

// ClustersOf returns how many tasks or sequences of a baseline count as independent, and which of
// both, [stat.ByTask] or [stat.BySequence].
func ClustersOf(cluster string, attempts iter.Seq2[assay.Attempt, error]) (int, string, error) {
	_, all, err := gather("", attempts)
	tasks, by := plannedTasks(all, cluster)
	return len(stat.DesignOf(tasks, by == stat.BySequence).Clusters), by, err
}

// Plan plans the next gate of the same candidate and baseline.
func (g *Gate) Plan(terms Terms) *GatePlan {
	terms.Tasks = g.Tasks
	return planGate(g.A.Name, g.Population.Cluster, terms, g.baseline, g.B, &g.pairs)
}

// planGate plans a gate. A trial of the candidate costs as much as a trial of the given side. Pairs
// are trials of both sides, or nil.
func planGate(
	name, cluster string, terms Terms, baseline []settled, costs Side, pairs *stat.GateData,
) *GatePlan {
	tasks, by := plannedTasks(baseline, cluster)
	design, rule := stat.DesignOf(tasks, by == stat.BySequence), terms.Rule()
	if pairs != nil {
		design = design.WithLuckOf(*pairs)
	}
	rate := stat.RateOf(tasks, rule.These)
	p := &GatePlan{
		Baseline: name, Tasks: terms.Tasks, Margin: terms.Margin, Trials: len(baseline),
		Rate: rate.Rate, Within: design.Within, Unrepeated: design.Unrepeated,
		Luck: design.Luck, Unpriced: costs.Unpriced, AtLeast: costs.AtLeast(), Cluster: by,
		Clusters: len(design.Clusters), Advised: -1,
		CannotLose: rate.Lower < terms.Margin,
	}
	needed := stat.UnitsNeeded(terms.Margin, rule.Pass)
	if n := len(design.Clusters); !rule.These && n < needed {
		p.Least, p.Needed = stat.LeastLoss(n, rule.Pass), needed
	}
	add := func(d stat.Design) {
		n := d.Conditions * d.Repeats
		s := GateSize{Tasks: d.Tasks(), Repeats: n, Trials: d.Tasks() * n}
		if len(p.Sizes) == 0 {
			s.Trials = len(baseline) // tasks may have unequal numbers
		}
		s.USD = costs.Each() * float64(s.Trials)
		if !p.CannotLose {
			s.GatePower = d.Power(rule, powerDraws)
		}
		p.Sizes = append(p.Sizes, s)
	}
	add(design)
	if !p.CannotLose {
		if n := design.RepeatsNeeded(rule, maxRepeats); p.Needed == 0 && n > design.Repeats {
			more := design
			more.Repeats = n
			add(more)
		}
		if n := design.TasksNeeded(rule, maxTasks); !rule.These && n > design.Tasks() {
			add(design.WithTasks(n))
		}
	}
	for i, s := range p.Sizes {
		if s.Passing.Low >= gatePower && !p.CannotLose &&
			(p.Advised < 0 || s.Trials < p.Sizes[p.Advised].Trials) {
			p.Advised = i
		}
	}
	return p
}

// gatePower is the share of equal candidates that have to pass.
const gatePower = .8

// plannedTasks counts the successes of a baseline by task and condition, and names the unit that
// counts as independent.
func plannedTasks(baseline []settled, cluster string) (tasks []stat.Task, by string) {
	from := populationOf(baseline, baseline, cluster)
	by = from.describe().Cluster
	return tasksOf(baseline, from), by
}
