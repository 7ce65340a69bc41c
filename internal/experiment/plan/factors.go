package plan

import (
	"fmt"
	"iter"
	"maps"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

// Factors are the dimensions that an experiment or a part of it varies, with
// the levels of each. Every combination of levels is a cell. Severities are
// combined with flawed variants only.
type Factors struct {
	Variants   Names `yaml:"variants" json:"variants"`
	Severities Names `yaml:"severities" json:"severities,omitempty"`
	// Authorities are combined with the variants that have a plan, which then name them.
	Authorities   Names     `yaml:"plan_authority" json:"plan_authority,omitempty"`
	Difficulties  Names     `yaml:"difficulties" json:"difficulties"`
	TaskTypes     Names     `yaml:"task_types" json:"task_types"`
	Reliabilities []float64 `yaml:"reliabilities" json:"reliabilities"`
	TasksPerType  Count     `yaml:"tasks_per_type" json:"tasks_per_type"`
	Repeats       int       `yaml:"repeats" json:"repeats"`
	// Interfaces are those of the tools. Without any, tools have their own.
	Interfaces Names `yaml:"interfaces" json:"interfaces,omitempty"`
	// Phrasings are the words in which each task is put. An empty list means [assay.Plain] alone.
	Phrasings Names `yaml:"phrasings" json:"phrasings,omitempty"`
	// FaultMixes are the mixes of the experiment's failures, as cells have them.
	FaultMixes []string `yaml:"-" json:"-"`
	// ToolsDiffer means that a tool may be less reliable than its cell.
	ToolsDiffer bool `yaml:"-" json:"-"`
}

// A PartSpec describes a part of an experiment in a file. Factors that it
// leaves out are taken from the experiment.
type PartSpec struct {
	Name string `yaml:"name" json:"name"`
	// Models are case-insensitive patterns of [path.Match] that select from the
	// experiment's models. An empty list selects all of them.
	Models  []string `yaml:"models" json:"models,omitempty"`
	Factors `yaml:",inline"`
}

// takes reports whether the part includes a model.
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

// severities returns the severities that are combined with a variant.
func (f Factors) severities(variant string) []string {
	if flawed(variant) {
		return f.Severities
	}
	return []string{""}
}

// mixes returns the mixes of faults that are combined with a reliability. Tools that never fail meet
// no fault, so one mix stands for all.
func (f Factors) mixes(reliability float64) []string {
	if reliability == 1 && !f.ToolsDiffer {
		return f.FaultMixes[:1]
	}
	return f.FaultMixes
}

// interfaces returns the interfaces of tools as cells have them.
func (f Factors) interfaces() []string {
	if len(f.Interfaces) == 0 {
		return []string{""}
	}
	var all []string
	for _, name := range f.Interfaces {
		all = append(all, assay.InterfaceOf(name))
	}
	return all
}

// cells yields the cells of a task type and difficulty, without a model.
func (f Factors) cells(taskType, difficulty string) iter.Seq[assay.Cell] {
	return func(yield func(assay.Cell) bool) {
		for _, variant := range f.Variants {
			for _, severity := range f.severities(variant) {
				for _, reliability := range f.Reliabilities {
					for _, faults := range f.mixes(reliability) {
						for _, in := range f.interfaces() {
							cell := assay.Cell{
								Variant: variant, Severity: severity, Difficulty: difficulty,
								TaskType: taskType, Reliability: reliability, Faults: faults,
								Interface: in,
							}
							for _, cell.Phrasing = range f.Puts() {
								if !yield(cell) {
									return
								}
							}
						}
					}
				}
			}
		}
	}
}

// defaultSeverity is used for flawed variants if the file sets no severities.
const defaultSeverity = assay.Severe

// variantGroups maps a group name to its variants.
var variantGroups = map[string][]string{
	All:           assay.Variants,
	"plain":       assay.PlainVariants,
	"flawed":      withFlaw(assay.Flaws...),
	"structural":  withFlaw(assay.SequenceDisorder, assay.ToolMisuse, assay.ParameterError),
	"operational": withFlaw(assay.MissingStep, assay.RedundantOperations),
	"logical":     withFlaw(assay.LogicalInconsistency, assay.SemanticDrift),
}

// withFlaw returns the variants whose plans have one of the given flaws.
func withFlaw(flaws ...assay.Flaw) []string {
	var names []string
	for _, v := range assay.Variants {
		if f, ok := assay.FlawOf(v); ok && slices.Contains(flaws, f) {
			names = append(names, v)
		}
	}
	return names
}

// namedFactors are the factors whose levels are names. Each row has the field,
// the singular used in messages, the levels, and the group names that stand for
// several levels.
var namedFactors = []struct {
	field, what string
	levels      []string
	groups      map[string][]string
	of          func(*Factors) *Names
}{
	{
		"plan_authority", "authority of a plan", assay.Authorities, all(assay.Authorities),
		func(f *Factors) *Names { return &f.Authorities },
	},
	{
		"phrasings", "phrasing", assay.Phrasings, all(assay.Phrasings),
		func(f *Factors) *Names { return &f.Phrasings },
	},
	{
		"variants", "variant", assay.Variants, variantGroups,
		func(f *Factors) *Names { return &f.Variants },
	},
	{
		"severities", "severity", assay.Severities, all(assay.Severities),
		func(f *Factors) *Names { return &f.Severities },
	},
	{
		"difficulties", "difficulty", slices.Concat(assay.Difficulties, assay.Mixtures),
		all(assay.Difficulties), func(f *Factors) *Names { return &f.Difficulties },
	},
	{
		"interfaces", "interface", assay.Interfaces, all(assay.Interfaces),
		func(f *Factors) *Names { return &f.Interfaces },
	},
	{
		"task_types", "task type", assay.TaskTypes, all(assay.TaskTypes),
		func(f *Factors) *Names { return &f.TaskTypes },
	},
}

func all(names []string) map[string][]string { return map[string][]string{All: names} }

// fill sets the factors that the file leaves out and replaces group names by
// their members. The factors' fields have paths that start with at.
func (e *Experiment) fill(f *Factors, at string, otherwise Factors) {
	for _, n := range namedFactors {
		names := n.of(f)
		if len(*names) == 0 && n.field != "severities" {
			*names = *n.of(&otherwise)
		}
		if !e.ownTools() || n.field != "task_types" && n.field != "phrasings" { // only the library knows all
			*names = members(*names, n.groups)
		}
	}
	f.Variants = withAuthorities(f.Variants, f.Authorities)
	if len(f.Severities) == 0 && slices.ContainsFunc(f.Variants, flawed) {
		f.Severities = otherwise.Severities
		if len(f.Severities) == 0 {
			f.Severities = Names{defaultSeverity}
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

// withAuthorities combines the variants that show a plan, and whose authority is not given, with
// authorities.
func withAuthorities(variants, authorities Names) Names {
	if len(authorities) == 0 {
		return variants
	}
	var out Names
	for _, v := range variants {
		plain, named := assay.PlainOf(v)
		all := authorities
		if named != assay.Unstated || !assay.ShowsPlan(v) {
			plain, all = v, Names{assay.Unstated}
		}
		for _, a := range all {
			if v := assay.WithAuthority(plain, a); !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

// plainNames returns the names of variants without the authorities of their plans.
func plainNames(variants Names) (plain Names) {
	for _, v := range variants {
		if name, _ := assay.PlainOf(v); assay.ShowsPlan(name) {
			v = name
		}
		plain = append(plain, v)
	}
	return plain
}

// members replaces group names by their members and drops duplicates.
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
		names := *n.of(f)
		node := e.node(at + n.field)
		if n.field != "severities" && node != nil && node.Kind == yaml.SequenceNode && len(node.Content) == 0 {
			return e.FieldError(at+n.field, "the list of "+n.field+" is empty",
				"remove this line, which leaves the default, or list some")
		}
		if err := e.checkOnce(at+n.field, n.what); err != nil {
			return err
		}
		if n.field == "variants" {
			names = plainNames(names)
		}
		if e.ownTools() && slices.Contains([]string{"task_types", "variants", "phrasings"}, n.field) {
			if err := e.checkOwnNames(at+n.field, n.what, names); err != nil {
				return err
			}
			continue
		}
		known := slices.Concat(n.levels, slices.Sorted(maps.Keys(n.groups)))
		if err := e.checkNames(at+n.field, n.what, names, known); err != nil {
			return err
		}
	}
	inherited := at == "" && len(e.Parts) > 0
	if e.has(at+"plan_authority") && !inherited && !slices.ContainsFunc(f.Variants, assay.ShowsPlan) {
		return e.FieldError(at+"plan_authority", "no variant shows a plan",
			"add one, for example variants: [optimal], or remove this line")
	}
	other := slices.ContainsFunc(f.Interfaces, func(name string) bool { return name != assay.PlainInterface })
	for _, mix := range e.Failures.Kinds {
		does := " renames parameters, and so do interfaces"
		kind := unlisted(mix)
		if !kind.Rule().Renames {
			does = " adds a parameter, which interfaces do not know"
		}
		if kind != "" && other {
			return e.FieldError(at+"interfaces", "a fault of the kind "+string(kind)+does, "leave one of them out")
		}
	}
	if d := world.Of(e.World); other && !d.ChecksArguments() && e.has(at+"interfaces") {
		return e.FieldError(at+"interfaces", "tools have no schemas in the world "+e.World+
			", which accepts any arguments, so there is no interface to change",
			"remove this line, or write world: "+world.Names[0])
	}
	if err := e.checkPhrasings(f.Phrasings, at+"phrasings"); err != nil {
		return err
	}
	if err := e.checkReliabilities(f.Reliabilities, at+"reliabilities"); err != nil {
		return err
	}
	return e.checkWhole(at+"repeats", f.Repeats, 10000)
}

// checkOnce refuses a list in the file that has a name twice. A group and one of its members are fine.
func (e *Experiment) checkOnce(field, what string) error {
	node := e.node(field)
	if node == nil || node.Kind != yaml.SequenceNode {
		return nil
	}
	for i, n := range node.Content {
		if slices.ContainsFunc(node.Content[:i], func(o *yaml.Node) bool { return o.Value == n.Value }) {
			return e.FieldError(fmt.Sprintf("%s[%d]", field, i), what+" "+n.Value+" is listed twice", "")
		}
	}
	return nil
}

func (e *Experiment) checkReliabilities(list []float64, field string) error {
	if len(list) == 0 {
		return e.FieldError(field, "no reliabilities are listed",
			"for example reliabilities: [0.8]")
	}
	for i, r := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		switch {
		case !(r >= 0 && r <= 1):
			return e.FieldError(at, fmt.Sprintf("reliability %v is not between 0 and 1", r),
				percentHint(r))
		case slices.Index(list, r) < i:
			return e.FieldError(at, fmt.Sprintf("reliability %v is listed twice", r), "")
		}
	}
	return nil
}

// percentHint returns a hint if a share is above 1 and looks like a percentage.
func percentHint(share float64) string {
	if share > 1 && share <= 100 {
		return fmt.Sprintf("write %.4g for %.4g %%", share/100, share)
	}
	return ""
}

// checkSeverities refuses severities that no flawed variant uses. The parts
// inherit the experiment's severities, so a flawed variant in any part is
// enough for those.
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

// checkFlawed refuses the severities of the first of the users unless one of
// the users has a flawed variant.
func (e *Experiment) checkFlawed(field string, users ...Factors) error {
	if !e.has(field) || len(users[0].Severities) == 0 {
		return nil
	}
	for _, f := range users {
		if slices.ContainsFunc(f.Variants, flawed) {
			return nil
		}
	}
	return e.FieldError(field, "severities need a flawed variant, and there is none",
		"add one, for example variants: [optimal, flawed], or remove this line")
}

// maxParts bounds the number of parts. Tables could not show more.
const maxParts = 100

func (e *Experiment) checkParts() error {
	switch n := len(e.Parts); {
	case n == 0 && e.has("parts"):
		return e.FieldError("parts", "no parts are listed", "remove this line if you need no parts")
	case n > maxParts:
		return e.FieldError("parts", fmt.Sprintf("%d parts are more than %d", n, maxParts),
			"split the experiment into several files")
	}
	for i, part := range e.Parts {
		if err := e.checkPart(part, i); err != nil {
			return err
		}
	}
	return nil
}

// checkPart checks the i-th part of the experiment.
func (e *Experiment) checkPart(part PartSpec, i int) error {
	at := fmt.Sprintf("parts[%d]", i)
	sameName := func(p PartSpec) bool { return p.Name == part.Name }
	switch {
	case part.Name == "":
		return e.FieldError(at, "this part has no name",
			"add name: followed by what the part measures")
	case !nameText.MatchString(part.Name):
		return e.FieldError(at+".name", fmt.Sprintf("%q is not a valid name", part.Name), nameHint)
	case slices.ContainsFunc(e.Parts[:i], sameName):
		return e.FieldError(at+".name", fmt.Sprintf("two parts are named %s", part.Name),
			"rename one of them")
	case e.has(at+".models") && len(part.Models) == 0:
		return e.FieldError(at+".models", "no models are listed",
			"remove this line to include all models")
	}
	for j, pattern := range part.Models {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return e.FieldError(fmt.Sprintf("%s.models[%d]", at, j),
				fmt.Sprintf("%q is not a valid pattern of model names", pattern),
				"for example qwen2.5-*, where * matches anything but a slash")
		}
	}
	return e.checkFactors(&part.Factors, at+".")
}

// checkPartModels refuses model names in parts that the experiment does not
// list.
func (e *Experiment) checkPartModels() error {
	for i, part := range e.Parts {
		for j, pattern := range part.Models {
			one := PartSpec{Models: []string{pattern}}
			isPattern := strings.ContainsAny(pattern, `*?[\`)
			if !isPattern && !slices.ContainsFunc(e.Models, one.takes) {
				return e.FieldError(fmt.Sprintf("parts[%d].models[%d]", i, j),
					fmt.Sprintf("model %s is not in the experiment's list of models", pattern),
					assay.NameHint(pattern, e.Models))
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

// parts returns the parts of the experiment. If the file lists no parts, the whole experiment is
// one part with the experiment's name. The repeats include further ones.
func (e *Experiment) parts() []PartSpec {
	parts := []PartSpec{{Name: e.Name, Factors: e.Factors}}
	if len(e.Parts) > 0 {
		parts = slices.Clone(e.Parts)
	}
	d := world.Find(e.World)
	for i := range parts {
		parts[i].Repeats += e.Again
		parts[i].FaultMixes = e.Failures.Kinds.Texts()
		parts[i].ToolsDiffer = d != nil && d.OwnTools
		if e.types != nil {
			parts[i].TaskTypes = members(parts[i].TaskTypes, all(e.types))
			parts[i].Phrasings = members(parts[i].Phrasings, all(e.phrasings))
		}
	}
	return parts
}
