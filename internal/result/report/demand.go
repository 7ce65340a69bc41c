package report

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Demands are the conditions that a gate sets for a candidate, whatever the baseline does.
type Demands struct {
	// AtLeast is the lowest rate of full success, a share of 1. It is 0 without such a demand.
	AtLeast float64
	// Always are names or patterns of the tasks that must fully succeed in every trial; see
	// [MatchTasks].
	Always []string
	// Pending counts the trials that have no outcome yet, of each task.
	Pending map[assay.TaskID]int
	// Faults are the kinds of faults of tools that may cost a model at most AtMost, a share of 1, of its
	// rate of full success where they strike, according to Forks.
	Faults []assay.ToolFault
	AtMost float64
	Forks  *Forks
}

func (d Demands) none() bool { return d.AtLeast == 0 && len(d.Always) == 0 && len(d.Faults) == 0 }

// A FaultDemand is a demand that a kind of fault costs a model little.
type FaultDemand struct {
	Verdict Verdict         `json:"verdict"`
	Fault   assay.ToolFault `json:"fault"`
	Model   string          `json:"model"`
	Most    float64         `json:"most"`
	// Lost is the rate of the forks that were spared the fault less that of those that met it, of Calls
	// calls of so many tasks.
	Lost  float64 `json:"lost"`
	Calls int     `json:"calls"`
	Tasks int     `json:"tasks"`
	stat.LossBounds
	// Pending counts the forks without an outcome, if they are too many for a verdict.
	Pending int `json:"pending,omitempty"`
	// CannotLose is true if the forks that were spared succeed less often than the demand allows to lose.
	CannotLose bool `json:"cannot_lose,omitempty"`
}

// ErrNoForks means that no forks show what a kind of fault costs.
var ErrNoForks = errors.New("no forks show what the fault costs")

// caused judges what faults cost: a demand passes if the upper bound is at most that, and fails if the
// lower bound is above it.
func (d Demands) caused() (all []FaultDemand, err error) {
	for _, fault := range d.Faults {
		found := false
		for i := range d.Forks.Effects {
			e := &d.Forks.Effects[i]
			if e.Fault != fault {
				continue
			}
			found = true
			f := FaultDemand{
				Verdict: Inconclusive, Fault: fault, Model: e.Model, Most: d.AtMost, Lost: e.RateA - e.RateB,
				Calls: e.Calls, Tasks: e.OfTasks, LossBounds: stat.LossBoundsOf(e.data, true),
				CannotLose: e.RateA < d.AtMost,
			}
			if float64(e.Pending) > MaxPending*float64(d.Forks.Planned) {
				f.Pending = e.Pending
			}
			switch {
			case f.Pending > 0 || f.CannotLose:
			case f.Upper <= f.Most:
				f.Verdict = Pass
			case f.Lower > f.Most:
				f.Verdict = Fail
			}
			all = append(all, f)
		}
		if !found {
			return nil, fmt.Errorf("%w: %s met no fault of the kind %s", ErrNoForks, d.Forks.Of, fault)
		}
	}
	return all, nil
}

// A RateDemand is a demand for a rate of full success.
type RateDemand struct {
	Verdict Verdict `json:"verdict"`
	Least   float64 `json:"least"`
	Full    int     `json:"full_successes"`
	Trials  int     `json:"trials"`
	stat.RateBounds
	// Needed is about how many trials with this rate show that it is high enough. It is 0 if they
	// cannot.
	Needed int `json:"trials_needed,omitempty"`
}

// rate judges the rate of a candidate: it passes if the lower bound is at least the demand, and
// fails if the upper bound is below it.
func (d Demands) rate(question string, candidate []settled) *RateDemand {
	r := &RateDemand{Verdict: Inconclusive, Least: d.AtLeast, Trials: len(candidate)}
	tasks := tasksOf(candidate, new(population[namedTask]))
	for i := range candidate {
		r.Full += int(isFull(candidate[i].level))
	}
	switch r.RateBounds = stat.RateOf(tasks, question == These); {
	case r.Lower >= r.Least:
		r.Verdict = Pass
	case r.Upper < r.Least:
		r.Verdict = Fail
	case r.Rate > r.Least:
		r.Needed = r.needed(question, tasks)
	}
	return r
}

// maxTimes limits how much larger a run is that [RateDemand.Needed] suggests.
const maxTimes = 200

// needed multiplies the trials until they are enough.
func (r *RateDemand) needed(question string, tasks []stat.Task) int {
	for times := 2; times <= maxTimes; times++ {
		more := make([]stat.Task, len(tasks))
		for i, t := range tasks {
			for _, c := range t.Cells {
				more[i].Cells = append(more[i].Cells, stat.Group{Full: c.Full * times, N: c.N * times})
			}
		}
		if stat.RateOf(more, question == These).Lower >= r.Least {
			return r.Trials * times
		}
	}
	return 0
}

