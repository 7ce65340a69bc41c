package plan

import (
	"slices"

	"github.com/assay-eval/assay"
)

// A Part is a part of a planned experiment. An experiment without parts in its
// file has one.
type Part struct {
	Name string
	// Models are the experiment's models that the part includes.
	Models []string
	// Varies lists the factors with more than one level under their export
	// names, in the order variant, severity, difficulty, reliability,
	// fault_mix, interface, phrasing, task_type.
	Varies []string

	factors Factors
}

func (e *Experiment) newPart(spec PartSpec) Part {
	p := Part{Name: spec.Name, factors: spec.Factors}
	for _, m := range e.Models {
		if e.takes(spec, m) {
			p.Models = append(p.Models, m)
		}
	}
	for _, f := range []struct {
		name   string
		levels int
	}{
		{"variant", len(spec.Variants)},
		{"severity", len(spec.Severities)},
		{"difficulty", len(spec.Difficulties)},
		{"reliability", len(spec.Reliabilities)},
		{"fault_mix", spec.mixed()},
		{"interface", len(spec.Interfaces)},
		{"phrasing", len(spec.Phrasings)},
		{"task_type", len(spec.TaskTypes)},
	} {
		if f.levels > 1 {
			p.Varies = append(p.Varies, f.name)
		}
	}
	return p
}

// mixed returns how many mixes of faults there are where tools can fail.
func (f Factors) mixed() (n int) {
	for _, reliability := range f.Reliabilities {
		n = max(n, len(f.mixes(reliability)))
	}
	return n
}

// Has reports whether the cell belongs to the part.
func (p Part) Has(c assay.Cell) bool {
	f := p.factors
	return slices.Contains(p.Models, c.Model) &&
		slices.Contains(f.Variants, c.Variant) &&
		slices.Contains(f.severities(c.Variant), c.Severity) &&
		slices.Contains(f.Difficulties, c.Difficulty) &&
		slices.Contains(f.TaskTypes, c.TaskType) &&
		slices.Contains(f.Reliabilities, c.Reliability) &&
		slices.Contains(f.mixes(c.Reliability), c.Faults) &&
		slices.Contains(f.interfaces(), c.Interface) &&
		slices.Contains(f.Puts(), c.Phrasing)
}
