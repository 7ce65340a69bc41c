package report

import (
	"cmp"
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

// byModel groups cells by model.
func byModel(cells []*cell) []*pooled[string] {
	pools, _ := pool(cells, func(c assay.Cell) string { return c.Model })
	return pools
}

// A modelLevel is a model and a level of a factor.
type modelLevel struct{ model, level string }

// byModelAnd groups cells by model and the levels of a factor.
func byModelAnd(cells []*cell, factor string) (pools []*pooled[modelLevel], averaged []string) {
	return pool(cells, func(c assay.Cell) modelLevel {
		return modelLevel{c.Model, level(c, factor)}
	})
}

func (p *pooled[K]) rate(model, level string) ModelRate {
	return ModelRate{model, newPivotCell(level, &p.tally)}
}

// The factors, named like the fields of an export.
const (
	variant     = "variant"
	taskType    = "task_type"
	difficulty  = "difficulty"
	severity    = "severity"
	reliability = "reliability"
	faultMix    = "fault_mix"
	model       = "model"
	repeat      = "repeat" // of a trial, not of a cell
)

// Graded is the variant and its severity as one factor. A configuration also includes the model.
const (
	Graded        = "variant and severity"
	configuration = "model, variant and severity"
)

// Tools is the mix of faults and the reliability as one factor.
const Tools = "tools"

var factors = []string{variant, taskType, difficulty, severity, reliability, faultMix}

// fields are the factors that are texts.
var fields = map[string]func(*assay.Cell) *string{
	model:      func(c *assay.Cell) *string { return &c.Model },
	variant:    func(c *assay.Cell) *string { return &c.Variant },
	taskType:   func(c *assay.Cell) *string { return &c.TaskType },
	difficulty: func(c *assay.Cell) *string { return &c.Difficulty },
	severity:   func(c *assay.Cell) *string { return &c.Severity },
	faultMix:   func(c *assay.Cell) *string { return &c.Faults },
}

// level returns the level of a factor in a cell.
func level(c assay.Cell, factor string) string {
	switch factor {
	case reliability:
		return assay.FormatReliability(c.Reliability)
	case faultMix:
		return MixName(c.Faults)
	case configuration:
		return configurationName(c.Model, level(c, Graded))
	case Graded:
		return PromptKey(c.Variant, c.Severity)
	case Tools:
		return toolsName(c)
	}
	return *fields[factor](&c)
}

// without returns the cell with the factor's level cleared.
func without(c assay.Cell, factor string) assay.Cell {
	switch factor {
	case reliability:
		c.Reliability = 0
	case configuration:
		c.Model, c.Variant, c.Severity = "", "", ""
	case variant, Graded:
		c.Variant, c.Severity = "", ""
	case Tools:
		c.Reliability, c.Faults = 0, ""
	default:
		*fields[factor](&c) = ""
	}
	return c
}

// MixName names a mix of the faults of tools.
func MixName(faults string) string { return cmp.Or(faults, string(assay.FaultBefore)+"=1") }

// toolsName names the tools of a cell.
func toolsName(c assay.Cell) string {
	if c.Reliability == 1 {
		return Reliable
	}
	return MixName(c.Faults) + ", reliability " + assay.FormatReliability(c.Reliability)
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
	flawed := where(cells, func(c assay.Cell) bool { return IsFlawed(c.Variant) })
	return len(levels(flawed, severity)) > 1
}
