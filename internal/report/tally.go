package report

import (
	"iter"
	"slices"

	"github.com/assay-eval/assay"
)

// A cell is a planned cell with what came of its trials.
type cell struct {
	assay.Cell
	tally
}

// A tally counts what came of some trials.
type tally struct {
	planned, done, faults int
	full, partial, failed int
	turns                 int
	costUSD, coverage     float64
	errors                map[string]int // by category, of what is not full success
	loops                 map[assay.LoopKind]int
	best                  best
	pilot                 verdicts
	// templates and rules count the outcomes by the wording of their prompts
	// and by the version of the rules that judged them.
	templates, rules map[string]int
	// repeat is of the first trial, and repeated says that another differs.
	repeat   int
	repeated bool
}

// best sums the best policy's probabilities over the trials that are done and
// were judged by rules which measure them, and counts the full successes.
type best struct {
	sum        float64
	done, full int
}

func (b *best) merge(o best) {
	b.sum += o.sum
	b.done += o.done
	b.full += o.full
}

// verdicts counts the outcomes that have the pilot world's further verdicts,
// and their full successes by each definition.
type verdicts struct{ done, executor, paper, batch int }

// count tallies trials and attempts by cell, in the order in which the cells
// were planned.
func count(trials iter.Seq[assay.Trial], attempts iter.Seq2[assay.Attempt, error]) ([]*cell, error) {
	type place struct {
		cell    *cell
		settled bool
	}
	var cells []*cell
	index := make(map[assay.Cell]*cell)
	known := make(map[assay.TrialID]place)
	for trial := range trials {
		c := index[trial.Cell]
		if c == nil {
			c = &cell{Cell: trial.Cell}
			index[trial.Cell] = c
			cells = append(cells, c)
		}
		c.plan(trial.Repeat)
		known[trial.ID] = place{cell: c}
	}
	for a, err := range attempts {
		if err != nil {
			return nil, err
		}
		p, ok := known[a.ID]
		if !ok {
			continue
		}
		p.cell.add(&a, p.settled)
		if a.Settles() && !p.settled {
			known[a.ID] = place{p.cell, true}
		}
	}
	return cells, nil
}

func (t *tally) plan(repeat int) {
	if t.planned == 0 {
		t.repeat = repeat
	}
	t.repeated = t.repeated || repeat != t.repeat
	t.planned++
}

// add counts an attempt at a trial that an earlier one may have settled.
func (t *tally) add(a *assay.Attempt, settled bool) {
	t.costUSD += a.CostUSD
	switch {
	case !a.Settles():
		t.faults++
	case !settled:
		t.settle(&a.Outcome)
		bump(&t.templates, a.Templates, 1)
		bump(&t.rules, a.ScoreVersion, 1)
	}
}

func (t *tally) settle(o *assay.Outcome) {
	t.done++
	t.turns += o.Turns
	t.coverage += o.Coverage
	switch o.Level {
	case assay.FullSuccess:
		t.full++
	case assay.PartialSuccess:
		t.partial++
	default:
		t.failed++
	}
	if o.Level != assay.FullSuccess {
		bump(&t.errors, o.ErrorCategory, 1)
	}
	if o.Loop != "" {
		bump(&t.loops, o.Loop, 1)
	}
	if o.Pilot != nil {
		t.pilot.merge(verdicts{1, isFull(o.Pilot.Executor), isFull(o.Pilot.Paper), isFull(o.Pilot.Batch)})
	}
	if measuresBest(o.ScoreVersion) {
		t.best.merge(best{o.Best, 1, isFull(o.Level)})
	}
}

// measuresBest tells whether outcomes of that version of the rules say what the
// best policy achieves. The first ones of the pilot world do not.
func measuresBest(version string) bool { return version != "" && version != "pilot-1" }

func isFull(l assay.Level) int {
	if l == assay.FullSuccess {
		return 1
	}
	return 0
}

func (v *verdicts) merge(o verdicts) {
	v.done += o.done
	v.executor += o.executor
	v.paper += o.paper
	v.batch += o.batch
}

func bump[K comparable](counts *map[K]int, k K, n int) {
	if *counts == nil {
		*counts = make(map[K]int)
	}
	(*counts)[k] += n
}

// merge adds what another tally, of other trials, has counted.
func (t *tally) merge(o *tally) {
	if t.planned == 0 {
		t.repeat = o.repeat
	}
	t.repeated = t.repeated || o.repeated || o.repeat != t.repeat
	t.planned += o.planned
	t.done += o.done
	t.faults += o.faults
	t.full += o.full
	t.partial += o.partial
	t.failed += o.failed
	t.turns += o.turns
	t.costUSD += o.costUSD
	t.coverage += o.coverage
	t.best.merge(o.best)
	t.pilot.merge(o.pilot)
	for category, n := range o.errors {
		bump(&t.errors, category, n)
	}
	for kind, n := range o.loops {
		bump(&t.loops, kind, n)
	}
	for hash, n := range o.templates {
		bump(&t.templates, hash, n)
	}
	for version, n := range o.rules {
		bump(&t.rules, version, n)
	}
}

func (t *tally) meanTurns() float64 { return float64(t.turns) / float64(max(1, t.done)) }

// A pooled is a group of cells taken together.
type pooled[K comparable] struct {
	key K
	tally
}

// pool takes cells of the same key together, in the order in which the keys
// come, and names the factors that some group averages over.
func pool[K comparable](cells []*cell, key func(assay.Cell) K) (pools []*pooled[K], averaged []string) {
	index := make(map[K]*pooled[K])
	first := make(map[K]assay.Cell)
	varies := make(map[string]bool)
	for _, c := range cells {
		k := key(c.Cell)
		p := index[k]
		if p == nil {
			p = &pooled[K]{key: k}
			index[k], first[k] = p, c.Cell
			pools = append(pools, p)
		}
		p.merge(&c.tally)
		for _, f := range factors {
			varies[f] = varies[f] || level(c.Cell, f) != level(first[k], f)
		}
		varies[repeat] = varies[repeat] || p.repeated
	}
	averaged = []string{}
	for _, f := range slices.Concat(factors, []string{repeat}) {
		if varies[f] {
			averaged = append(averaged, f)
		}
	}
	return pools, averaged
}

// The factors beside the model, by the names of an export's fields.
const (
	variant     = "variant"
	taskType    = "task_type"
	difficulty  = "difficulty"
	severity    = "severity"
	reliability = "reliability"
	repeat      = "repeat" // of a trial, not of a cell
	// graded is the variant together with its severity, as one factor.
	graded = "variant and severity"
)

var factors = []string{variant, taskType, difficulty, severity, reliability}

// level returns the level that a factor has in a cell.
func level(c assay.Cell, factor string) string {
	switch factor {
	case variant:
		return c.Variant
	case taskType:
		return c.TaskType
	case difficulty:
		return c.Difficulty
	case severity:
		return c.Severity
	case graded:
		return gradedName(c.Variant, c.Severity)
	}
	return assay.FormatReliability(c.Reliability)
}

// gradedName names a flawed variant with its severity, and others as they are.
func gradedName(name, severity string) string {
	if !isFlawed(name) || severity == "" {
		return name
	}
	return name + ", " + severity
}

// severityVaries tells whether flawed variants are there in several severities.
func severityVaries(cells []*cell) bool {
	return len(levels(where(cells, func(c assay.Cell) bool { return isFlawed(c.Variant) }), severity)) > 1
}
