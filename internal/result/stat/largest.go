package stat

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

// The families of contrasts among which [LargestLoss] looks.
const (
	ByLevel    = "level" // a level of a factor against its first level, at the same tasks
	ByType     = "type"  // tasks of a type against all other tasks
	BySoleTask = "task"  // a task against all other tasks
)

// lossShares are the shares of the level that the families get, if there are contrasts of them.
var lossShares = map[string]float64{ByLevel: 2, ByType: 1, BySoleTask: 2}

// LossLevel is the largest share of experiments without any effect in which a loss is shown.
const LossLevel = .05

// A TriedTask has the trials of one model at a task, under one or more conditions. Tasks of one Type
// are compared with all others. Tasks that need the same sequence of tools have the same Sequence.
type TriedTask struct {
	Type, Sequence int
	Cells          []TriedCell
	// Units are the same trials, as far as they are independent of each other: a trial is one, and so are
	// trials under several conditions if the same luck decides them. Nil means that each trial is one.
	Units []TriedUnit
}

// A TriedUnit has a trial under each condition of a numbered set of conditions.
type TriedUnit struct {
	Set int
	Group
}

// units returns the units, which are numbered by condition if each trial is one.
func (t *TriedTask) units() (all []TriedUnit) {
	if t.Units != nil {
		return t.Units
	}
	for _, c := range t.Cells {
		for i := range c.N {
			u := TriedUnit{c.Condition, Group{N: 1}}
			if i < c.Full {
				u.Full = 1
			}
			all = append(all, u)
		}
	}
	return all
}

// A TriedCell has the trials of a task under a numbered condition.
type TriedCell struct {
	Condition int
	Group
}

// LossData is what a model did, where it may have lost something. In Levels, side A is the first
// level of a factor and side B another one. Tasks has the model's trials by task; it may be empty.
type LossData struct {
	Levels     [][]Matched
	Tasks      []TriedTask
	BySequence bool
	// Models is how many models share the level of the tests, because the largest loss of all of
	// them will be shown. 0 is 1.
	Models int
}

// A ShownLoss is a loss of success that is significant, whatever else was compared.
type ShownLoss struct {
	Family string `json:"family"`
	// Index is the place of the contrast: in Levels, the type of tasks, or the place in Tasks.
	Index int `json:"index"`
	// Points is the loss, and AtLeast a bound of it: all such bounds hold together in 95 % of
	// experiments. Both are shares of 1.
	Points  float64 `json:"points"`
	AtLeast float64 `json:"at_least"`
	// P is at most Level.
	P     float64 `json:"p"`
	Level float64 `json:"test_level"` // beside the level of a factor
}

// A Losing is the answer to where a model loses most.
type Losing struct {
	// Top is the contrast with the largest bound, of those that are significant. It is nil if
	// there is none.
	Top *ShownLoss `json:"top"`
	// Compared counts the contrasts.
	Compared int `json:"compared"`
	// TaskTrials is how many trials of a task are needed to show that it always fails, and Fewest
	// how many the tasks have. Both are 0 without tasks to compare.
	TaskTrials int `json:"task_trials_needed"`
	Fewest     int `json:"task_trials"`
	// Clusters is the largest number of independent tasks or sequences that a level and its first one
	// have in common, and ClustersNeeded how many can show a loss, if each of them has lost. Both are
	// 0 without levels.
	Clusters       int `json:"clusters"`
	ClustersNeeded int `json:"clusters_needed"`
}

