package report

import (
	"slices"

	"github.com/assay-eval/assay"
)

// A pooled tally covers a group of cells.
type pooled[K comparable] struct {
	key K
	tally
}

// pool groups cells by key, in the order of the first cell of each group. It also returns the
// factors that vary within a group.
func pool[K comparable](
	cells []*cell,
	key func(assay.Cell) K,
) (pools []*pooled[K], averaged []string) {
	index := make(map[K]*pooled[K])
	first := make(map[K]assay.Cell)
	varies, severities := make(map[string]bool), make(map[K]string)
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
			if f != severity {
				varies[f] = varies[f] || level(c.Cell, f) != level(first[k], f)
			} else if s := c.Severity; s != "" { // plain variants have no severity
				varies[f] = varies[f] || severities[k] != "" && severities[k] != s
				severities[k] = s
			}
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

// The factors, named like the fields of an export.
const (
	variant     = "variant"
	taskType    = "task_type"
	difficulty  = "difficulty"
	severity    = "severity"
	reliability = "reliability"
	model       = "model"
	repeat      = "repeat" // of a trial, not of a cell
)

// Graded is the variant and its severity as one factor. A configuration also includes the model.
const (
	Graded        = "variant and severity"
	configuration = "model, variant and severity"
)

var factors = []string{variant, taskType, difficulty, severity, reliability}

// level returns the level of a factor in a cell.
func level(c assay.Cell, factor string) string {
	switch factor {
	case model:
		return c.Model
	case variant:
		return c.Variant
	case taskType:
		return c.TaskType
	case difficulty:
		return c.Difficulty
	case severity:
		return c.Severity
	case configuration:
		return configurationName(c.Model, PromptKey(c.Variant, c.Severity))
	case Graded:
		return PromptKey(c.Variant, c.Severity)
	}
	return assay.FormatReliability(c.Reliability)
}

// configurationName names a model together with a variant.
func configurationName(model, variant string) string { return model + ", " + variant }

// PromptKey names a variant together with its severity, if it has one.
func PromptKey(name, severity string) string {
	if !IsFlawed(name) || severity == "" {
		return name
	}
	return name + ", " + severity
}

// severityVaries reports whether flawed variants have several severities.
func severityVaries(cells []*cell) bool {
	return len(
		levels(where(cells, func(c assay.Cell) bool { return IsFlawed(c.Variant) }), severity),
	) > 1
}
