package report

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
)

// pool adds up the cells with the same key. Each sum is in the place of its first cell, and has the
// levels of that one.
func pool[K comparable](cells []*cell, key func(assay.Cell) K) (pools []*cell) {
	index := make(map[K]*cell)
	for _, c := range cells {
		k := key(c.Cell)
		if index[k] == nil {
			index[k] = &cell{Cell: c.Cell}
			pools = append(pools, index[k])
		}
		index[k].merge(&c.tally)
	}
	return pools
}

// averagedBy returns the factors that vary among cells with the same key.
func averagedBy[K comparable](cells []*cell, key func(assay.Cell) K) []string {
	first, severities := make(map[K]*cell), make(map[K]string)
	varies := make(map[string]bool)
	for _, c := range cells {
		k := key(c.Cell)
		if first[k] == nil {
			first[k] = c
		}
		for _, f := range factors {
			if f != severity {
				varies[f] = varies[f] || level(c.Cell, f) != level(first[k].Cell, f)
			} else if s := c.Severity; s != "" { // plain variants have no severity
				varies[f] = varies[f] || severities[k] != "" && severities[k] != s
				severities[k] = s
			}
		}
		varies[repeat] = varies[repeat] || c.repeated || c.first != first[k].first
	}
	return slices.DeleteFunc(slices.Concat(factors, []string{repeat}), func(f string) bool {
		return !varies[f]
	})
}

// byModel adds up cells by model.
func byModel(cells []*cell) []*cell {
	return pool(cells, func(c assay.Cell) string { return c.Model })
}

// byModelAnd returns the key of cells with the same model and level of a factor.
func byModelAnd(factor string) func(assay.Cell) [2]string {
	return func(c assay.Cell) [2]string { return [2]string{c.Model, level(c, factor)} }
}

// The factors, named like the fields of an export.
const (
	variant     = "variant"
	taskType    = "task_type"
	difficulty  = "difficulty"
	severity    = "severity"
	reliability = "reliability"
	faultMix    = "fault_mix"
	interfaces  = "interface"
	phrasing    = "phrasing"
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

var factors = []string{variant, taskType, difficulty, severity, reliability, faultMix, interfaces, phrasing}

// fields are the factors that are texts.
var fields = map[string]func(*assay.Cell) *string{
	model:      func(c *assay.Cell) *string { return &c.Model },
	variant:    func(c *assay.Cell) *string { return &c.Variant },
	taskType:   func(c *assay.Cell) *string { return &c.TaskType },
	difficulty: func(c *assay.Cell) *string { return &c.Difficulty },
	severity:   func(c *assay.Cell) *string { return &c.Severity },
	faultMix:   func(c *assay.Cell) *string { return &c.Faults },
	interfaces: func(c *assay.Cell) *string { return &c.Interface },
	phrasing:   func(c *assay.Cell) *string { return &c.Phrasing },
}

// level returns the level of a factor in a cell.
func level(c assay.Cell, factor string) string {
	switch factor {
	case reliability:
		return assay.FormatReliability(c.Reliability)
	case faultMix:
		return MixName(c.Faults)
	case interfaces:
		return assay.InterfaceName(c.Interface)
	case phrasing:
		return PhrasingName(c.Phrasing)
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

// PhrasingName names a phrasing of tasks.
func PhrasingName(phrasing string) string { return cmp.Or(phrasing, assay.Plain) }

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