// LargestLoss finds what costs a model most: a level of a factor, a type of tasks, or a single task.
// In at most 5 % of experiments without any effect it shows a loss; the level is split over the
// families of contrasts and over the models.
//
// A level is compared with the first one by the exact one-sided sign-flip test over tasks or, with
// BySequence, over sequences of tools. A type is compared with all other tasks by a permutation of
// the tasks over the types, within tasks that were tried under the same conditions; the largest
// standardized loss of a type is compared with the largest one of each permutation (Westfall and
// Young, Resampling-Based Multiple Testing, 1993). A single task is compared with all others by its
// successes, if its units were drawn from those of all tasks, within sets of conditions: a
// hypergeometric number if each trial is a unit. A task has few trials, so limits of a normal distribution would be far too short at the level of one of many
// tasks. Its bound combines the limits of Clopper and Pearson (Zou and Donner, "Construction of
// confidence limits about effect measures", Statistics in Medicine 27, 2008).
func LargestLoss(d LossData) Losing {
	level := LossLevel / float64(max(1, d.Models))
	types := typesOf(d.Tasks)
	families := map[string]int{ByLevel: len(d.Levels)}
	if len(types) > 1 {
		families[ByType] = len(types)
	}
	if len(d.Tasks) > 1 {
		families[BySoleTask] = len(d.Tasks)
	}
	var all float64
	var out Losing
	for name, n := range families {
		if n > 0 {
			all += lossShares[name]
			out.Compared += n
		}
	}
	levelOf := func(name string) float64 { return level * lossShares[name] / all }
	var losses []ShownLoss
	for i, tasks := range d.Levels {
		l, clusters := levelLoss(tasks, d.BySequence, levelOf(ByLevel)/float64(len(d.Levels)))
		l.Index = i
		out.Clusters = max(out.Clusters, clusters)
		out.ClustersNeeded = int(math.Ceil(-math.Log2(l.Level)))
		losses = append(losses, l)
	}
	if families[ByType] > 0 {
		losses = append(losses, typeLosses(d.Tasks, types, d.BySequence, levelOf(ByType))...)
	}
	if n := families[BySoleTask]; n > 0 {
		losses = append(losses, taskLosses(d.Tasks, levelOf(BySoleTask)/float64(n))...)
		out.TaskTrials, out.Fewest = taskTrials(d.Tasks, levelOf(BySoleTask)/float64(n))
	}
	for i, l := range losses {
		if l.P <= l.Level && l.AtLeast > 0 && (out.Top == nil || l.AtLeast > out.Top.AtLeast) {
			out.Top = &losses[i]
		}
	}
	return out
}

func typesOf(tasks []TriedTask) (types []int) {
	for _, t := range tasks {
		if !slices.Contains(types, t.Type) {
			types = append(types, t.Type)
		}
	}
	return types
}

// levelLoss compares two levels of a factor. It also returns the number of independent observations.
func levelLoss(tasks []Matched, bySequence bool, level float64) (l ShownLoss, clusters int) {
	x := contrastOf(tasks, bySequence)
	losses := make([]float64, len(x.clusters))
	for i, c := range x.clusters {
		losses[i] = -c.sum
	}
	return ShownLoss{
		Family: ByLevel, Points: x.counts.RateA - x.counts.RateB,
		P: flipTest(losses), AtLeast: flipBound(x.clusters, level), Level: level,
	}, len(losses)
}

// A unitOfType is a task, or the tasks of one sequence and type that were tried under the same
// conditions. The residual is its rate less the mean of all of the stratum.
type unitOfType struct {
	kind, stratum int
	residual, n   float64
}

// typePermutations is how many permutations of tasks over types are made.
const typePermutations = 9_999

// typeLosses compares each type of tasks with the others.
func typeLosses(tasks []TriedTask, types []int, bySequence bool, level float64) []ShownLoss {
	units, strata := unitsOfTypes(tasks, types, bySequence)
	// A permutation of a stratum leaves the numbers of its units of each type. So the variance of
	// the sum over a type is known.
	k := len(types)
	variance, weight := make([]float64, k), make([]float64, k)
	for _, s := range strata {
		var squares float64
		n := float64(len(s))
		for _, i := range s {
			squares += units[i].residual * units[i].residual
		}
		for kind := range k {
			own := 0.
			for _, i := range s {
				if units[i].kind == kind {
					own++
				}
			}
			weight[kind] += own * (1 - own/n)
			variance[kind] += own * (1 - own/n) * squares / max(1, n-1)
		}
	}
	sums := make([]float64, k)
	// standardized returns the losses of types in standard deviations.
	standardized := func() []float64 {
		clear(sums)
		for _, u := range units {
			sums[u.kind] -= u.residual
		}
		for kind := range k {
			sums[kind] /= math.Sqrt(max(1e-12, variance[kind]))
		}
		return sums
	}
	seen := slices.Clone(standardized())
	largest := []float64{slices.Max(seen)}
	r := rand.New(rand.NewPCG(1993, 5))
	for range typePermutations {
		for _, s := range strata {
			for i := len(s) - 1; i > 0; i-- {
				a, b := &units[s[i]], &units[s[r.IntN(i+1)]]
				a.kind, b.kind = b.kind, a.kind
			}
		}
		largest = append(largest, slices.Max(standardized()))
	}
	slices.Sort(largest)
	critical := largest[len(largest)-int(level*float64(len(largest)))-1]
	var out []ShownLoss
	for kind := range k {
		below, _ := slices.BinarySearch(largest, seen[kind]-1e-9)
		l := ShownLoss{
			Family: ByType, Index: types[kind], Level: level,
			P: float64(len(largest)-below) / float64(len(largest)),
		}
		if weight[kind] == 0 { // no other task was tried under the same conditions
			l.P = 1
		} else {
			scale := math.Sqrt(variance[kind]) / weight[kind]
			l.Points, l.AtLeast = min(1, seen[kind]*scale), min(1, (seen[kind]-critical)*scale) // rounding
		}
		out = append(out, l)
	}
	return out
}