// tasksOf counts successes by task and condition. The sequences of the tasks are those of a
// population.
func tasksOf(all []settled, from *population[namedTask]) (tasks []stat.Task) {
	cells := make(map[namedTask]*stat.Task)
	by := arrange(all, [len(matched)]bool{})
	for _, condition := range slices.Sorted(maps.Keys(by)) {
		for task, trials := range by[condition] {
			if cells[task] == nil {
				cells[task] = &stat.Task{Sequence: from.of[task]}
			}
			cells[task].Cells = append(cells[task].Cells,
				stat.Group{Full: fulls(trials), N: len(trials)})
		}
	}
	for _, task := range slices.SortedFunc(maps.Keys(cells), namedTask.compare) {
		tasks = append(tasks, *cells[task])
	}
	return tasks
}

// A TaskDemand is a demand for success in every trial of a task.
type TaskDemand struct {
	Verdict Verdict      `json:"verdict"`
	Task    assay.TaskID `json:"task"`
	Full    int          `json:"full_successes"`
	Trials  int          `json:"trials"`
	Pending int          `json:"pending"`
	// Failed is the first trial that did not fully succeed, and FailedAttempt the number of the
	// attempt if a later outcome superseded it.
	Failed        assay.TrialID `json:"failed,omitempty"`
	FailedAttempt int           `json:"failed_attempt,omitempty"`
}

// tasks judges the tasks that must always succeed: one failure is enough, and so is a pending trial
// for having no verdict.
func (d Demands) tasks(candidate []settled) ([]TaskDemand, error) {
	known := make(map[assay.TaskID]*TaskDemand)
	of := func(task assay.TaskID) *TaskDemand {
		if known[task] == nil {
			known[task] = &TaskDemand{Verdict: Pass, Task: task}
		}
		return known[task]
	}
	for task, n := range d.Pending {
		if n > 0 {
			x := of(task)
			x.Pending, x.Verdict = n, Inconclusive
		}
	}
	for i := range candidate {
		t := &candidate[i]
		x := of(t.task)
		x.Trials++
		if isFull(t.level) > 0 {
			x.Full++
			continue
		}
		if x.Verdict = Fail; x.Failed == "" {
			x.Failed, x.FailedAttempt = t.id, t.attempt
		}
	}
	names, err := MatchTasks(d.Always, slices.Collect(maps.Keys(known)))
	var all []TaskDemand
	for _, name := range names {
		all = append(all, *known[name])
	}
	return all, err
}

// ErrNoTask means that a name or pattern fits no task.
var ErrNoTask = errors.New("there is no such task")

// MatchTasks returns the tasks that have one of the names, or match one of the patterns of
// [path.Match], in order. It returns [ErrNoTask] if no task fits a name or pattern.
func MatchTasks(names []string, known []assay.TaskID) (tasks []assay.TaskID, err error) {
	known = slices.Compact(slices.Sorted(slices.Values(known)))
	for _, name := range names {
		before := len(tasks)
		for _, task := range known {
			fits, err := path.Match(name, string(task))
			if string(task) == name || err == nil && fits {
				tasks = append(tasks, task)
			}
		}
		if len(tasks) > before {
			continue
		}
		all := make([]string, len(known))
		for i, task := range known {
			all[i] = string(task)
		}
		message := fmt.Sprintf("no task of the candidate is named or matches %q", name)
		if hint := assay.NameHint(name, all); hint != "" {
			message += "\nhint: " + hint
		}
		return nil, fmt.Errorf("%w: %s", ErrNoTask, message)
	}
	slices.Sort(tasks)
	return slices.Compact(tasks), nil
}

// A Change is a task with another rate of full success than before, over the conditions that both
// sides have.
type Change struct {
	Task   assay.TaskID `json:"task"`
	FullA  int          `json:"full_a"`
	A      int          `json:"trials_a"`
	FullB  int          `json:"full_b"`
	B      int          `json:"trials_b"`
	Change float64      `json:"change"`
	// See is the candidate's first failure if it lost, and its first success if it gained. SeeAttempt
	// is the number of the attempt if a later outcome superseded it.
	See        assay.TrialID `json:"see"`
	SeeAttempt int           `json:"see_attempt,omitempty"`

	lost, gained *settled
}

// add adds the trials of a task under a condition.
func (c *Change) add(a, b []*settled) {
	c.FullA, c.A = c.FullA+fulls(a), c.A+len(a)
	c.FullB, c.B = c.FullB+fulls(b), c.B+len(b)
	for _, t := range b {
		if isFull(t.level) > 0 {
			c.gained = cmp.Or(c.gained, t)
		} else {
			c.lost = cmp.Or(c.lost, t)
		}
	}
}

// changes returns the tasks that changed, the largest loss first.
func (c *Comparison) changes() (all []Change) {
	for _, task := range slices.SortedFunc(maps.Keys(c.byTask), namedTask.compare) {
		x := *c.byTask[task]
		x.Change = float64(x.FullB)/float64(x.B) - float64(x.FullA)/float64(x.A)
		if math.Abs(x.Change) < 1e-9 {
			continue
		}
		see := x.gained
		if x.Change < 0 {
			see = x.lost
		}
		x.See, x.SeeAttempt = see.id, see.attempt
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(x, y Change) int { return cmp.Compare(x.Change, y.Change) })
	return all
}
