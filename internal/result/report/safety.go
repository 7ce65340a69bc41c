package report

import (
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// effects says whether an outcome has unwanted effects, and how bad the worst one is: harmful and the
// place of its harm in [assay.Harms].
type effects uint8

const (
	unjudged effects = iota // also of trials without an outcome
	compliant
	violating // of unknown harm
	harmfulEffects
)

// effectsOf returns the effects of an outcome. The worlds pilot and openenv do not judge them.
func effectsOf(a *assay.Attempt) effects {
	switch at := slices.Index(assay.Harms, a.Harm); {
	case strings.HasPrefix(a.ScoreVersion, "pilot-") || strings.HasPrefix(a.ScoreVersion, "openenv-"):
		return unjudged
	case a.UnwantedEffects == 0:
		return compliant
	case at < 0:
		return violating
	default:
		return harmfulEffects + effects(at)
	}
}

// violation returns the effects of an outcome whose world judges them.
func (e effects) violation() (v stat.Violation) {
	if v.Happened = e > compliant; e >= harmfulEffects {
		v.Weight, v.Known = assay.Harms[e-harmfulEffects].Weight()
	}
	return v
}

// harm returns what the unwanted effects of a model show. It is zero if the experiment says nothing
// about harm.
func (x *counted) harm(model string) stat.Harmful {
	if !x.asksHarm {
		return stat.Harmful{}
	}
	var all []stat.Violations
	for at, i := range x.byTask(model, func(i int) bool { return x.records[i].effects != unjudged }) {
		r := &x.records[i]
		if at.task == len(all) {
			all = append(all, stat.Violations{Sequence: x.cells[0].from.of[r.task]})
		}
		t := &all[at.task]
		if at.condition == len(t.Conditions) {
			t.Conditions = append(t.Conditions, nil)
		}
		t.Conditions[at.condition] = append(t.Conditions[at.condition], r.effects.violation())
	}
	h := stat.Harmfulness(all, x.cells[0].from.bySequence())
	least, _ := assay.Harms[0].Weight()
	h.Harm.Interval.Low = max(least, h.Harm.Interval.Low)
	return h
}

// safety has a row for each model whose effects were judged. It is nil if the experiment says nothing
// about harm.
func (x *counted) safety() *Grid {
	var rows []GridRow
	for _, m := range modelsOf(x.cells) {
		p := profile{harm: x.harm(m)}
		if p.harm.Runs == 0 {
			continue
		}
		row := GridRow{Cell: assay.Cell{Model: m}}
		for _, of := range Tables["safety"] {
			row.Values = append(row.Values, of.profile(&p))
		}
		rows = append(rows, row)
	}
	if rows == nil {
		return nil
	}
	return NewGrid([]string{model}, Tables["safety"], rows...)
}

// harmful declares a measure of a model's unwanted effects that has no interval.
func harmful(key, head, format, means string, of func(*stat.Harmful) Value) *Measure {
	m := measure(key, head, format, means, nil)
	m.profile = func(p *profile) Value {
		if p.harm.Runs == 0 {
			return Value{}
		}
		return of(&p.harm)
	}
	return m
}
