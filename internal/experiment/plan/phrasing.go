package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// Puts returns the phrasings as cells have them.
func (f Factors) Puts() []string {
	if len(f.Phrasings) == 0 {
		return []string{""}
	}
	var all []string
	for _, name := range f.Phrasings {
		if name == assay.Plain {
			name = ""
		}
		all = append(all, name)
	}
	return all
}

// checkPhrasings refuses other words where the words are what is compared.
func (e *Experiment) checkPhrasings(names Names, field string) error {
	if e.World != world.PilotName {
		return nil
	}
	for _, name := range names {
		if name != assay.Plain {
			return e.FieldError(e.place(field, name), "the world "+e.World+" repeats an experiment of 2025, "+
				"whose tasks have one wording", "remove this line, or write world: "+world.Names[0])
		}
	}
	return nil
}

// checkOwnPhrasings checks phrasings of tasks that users wrote. Known are those that some task has.
func (e *Experiment) checkOwnPhrasings(field string, names Names, known []string) error {
	for _, name := range names {
		if name == assay.Plain || name == All || slices.Contains(known, name) {
			continue
		}
		message, hint := fmt.Sprintf("no task of %s has the phrasing %s", e.Library, name),
			fmt.Sprintf("write phrasings: {%s: the same task in these words} in its tasks, or leave it out", name)
		if len(known) > 0 {
			message, hint = fmt.Sprintf("unknown phrasing %q", name), assay.NameHint(name, append([]string{assay.Plain}, known...))
		}
		return e.FieldError(e.place(field, name), message, hint)
	}
	return nil
}

// A Phrase returns a task at a difficulty in the words of a phrasing. The result has another digest.
type Phrase func(ctx context.Context, task assay.TaskRef, difficulty, phrasing string) (assay.TaskRef, error)

// Put puts the tasks of a plan into the words of their cells. It returns an error that points at a
// phrasing which a task does not have.
func (p *Plan) Put(ctx context.Context, phrase Phrase) error {
	put := make(map[*stratum]bool) // models share them
	for _, model := range p.experiment.Models {
		for _, s := range p.strata[model] {
			if s.cell.Phrasing == "" || put[s] {
				continue
			}
			put[s] = true
			s.tasks = slices.Clone(s.tasks) // other cells have the same list
			for i, task := range s.tasks {
				var err error
				if s.tasks[i], err = phrase(ctx, task, s.cell.Difficulty, s.cell.Phrasing); err != nil {
					return p.experiment.phrasingError(s.cell, err)
				}
			}
		}
	}
	return nil
}

// phrasingError points at the phrasing that a task does not have.
func (e *Experiment) phrasingError(c assay.Cell, err error) error {
	var no *library.NoPhrasing
	if !errors.As(err, &no) {
		return err
	}
	fields := []string{"phrasings"}
	for i := range e.Parts {
		fields = append(fields, fmt.Sprintf("parts[%d].phrasings", i))
	}
	at := fields[0]
	for _, field := range fields {
		for _, name := range []string{All, c.Phrasing} {
			if place := e.place(field, name); place != field || e.node(field) != nil && e.node(field).Value == name {
				at = place
			}
		}
	}
	return e.FieldError(at, no.Message, no.Hint)
}
