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
	// Points are the calls, with the number of forks of each.
	Points []Forked                 `json:"points"`
	only   map[assay.ForkPoint]bool // if set, the points whose forks are planned
}

// A Forked call has so many forks that meet its fault, and as many that are spared it.
type Forked struct {
	assay.ForkPoint
	Each int `json:"each"`
}

const forksSuffix = "-forks"

// ForksName is the name of the forks of an experiment.
func ForksName(experiment string) string { return experiment + forksSuffix }

// Fork returns the experiment whose trials are forks of the experiment's attempts. If only is not nil, only the
// forks of those points are planned. The stored text has all of them, so that the others are not forgotten.
func (e *Experiment) Fork(points []Forked, only map[assay.ForkPoint]bool) *Experiment {
	x := *e
	x.Name, x.Stop = ForksName(e.Name), StopRules{}
	x.Forks = &Forks{Of: e.Name, Points: points, only: only}
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

// PlanForks plans the forks of the experiment, if it has any, in place of the trials that it has without
// them. The tasks have been put into their words.
func (p *Plan) PlanForks() error {
	f := p.experiment.Forks
	if f == nil {
		return nil
	}
	points := make(map[assay.TrialID][]Forked)
	for _, at := range f.Points {
		points[at.Trial] = append(points[at.Trial], at)
	}
	forks := make(map[string]forked)
	for _, model := range p.experiment.Models {
		for t := range p.Trials(model) {
			for _, at := range points[t.ID] {
				if f.only != nil && !f.only[at.ForkPoint] {
					continue
				}
				for n := range at.Each {
					for _, spared := range []bool{false, true} {
						forks[model] = append(forks[model], t.Forked(at.ForkPoint, spared, n+1))
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