// unitsOfTypes returns the units that may be permuted, and their indices by stratum.
func unitsOfTypes(
	tasks []TriedTask, types []int, bySequence bool,
) (units []unitOfType, strata [][]int) {
	type place struct{ sequence, kind, stratum int }
	places, known := make(map[place]int), make(map[string]int)
	for i, t := range tasks {
		key, rate, n := "", 0., 0.
		for _, c := range t.Cells {
			if c.N > 0 {
				key += strconv.Itoa(c.Condition) + " "
				rate += c.rate()
				n++
			}
		}
		if n == 0 {
			continue
		}
		s, ok := known[key]
		if !ok {
			s = len(strata)
			known[key] = s
			strata = append(strata, nil)
		}
		at := place{i, slices.Index(types, t.Type), s}
		if bySequence {
			at.sequence = t.Sequence
		}
		u, ok := places[at]
		if !ok {
			u = len(units)
			places[at] = u
			units = append(units, unitOfType{kind: at.kind, stratum: s})
			strata[s] = append(strata[s], u)
		}
		units[u].residual += rate / n
		units[u].n++
	}
	for _, s := range strata {
		mean := 0.
		for _, i := range s {
			units[i].residual /= units[i].n
			mean += units[i].residual / float64(len(s))
		}
		for _, i := range s {
			units[i].residual -= mean
		}
	}
	return units, strata
}

// A pile has the units of a set of conditions: how many have each number of successes, and their sum.
type pile struct {
	scores      []int
	units, full int
}

// piled returns the units of tasks by their sets.
func piled(tasks ...TriedTask) map[int]*pile {
	all := make(map[int]*pile)
	for i := range tasks {
		for _, u := range tasks[i].units() {
			p := all[u.Set]
			if p == nil {
				p = &pile{scores: make([]int, u.N+1)}
				all[u.Set] = p
			}
			p.scores[u.Full]++
			p.units, p.full = p.units+1, p.full+u.Full
		}
	}
	return all
}

// taskLosses compares each task with all others.
func taskLosses(tasks []TriedTask, level float64) []ShownLoss {
	all := piled(tasks...)
	out := make([]ShownLoss, len(tasks))
	for i, t := range tasks {
		out[i] = ShownLoss{Family: BySoleTask, Index: i, P: 1, AtLeast: -1, Level: level}
		var lots []lot
		var full, trials, rest, units, restUnits float64
		mine := piled(t)
		for _, set := range slices.Sorted(maps.Keys(mine)) {
			own, of := mine[set], all[set]
			others, each := of.units-own.units, len(of.scores)-1
			if others == 0 {
				continue
			}
			if each == 1 {
				lots = append(lots, lotOf(Pair{A: of.full - own.full, NA: others, B: own.full, NB: own.units}, 1))
			} else {
				lots = append(lots, lotOfUnits(of.scores, own.units, own.full))
			}
			full += float64(own.full)
			trials += float64(own.units * each)
			rest += float64(own.units) * float64(of.full-own.full) / float64(others)
			units += float64(own.units)
			restUnits += float64(others)
		}
		if trials == 0 {
			continue
		}
		// A mean of outcomes that share their luck says no more about its expectation than an outcome.
		rate, own := rest/trials, full/trials
		low := clopperLow(rate*restUnits, restUnits, level)
		high := clopperHigh(own*units, units, level)
		out[i].P, out[i].Points = atMost(lots), rate-own
		out[i].AtLeast = out[i].Points - math.Hypot(rate-low, high-own)
	}
	return out
}

// taskTrials returns how many independent trials of each task would show that one of them always fails,
// if the others succeed as often as all do, and how many the tasks have at least.
func taskTrials(tasks []TriedTask, level float64) (needed, fewest int) {
	var all Group
	for i, t := range tasks {
		for _, c := range t.Cells {
			all = Group{all.Full + c.Full, all.N + c.N}
		}
		n := len(t.units())
		if i == 0 || n < fewest {
			fewest = n
		}
	}
	if all.Full == 0 {
		return 0, fewest
	}
	return TrialsToShow(len(tasks), all.rate(), level), fewest
}

// TrialsToShow returns how many trials of each task show at a level that one of them always fails,
// if the others succeed at a rate.
func TrialsToShow(tasks int, rate, level float64) int {
	for n := 1; ; n++ {
		others := (tasks - 1) * n
		failed := float64(n) + (1-rate)*float64(others)
		log := 0.
		for i := range n {
			log += math.Log((failed - float64(i)) / float64(others+n-i))
		}
		if log <= math.Log(level) || n == 1000 {
			return n
		}
	}
}
