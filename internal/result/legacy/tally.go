package legacy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A key identifies a leaf. Its rate is rounded as in the file.
type key struct{ model, variant, rate, difficulty, taskType string }

// group returns the name of the key's test group.
func (k key) group() string {
	return strings.Join([]string{k.model, k.taskType, k.variant, k.difficulty}, "_")
}

func keyOf(a *assay.Attempt) key {
	return key{a.Model, a.Variant, rateKey(a.Reliability), a.Difficulty, a.TaskType}
}

// A leafTally has sums over the outcomes of one or several leaves, by the field of a leaf. For a
// field that is a mean, it is the sum of the values; times are milliseconds.
type leafTally struct {
	sums        map[string]float64
	first, last time.Time
}

// add adds an outcome.
func (t *leafTally) add(a *assay.Attempt) {
	one := map[string]float64{
		"total": 1, "avg_execution_time": float64(a.WorkingMS), "tool_coverage_rate": a.Coverage,
		"avg_turns": float64(a.Outcome.Turns), "avg_tool_calls": float64(len(a.ExecutedTools)),
	}
	level := levelOf(a)
	switch level {
	case assay.FullSuccess:
		one["success"], one["full_success"] = 1, 1
	case assay.PartialSuccess:
		one["success"], one["partial"], one["partial_success"] = 1, 1, 1
	default:
		one["failed"] = 1
	}
	if level != assay.FullSuccess {
		one["total_errors"], one[categoryOf(a)+errorSuffix] = 1, 1
	}
	if a.Assisted > 0 {
		one["tests_with_assistance"], one["total_assisted_turns"] = 1, float64(a.Assisted)
		one["assisted_success"], one["assisted_failure"] = one["success"], one["failed"]
	}
	if p := a.Pilot; p != nil {
		one["avg_workflow_score"], one["avg_phase2_score"] = p.WorkflowScore, p.Phase2Score
		one["avg_quality_score"], one["avg_final_score"] = p.QualityScore, p.FinalScore
	}
	t.merge(leafTally{one, a.StartedAt, a.FinishedAt})
}

// levelOf returns the level that the original would have recorded.
func levelOf(a *assay.Attempt) assay.Level {
	if a.Pilot != nil && a.Pilot.Batch != "" {
		return a.Pilot.Batch
	}
	return a.Level
}

// categoryOf returns the category of an outcome without full success. An outcome lacks a category
// if its own level is full success, but the original's is not.
func categoryOf(a *assay.Attempt) string {
	if slices.Contains(categories, a.ErrorCategory) {
		return a.ErrorCategory
	}
	return assay.CategoryOther
}

// merge adds the sums of another tally.
func (t *leafTally) merge(o leafTally) {
	if t.sums == nil {
		t.sums = make(map[string]float64)
	}
	for name, v := range o.sums {
		t.sums[name] += v
	}
	if t.first.IsZero() || !o.first.IsZero() && o.first.Before(t.first) {
		t.first = o.first
	}
	if o.last.After(t.last) {
		t.last = o.last
	}
}

func (t *leafTally) total() int { return int(t.sums["total"]) }

// field returns a field of a leaf: an int for a count, and else a number as the original writes it.
func (t *leafTally) field(name string) any {
	sum := t.sums[name]
	if i := slices.IndexFunc(ratios, func(r ratio) bool { return r.name == name }); i >= 0 {
		return json.Number(decimal(ratios[i].of(t.sums)))
	}
	if !strings.HasPrefix(name, "avg_") && name != "tool_coverage_rate" {
		return int(sum)
	}
	if name == "avg_execution_time" {
		sum /= 1000 // seconds
	}
	return json.Number(decimal(sum / max(1, t.sums["total"])))
}

// fields returns fields of a leaf. A name may be followed by = and the name in leaves.
func (t *leafTally) fields(names ...string) (d doc) {
	for _, name := range names {
		name, of, renamed := strings.Cut(name, "=")
		if !renamed {
			of = name
		}
		d = append(d, [2]any{name, t.field(of)})
	}
	return d
}

// A tallied leaf has a key and a tally.
type tallied struct {
	key
	leafTally
}

// gather counts the first outcome of every trial by leaf and sorts the leaves
// by model, then in the order of the original's tables, then by descending
// rate. all is the sum of all leaves. It keeps the leaves and trial IDs in memory,
// but no attempts.
func gather(
	attempts iter.Seq2[assay.Attempt, error],
) (sorted []*tallied, all leafTally, err error) {
	leaves := make(map[key]*tallied)
	settled := make(map[assay.TrialID]struct{})
	var m fieldMixture
	for a, err := range attempts {
		if err != nil {
			return nil, all, err
		}
		if _, done := settled[a.ID]; done || !a.Settles() {
			continue
		}
		if err := checkAttempt(&a); err != nil {
			return nil, all, fmt.Errorf("trial %s: %w", a.ID, err)
		}
		settled[a.ID] = struct{}{}
		m.add(&a)
		k := keyOf(&a)
		if leaves[k] == nil {
			leaves[k] = &tallied{key: k}
		}
		leaves[k].add(&a)
	}
	if err := m.err(); err != nil {
		return nil, all, err
	}
	for _, l := range leaves {
		sorted = append(sorted, l)
	}
	slices.SortFunc(sorted, func(a, b *tallied) int { return a.compare(b.key) })
	for _, l := range sorted { // in a fixed order, because sums of floats depend on it
		all.merge(l.leafTally)
	}
	return sorted, all, nil
}

// checkAttempt refuses invalid numbers, which the format cannot hold.
func checkAttempt(a *assay.Attempt) error {
	if err := a.Check(); err != nil {
		return err
	}
	if !(a.Reliability >= 0 && a.Reliability <= 1) {
		return fmt.Errorf("reliability %v is outside [0,1]", a.Reliability)
	}
	if p := a.Pilot; p != nil {
		for _, v := range []float64{p.WorkflowScore, p.Phase2Score, p.QualityScore, p.FinalScore} {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("score %v is not a finite number", v)
			}
		}
	}
	return nil
}

func (k key) compare(o key) int {
	return cmp.Or(
		cmp.Compare(k.model, o.model),
		compareIn(prompts, k.variant, o.variant),
		cmp.Compare(o.rate, k.rate), // all have one digit before the decimal point
		compareIn(difficulties, k.difficulty, o.difficulty),
		compareIn(taskTypes, k.taskType, o.taskType),
	)
}

// compareIn compares by the order of a list. Names that are not in the list
// come last in alphabetical order.
func compareIn(order []string, a, b string) int {
	// The index -1 becomes the largest number.
	rank := func(s string) uint { return uint(slices.Index(order, s)) }
	return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
}
