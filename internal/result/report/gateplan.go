package report

import (
	"errors"
	"iter"
	"math"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A GatePlan shows how large a run has to be for the verdict of a gate. It takes the rate and the
// correlation of repeats from a baseline. If the candidate has trials, it takes from them how much
// the tasks' differences vary. Otherwise the candidate is taken to find the same tasks hard.
type GatePlan struct {
	Baseline string `json:"baseline"`
	// Tasks is the question of the verdict, one of [Questions].
	Tasks  string  `json:"tasks"`
	Margin float64 `json:"margin"`
	// Trials counts the trials of the baseline that the plan comes from.
	Trials int     `json:"trials"`
	Rate   float64 `json:"rate"`
	Within float64 `json:"within"`
	// Apart is the standard deviation of the tasks' true differences, beyond chance.
	Apart float64 `json:"apart"`
	// Sizes are runs of growing size. The first has as many trials as the baseline, and the last
	// is the smallest that finds a loss of the margin in 80 of 100 cases, if there is one.
	Sizes []GateSize `json:"sizes"`
	// Enough is whether the last size does. Otherwise it has too few tasks for this margin.
	Enough bool `json:"enough"`
	// Unpriced counts the tokens with an unknown cost, which the dollars leave out.
	Unpriced int `json:"unpriced_tokens,omitempty"`
	// TasksNeeded is how many tasks with the baseline's repeats find such a loss, if Enough is
	// false. It is 0 if the baseline's rate is below the margin, because such a loss is impossible.
	TasksNeeded int `json:"tasks_needed,omitempty"`
}

// A GateSize is a size of a run, on each side.
type GateSize struct {
	Tasks   int `json:"tasks"`
	Repeats int `json:"repeats"`
	Trials  int `json:"trials"`
	// USD is the expected cost of the candidate's trials.
	USD float64 `json:"usd"`
	// Power and Passing have the same meaning as in [Gate], at the margin. Found is the smallest
	// loss that 80 of 100 runs find; 1 if there is none.
	Power   float64 `json:"power"`
	Passing float64 `json:"passing"`
	Found   float64 `json:"found"`
}

// gatePower is the share of runs that have to find a loss of the margin.
const gatePower = .8

// mostRepeats limits the repeats that a plan tries. If the tasks are all that matter, repeats
// always decide it at last.
var mostRepeats = map[string]int{These: 1 << 16, Similar: 200}

// ErrNoTrials means that a side has no settled trial.
var ErrNoTrials = errors.New("there is no settled trial")

// PlanGate plans a gate against a baseline before the candidate has trials. The cluster is one of
// [stat.Clusters], and the question one of [Questions].
func PlanGate(
	name, cluster, question string, margin float64, attempts iter.Seq2[assay.Attempt, error],
) (*GatePlan, error) {
	all, err := gather(attempts)
	switch {
	case err != nil:
		return nil, err
	case len(all) == 0:
		return nil, ErrNoTrials
	}
	itself := newComparison()
	itself.pair(all, all, [len(matched)]bool{}, cluster)
	return itself.all.planGate(name, question, margin, sideOf(name, all)), nil
}

// Plan plans the next gate of the same candidate and baseline.
func (g *Gate) Plan() *GatePlan {
	return g.all.planGate(g.A.Name, g.Tasks, g.Similar.Test.Margin, g.B)
}

// A powered size of a run predicts the shares of its verdicts; see [stat.Size].
type powered interface {
	Passes(margin float64) float64
	Fails(drop float64) float64
}

// planGate plans a gate. A trial of the candidate costs as much as a trial of the given side.
func (s commonTasks) planGate(name, question string, margin float64, costs Side) *GatePlan {
	size, trials := stat.SizeOf(s.tasks, s.bySequence), s.trials()
	p := &GatePlan{
		Baseline: name, Tasks: question, Margin: margin, Trials: trials,
		Unpriced: costs.Unpriced,
		Rate:     size.Rate, Within: size.Within, Apart: math.Sqrt(size.Apart),
	}
	each := float64(trials) / float64(len(s.tasks)*size.Repeats) // trials of a repeat of a task
	measure := func(repeats int) GateSize {
		size := size
		size.Repeats = repeats
		var of powered = size
		if question == These {
			of = size.Fixed()
		}
		trials := int(math.Round(each * float64(len(s.tasks)*repeats)))
		return GateSize{
			Tasks: len(s.tasks), Repeats: repeats, Trials: trials,
			USD:   costs.each() * float64(trials),
			Power: of.Fails(margin), Passing: of.Passes(margin), Found: smallestLoss(of, size.Rate),
		}
	}
	for repeats := size.Repeats; ; repeats *= 2 {
		at := measure(repeats)
		if p.Enough = at.Power >= gatePower; p.Enough && len(p.Sizes) > 0 {
			p.Sizes = append(p.Sizes, smallestSize(repeats/2, repeats, measure))
			break
		}
		p.Sizes = append(p.Sizes, at)
		if p.Enough || repeats > mostRepeats[question] || margin > size.Rate {
			break
		}
	}
	if !p.Enough && margin <= size.Rate {
		p.TasksNeeded = tasksNeeded(size, margin)
	}
	return p
}

// trials counts the trials of the baseline.
func (s commonTasks) trials() (n int) {
	for _, t := range s.tasks {
		for _, c := range t.Cells {
			n += c.NA
		}
	}
	return n
}

// smallestSize returns the smallest size above low and at most high with enough power.
func smallestSize(low, high int, measure func(int) GateSize) GateSize {
	for high-low > 1 {
		if mid := (low + high) / 2; measure(mid).Power >= gatePower {
			high = mid
		} else {
			low = mid
		}
	}
	return measure(high)
}

// smallestLoss returns the smallest loss that 80 of 100 runs find, or 1.
func smallestLoss(size powered, rate float64) float64 {
	low, high := 0., rate
	if size.Fails(high) < gatePower {
		return 1
	}
	for range 40 {
		if mid := (low + high) / 2; size.Fails(mid) >= gatePower {
			high = mid
		} else {
			low = mid
		}
	}
	return high
}

// tasksNeeded returns about how many independent tasks find a loss of the margin.
func tasksNeeded(size stat.Size, margin float64) int {
	const most = 1 << 20
	for tasks := max(1, len(size.Clusters)); tasks < most; tasks += tasks/20 + 1 {
		size.Clusters = slices.Repeat([]int{1}, tasks)
		if size.Fails(margin) >= gatePower {
			return tasks
		}
	}
	return most
}
