package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// ownTools reports whether users wrote the experiment's tools, task types and variants.
func (e *Experiment) ownTools() bool {
	d := world.Find(e.World)
	return d != nil && d.OwnTools
}

// usualWorld returns the default world. Tools that users wrote have their own world.
func (e *Experiment) usualWorld() string {
	if library.IsTaskFile(e.Library) {
		if library.IsEnvironment(e.Library) {
			return world.OpenEnv
		}
		return world.OwnName
	}
	return cmp.Or(world.For(library.CatalogOf(e.Library)), world.Names[0])
}

// usualTools returns the default tool setting. Users write few tools, so all are listed.
func (e *Experiment) usualTools() string {
	if e.ownTools() {
		return assay.Listed
	}
	return assay.Discover
}

func (e *Experiment) usualTasks() Count {
	if e.ownTools() {
		return AllTasks
	}
	return DefaultTasks
}

// usualDifficulty returns the default difficulty. It is easy if users wrote the tools, or if an
// imported library has no tasks at [DefaultDifficulty], because tasks that do not say how difficult
// they are count as easy.
func (e *Experiment) usualDifficulty() string {
	if e.ownTools() || !library.MayHave(e.Library, DefaultDifficulty) {
		return "easy"
	}
	return DefaultDifficulty
}

// easyBefore is the default difficulty that files had before [DefaultDifficulty].
const easyBefore = "easy"

// MeantEasy reports whether an experiment, stored as JSON, has the default difficulty of earlier
// versions, and the same file now means another one because it names none.
func (e *Experiment) MeantEasy(stored []byte) bool {
	var before struct {
		Difficulties Names `json:"difficulties"`
	}
	return e.doc != nil && !e.has("difficulties") && !slices.Contains(e.Difficulties, easyBefore) &&
		json.Unmarshal(stored, &before) == nil && slices.Equal(before.Difficulties, Names{easyBefore})
}

var ownName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$`)

// checkOwnNames checks the names of types or variants that only the library knows.
func (e *Experiment) checkOwnNames(field, what string, names []string) error {
	for _, name := range names {
		if !ownName.MatchString(name) {
			return e.FieldError(e.place(field, name), fmt.Sprintf("%q is not a valid %s", name, what),
				"use up to 60 letters, digits, dashes and underscores")
		}
	}
	return nil
}

// SetLibrary gives an experiment what the tasks of its library have. An experiment with tasks that users
// wrote needs that before it is expanded.
func (e *Experiment) SetLibrary(has library.Levels) error {
	e.types, e.phrasings = has.Types, append([]string{assay.Plain}, has.Phrasings...)
	e.Judges = has.Judges
	for i, f := range e.EachFactors() {
		at := ""
		if len(e.Parts) > 0 {
			at = fmt.Sprintf("parts[%d].", i)
		}
		known := slices.Concat(assay.Variants, has.Variants)
		if err := e.checkNames(at+"variants", "variant", plainNames(f.Variants), known); err != nil {
			return err
		}
		if err := e.checkNames(at+"task_types", "task type", f.TaskTypes, has.Types); err != nil {
			return err
		}
		if err := e.checkOwnPhrasings(at+"phrasings", f.Phrasings, has.Phrasings); err != nil {
			return err
		}
	}
	return nil
}

// conditional reports whether a variant does not apply to every task.
func (e *Experiment) conditional(variant string) bool {
	return flawed(variant) || e.ownTools() && assay.ShowsPlan(variant)
}
