package legacy

import (
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

// maxName is the maximum length of a group's name without the suffix that makes
// it unique.
const maxName = maxKey - 24

// A tally sums the outcomes of one or several leaves.
type tally struct {
	full, partial, failed int
	errors                map[string]int // by category
	assisted              Assistance
	workingMS             int64
	turns, calls          int
	coverage              float64
	scores                scores
	first, last           time.Time
}

type scores struct{ workflow, phase2, quality, final float64 }

// add adds an outcome.
func (t *tally) add(a *assay.Attempt) {
	level := levelOf(a)
	one := tally{
		workingMS: a.WorkingMS,
		turns:     a.Outcome.Turns,
		calls:     len(a.ExecutedTools),
		coverage:  a.Coverage,
		first:     a.StartedAt,
		last:      a.FinishedAt,
	}
	switch level {
	case assay.FullSuccess:
		one.full = 1
	case assay.PartialSuccess:
		one.partial = 1
	default:
		one.failed = 1
	}
	if level != assay.FullSuccess {
		one.errors = map[string]int{categoryOf(a): 1}
	}
	if a.Assisted > 0 {
		one.assisted = Assistance{
			Tests: 1, Turns: a.Assisted, Success: one.full + one.partial,
			Failure: one.failed,
		}
	}
	if p := a.Pilot; p != nil {
		one.scores = scores{p.WorkflowScore, p.Phase2Score, p.QualityScore, p.FinalScore}
	}
	t.merge(one)
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
func (t *tally) merge(o tally) {
	t.full += o.full
	t.partial += o.partial
	t.failed += o.failed
	for c, n := range o.errors {
		if t.errors == nil {
			t.errors = make(map[string]int)
		}
		t.errors[c] += n
	}
	t.assisted.Tests += o.assisted.Tests
	t.assisted.Turns += o.assisted.Turns
	t.assisted.Success += o.assisted.Success
	t.assisted.Failure += o.assisted.Failure
	t.workingMS += o.workingMS
	t.turns += o.turns
	t.calls += o.calls
	t.coverage += o.coverage
	t.scores.workflow += o.scores.workflow
	t.scores.phase2 += o.scores.phase2
	t.scores.quality += o.scores.quality
	t.scores.final += o.scores.final
	if t.first.IsZero() || !o.first.IsZero() && o.first.Before(t.first) {
		t.first = o.first
	}
	if o.last.After(t.last) {
		t.last = o.last
	}
}

func (t *tally) total() int { return t.full + t.partial + t.failed }

// counts returns the count fields of a leaf.
func (t *tally) counts() map[string]float64 {
	c := map[string]float64{
		"total":                 float64(t.total()),
		"success":               float64(t.full + t.partial),
		"partial":               float64(t.partial),
		"failed":                float64(t.failed),
		"full_success":          float64(t.full),
		"partial_success":       float64(t.partial),
		"total_errors":          float64(t.partial + t.failed),
		"assisted_failure":      float64(t.assisted.Failure),
		"assisted_success":      float64(t.assisted.Success),
		"total_assisted_turns":  float64(t.assisted.Turns),
		"tests_with_assistance": float64(t.assisted.Tests),
	}
	for _, name := range categories {
		c[name+errorSuffix] = float64(t.errors[name])
	}
	return c
}

// means returns the fields of a leaf that are means over its tests.
func (t *tally) means() map[string]float64 {
	n := float64(max(1, t.total()))
	return map[string]float64{
		"avg_execution_time": float64(t.workingMS) / 1000 / n,
		"avg_turns":          float64(t.turns) / n,
		"avg_tool_calls":     float64(t.calls) / n,
		"tool_coverage_rate": t.coverage / n,
		"avg_workflow_score": t.scores.workflow / n,
		"avg_phase2_score":   t.scores.phase2 / n,
		"avg_quality_score":  t.scores.quality / n,
		"avg_final_score":    t.scores.final / n,
	}
}

// fields returns the fields of a leaf in order, counts as int and others as
// float64.
func (t *tally) fields() doc {
	counts, means := t.counts(), t.means()
	for _, r := range ratios {
		means[r.name] = r.of(counts)
	}
	d := make(doc, 0, len(leafFields))
	for _, name := range leafFields {
		if n, ok := counts[name]; ok {
			d = append(d, pair{name, int(n)})
		} else {
			d = append(d, pair{name, means[name]})
		}
	}
	return d
}

// A tallied leaf has a key and a tally.
type tallied struct {
	key
	tally
}

// gather counts the first outcome of every trial by leaf and sorts the leaves
// by model, then in the order of the original's tables, then by descending
// rate. all is the sum of all leaves. It keeps the leaves and trial IDs in memory,
// but no attempts.
func gather(attempts iter.Seq2[assay.Attempt, error]) (sorted []*tallied, all tally, err error) {
	leaves := make(map[key]*tallied)
	settled := make(map[assay.TrialID]struct{})
	var m mixture
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
		all.merge(l.tally)
	}
	return sorted, all, nil
}

// checkAttempt refuses attempts that the formats cannot hold: invalid numbers,
// and names that [Read] would refuse.
func checkAttempt(a *assay.Attempt) error {
	if err := a.Check(); err != nil {
		return err
	}
	if !(a.Reliability >= 0 && a.Reliability <= 1) {
		return fmt.Errorf("reliability %v is outside [0,1]", a.Reliability)
	}
	if n := len(keyOf(a).group()); n > maxName {
		return fmt.Errorf("model, task type, variant and difficulty have %d bytes together, "+
			"more than the 2025 format's limit of %d", n, maxName)
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
	for _, c := range []int{
		strings.Compare(k.model, o.model),
		compareIn(prompts, k.variant, o.variant),
		strings.Compare(o.rate, k.rate), // all have one digit before the decimal point
		compareIn(difficulties, k.difficulty, o.difficulty),
		compareIn(taskTypes, k.taskType, o.taskType),
	} {
		if c != 0 {
			return c
		}
	}
	return 0
}

// compareIn compares by the order of a list. Names that are not in the list
// come last in alphabetical order.
func compareIn(order []string, a, b string) int {
	rank := func(s string) int {
		if i := slices.Index(order, s); i >= 0 {
			return i
		}
		return len(order)
	}
	if c := rank(a) - rank(b); c != 0 {
		return c
	}
	return strings.Compare(a, b)
}
