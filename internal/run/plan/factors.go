package plan

import (
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Factors are what an experiment or a part of it varies, with the levels of
// each. Every combination of levels is a cell; severities are combined with
// flawed variants only.
type Factors struct {
	Variants      Names     `yaml:"variants" json:"variants"`
	Severities    Names     `yaml:"severities" json:"severities,omitempty"`
	Difficulties  Names     `yaml:"difficulties" json:"difficulties"`
	TaskTypes     Names     `yaml:"task_types" json:"task_types"`
	Reliabilities []float64 `yaml:"reliabilities" json:"reliabilities"`
	TasksPerType  Count     `yaml:"tasks_per_type" json:"tasks_per_type"`
	Repeats       int       `yaml:"repeats" json:"repeats"`
}

// A PartSpec is what a file says of a part of an experiment. Factors that it
// leaves out are the experiment's own.
type PartSpec struct {
	Name string `yaml:"name" json:"name"`
	// Models are patterns of [path.Match], for which upper and lower case are
	// the same. They choose among the experiment's models; none stands for all.
	Models  []string `yaml:"models" json:"models,omitempty"`
	Factors `yaml:",inline"`
}

// takes reports whether the part is for a model.
func (p PartSpec) takes(model string) bool {
	return len(p.Models) == 0 || slices.ContainsFunc(p.Models, func(pattern string) bool {
		ok, err := path.Match(strings.ToLower(pattern), strings.ToLower(model))
		return ok && err == nil
	})
}

// flawed reports whether a variant's plan has a flaw.
func flawed(variant string) bool {
	_, ok := assay.FlawOf(variant)
	return ok
}

// severities returns what a variant is combined with.
func (f Factors) severities(variant string) []string {
	if flawed(variant) {
		return f.Severities
	}
	return []string{""}
}

// cells yields the cells, without a model, of a type and difficulty.
func (f Factors) cells(taskType, difficulty string) iter.Seq[assay.Cell] {
	return func(yield func(assay.Cell) bool) {
		for _, variant := range f.Variants {
			for _, severity := range f.severities(variant) {
				for _, reliability := range f.Reliabilities {
					if !yield(assay.Cell{Variant: variant, Severity: severity, Difficulty: difficulty, TaskType: taskType, Reliability: reliability}) {
						return
					}
				}
			}
		}
	}
}

// worst is the severity of flawed variants for which the file gives none.
const worst = assay.Severe

// variantGroups are names that stand for several variants.
var variantGroups = map[string][]string{
	All:           assay.Variants,
	"plain":       assay.PlainVariants,
	"flawed":      withFlaw(assay.Flaws...),
	"structural":  withFlaw(assay.SequenceDisorder, assay.ToolMisuse, assay.ParameterError),
	"operational": withFlaw(assay.MissingStep, assay.RedundantOperations),
	"logical":     withFlaw(assay.LogicalInconsistency, assay.SemanticDrift),
}

// withFlaw returns the variants whose plans have one of these flaws.
func withFlaw(flaws ...assay.Flaw) []string {
	var names []string
	for _, v := range assay.Variants {
		if f, ok := assay.FlawOf(v); ok && slices.Contains(flaws, f) {
			names = append(names, v)
		}
	}
	return names
}

// namedFactors are those whose levels are names: each field, what a level is
// called, the levels that there are, and the names that stand for several.
var namedFactors = []struct {
	field, what string
	levels      []string
	groups      map[string][]string
	of          func(*Factors) *Names
}{
	{"variants", "variant", assay.Variants, variantGroups, func(f *Factors) *Names { return &f.Variants }},
	{"severities", "severity", assay.Severities, all(assay.Severities), func(f *Factors) *Names { return &f.Severities }},
	{"difficulties", "difficulty", slices.Concat(assay.Difficulties, assay.Mixtures), all(assay.Difficulties), func(f *Factors) *Names { return &f.Difficulties }},
	{"task_types", "task type", assay.TaskTypes, all(assay.TaskTypes), func(f *Factors) *Names { return &f.TaskTypes }},
}

func all(names []string) map[string][]string { return map[string][]string{All: names} }

// fill gives the factors what the file leaves out, and replaces names of
// groups. Their fields have paths that begin with at.
func (e *Experiment) fill(f *Factors, at string, otherwise Factors) {
	for _, n := range namedFactors {
		names := n.of(f)
		if len(*names) == 0 && n.field != "severities" {
			*names = *n.of(&otherwise)
		}
		*names = members(*names, n.groups)
	}
	if len(f.Severities) == 0 && slices.ContainsFunc(f.Variants, flawed) {
		f.Severities = otherwise.Severities
		if len(f.Severities) == 0 {
			f.Severities = Names{worst}
		}
	}
	if !e.has(at + "reliabilities") {
		f.Reliabilities = otherwise.Reliabilities
	}
	if f.TasksPerType == 0 {
		f.TasksPerType = otherwise.TasksPerType
	}
	if !e.has(at + "repeats") {
		f.Repeats = otherwise.Repeats
	}
}

// members replaces names of groups by their members and drops repetitions.
func members(names Names, groups map[string][]string) Names {
	var out Names
	for _, name := range names {
		add, ok := groups[name]
		if !ok {
			add = []string{name}
		}
		for _, m := range add {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

func (e *Experiment) checkFactors(f *Factors, at string) error {
	for _, n := range namedFactors {
		known := slices.Concat(n.levels, slices.Sorted(maps.Keys(n.groups)))
		if err := e.checkNames(at+n.field, n.what, *n.of(f), known); err != nil {
			return err
		}
	}
	if err := e.checkReliabilities(f.Reliabilities, at+"reliabilities"); err != nil {
		return err
	}
	return e.checkWhole(at+"repeats", f.Repeats, 10000)
}

func (e *Experiment) checkReliabilities(list []float64, field string) error {
	if len(list) == 0 {
		return e.FieldError(field, "names no reliability", "write reliabilities: [0.8]")
	}
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case !(r >= 0 && r <= 1):
			return e.FieldError(at, fmt.Sprintf("reliability %v is not between 0 and 1", r), percentHint(r))
		case slices.Index(list, r) < i:
			return e.FieldError(at, fmt.Sprintf("reliability %v is listed twice", r), "")
		}
	}
	return nil
}

// percentHint is the advice for a share above 1, which will be a percentage.
func percentHint(share float64) string {
	if share > 1 && share <= 100 {
		return fmt.Sprintf("write %.4g for %.4g %%", share/100, share)
	}
	return ""
}

// checkSeverities refuses severities of nothing. Those of the experiment are
// its parts' too.
func (e *Experiment) checkSeverities() error {
	users := []Factors{e.Factors}
	for i, part := range e.Parts {
		if err := e.checkFlawed(fmt.Sprintf("parts[%d].severities", i), part.Factors); err != nil {
			return err
		}
		users = append(users, part.Factors)
	}
	return e.checkFlawed("severities", users...)
}

// checkFlawed refuses severities that the file gives the first of the users,
// where none of them has a flawed variant.
func (e *Experiment) checkFlawed(field string, users ...Factors) error {
	if !e.has(field) || len(users[0].Severities) == 0 {
		return nil
	}
	for _, f := range users {
		if slices.ContainsFunc(f.Variants, flawed) {
			return nil
		}
	}
	return e.FieldError(field, "severities belong to flawed variants, and none is named", "name one, such as variants: [optimal, flawed], or remove the line")
}

// mostParts is more than tables can show.
const mostParts = 100

func (e *Experiment) checkParts() error {
	switch n := len(e.Parts); {
	case n == 0 && e.has("parts"):
		return e.FieldError("parts", "names no part", "leave it out for an experiment of one part")
	case n > mostParts:
		return e.FieldError("parts", fmt.Sprintf("names %d parts, want at most %d", n, mostParts), "")
	}
	for i, part := range e.Parts {
		at := fmt.Sprintf("parts[%d]", i)
		if part.Name == "" {
			return e.FieldError(at, "this part has no name", "write name: and what it measures")
		}
		if !nameText.MatchString(part.Name) {
			return e.FieldError(at+".name", fmt.Sprintf("%q is not a name", part.Name), nameHint)
		}
		if slices.ContainsFunc(e.Parts[:i], func(p PartSpec) bool { return p.Name == part.Name }) {
			return e.FieldError(at+".name", fmt.Sprintf("part %s is there twice", part.Name), "")
		}
		if e.has(at+".models") && len(part.Models) == 0 {
			return e.FieldError(at+".models", "names no model", "leave it out for all models")
		}
		for j, pattern := range part.Models {
			if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
				return e.FieldError(fmt.Sprintf("%s.models[%d]", at, j), fmt.Sprintf("%q is not a pattern of names", pattern), "for example qwen2.5-*, where * stands for anything but a slash")
			}
		}
		if err := e.checkFactors(&part.Factors, at+"."); err != nil {
			return err
		}
	}
	return nil
}

// checkPartModels refuses names in parts that are no patterns and no models.
func (e *Experiment) checkPartModels() error {
	for i, part := range e.Parts {
		for j, pattern := range part.Models {
			one := PartSpec{Models: []string{pattern}}
			if !strings.ContainsAny(pattern, `*?[\`) && !slices.ContainsFunc(e.Models, one.takes) {
				return e.FieldError(fmt.Sprintf("parts[%d].models[%d]", i, j), fmt.Sprintf("the experiment has no model %s", pattern), assay.NameHint(pattern, e.Models))
			}
		}
	}
	return nil
}

// EachFactors returns the factors of each part of the experiment.
func (e *Experiment) EachFactors() []Factors {
	var all []Factors
	for _, p := range e.parts() {
		all = append(all, p.Factors)
	}
	return all
}

// parts returns the parts of the experiment; one that has none is one part
// with its own name.
func (e *Experiment) parts() []PartSpec {
	if len(e.Parts) > 0 {
		return e.Parts
	}
	return []PartSpec{{Name: e.Name, Factors: e.Factors}}
}
