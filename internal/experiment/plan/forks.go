package plan

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Forks makes every trial of an experiment a fork: it begins as an attempt of another experiment did until
// a call that met a fault. There, some meet it again, and as many are spared it.
type Forks struct {
	// Of is the other experiment. Its text is that of the forks but for the name.
	Of string `json:"of"`
	// Each is how many forks of a point meet the fault, and how many are spared it.
	Each   int               `json:"each"`
	Points []assay.ForkPoint `json:"points"`
}

const forksSuffix = "-forks"

// ForksName is the name of the forks of an experiment.
func ForksName(experiment string) string { return experiment + forksSuffix }

// Fork returns the experiment whose trials are forks of the experiment's attempts.
func (e *Experiment) Fork(each int, points []assay.ForkPoint) *Experiment {
	x := *e
	x.Name, x.Stop = ForksName(e.Name), StopRules{}
	x.Forks = &Forks{Of: e.Name, Each: each, Points: points}
	return &x
}

// Unforkable returns why attempts of a model cannot be continued from their middle, or "".
func (e *Experiment) Unforkable(model string) string {
	switch _, agent := e.Agents[model]; {
	case agent:
		return "it is a foreign agent, which cannot be put into the middle of a conversation"
	case e.User != "":
		return "a model speaks as the user, which would say something else"
	}
	return ""
}

// forked are the forks of a model's trials, point by point, so that a run which stops early has whole points.
type forked []assay.Trial

// fork plans the forks in place of the trials that the plan has.
func (p *Plan) fork(f *Forks) error {
	points := make(map[assay.TrialID][]assay.ForkPoint)
	for _, at := range f.Points {
		points[at.Trial] = append(points[at.Trial], at)
	}
	forks := make(map[string]forked)
	for _, model := range p.experiment.Models {
		for t := range p.Trials(model) {
			for _, at := range points[t.ID] {
				for n := range f.Each {
					for _, spared := range []bool{false, true} {
						forks[model] = append(forks[model], t.Forked(at, spared, n+1))
					}
				}
			}
			delete(points, t.ID)
		}
	}
	for id := range points {
		return fmt.Errorf("experiment %s: it has forks of trial %s, which it does not plan", f.Of, id)
	}
	p.forks = forks
	return nil
}

// cells returns the cells of trials, with the number of trials and their tasks.
func (f forked) cells(limit int) (all []forkedCell) {
	at := make(map[assay.Cell]int)
	for _, t := range f[:min(limit, len(f))] {
		i, ok := at[t.Cell]
		if !ok {
			i = len(all)
			at[t.Cell] = i
			all = append(all, forkedCell{cell: t.Cell})
		}
		c := &all[i]
		c.planned++
		if ref := (assay.TaskRef{ID: t.Task, Digest: t.TaskDigest}); !slices.Contains(c.tasks, ref) {
			c.tasks = append(c.tasks, ref)
		}
	}
	return all
}

type forkedCell struct {
	cell    assay.Cell
	tasks   []assay.TaskRef
	planned int
}

// some yields the trials at places within a limit.
func (f forked) some(limit int, want func(place int) bool) iter.Seq[assay.Trial] {
	return func(yield func(assay.Trial) bool) {
		for place, t := range f[:min(limit, len(f))] {
			if want(place) && !yield(t) {
				return
			}
		}
	}
}

// ForkedFrom returns the experiment that an experiment has forks of, by its name.
func ForkedFrom(name string) (of string, ok bool) { return strings.CutSuffix(name, forksSuffix) }
