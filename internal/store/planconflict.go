package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/assay-eval/assay"
)

// A PlanConflict is an experiment for which two stores have different plans. Readers of the new
// store go by the plan of the latest run. They do not show attempts at trials that only the
// other plan has.
type PlanConflict struct {
	Experiment string     `json:"experiment"`
	Kept       StoredPlan `json:"kept"`
	Left       StoredPlan `json:"left"`
	// Fields lists the fields of the experiment's file that differ, and "library".
	Fields []string `json:"fields"`
}

// A StoredPlan names the latest run of an experiment in a store.
type StoredPlan struct {
	Store string      `json:"store"`
	Run   assay.RunID `json:"run"`
}

// comparePlans reports the stores whose plan of an experiment differs from the plan of its latest
// run. It leaves out experiments whose text is lost.
func (b *rebuilder) comparePlans() error {
	if b.salvages {
		return nil
	}
	type plan struct {
		Experiment
		store string
	}
	var all []plan
	kept := make(map[string]plan)
	for _, s := range b.sources {
		experiments, err := s.Experiments(b.ctx)
		if err != nil {
			return err
		}
		for _, e := range experiments {
			if e.Lost() {
				continue
			}
			all = append(all, plan{e, s.path})
			k, ok := kept[e.Name]
			if !ok || cmp.Or(k.UpdatedAt.Compare(e.UpdatedAt), cmp.Compare(k.Run, e.Run)) < 0 {
				kept[e.Name] = plan{e, s.path}
			}
		}
	}
	for _, p := range all {
		k := kept[p.Name]
		if fields := differ(&k.Experiment, &p.Experiment); len(fields) > 0 {
			c := PlanConflict{p.Name, StoredPlan{k.store, k.Run}, StoredPlan{p.store, p.Run}, fields}
			b.sum.PlanConflicts = append(b.sum.PlanConflicts, c)
		}
	}
	return nil
}

// differ returns the fields in which the plans of two experiments differ.
func differ(e, f *Experiment) (fields []string) {
	var p, q map[string]json.RawMessage
	if json.Unmarshal(e.Spec, &p) != nil || json.Unmarshal(f.Spec, &q) != nil {
		return nil // a plan that is not an object has no fields
	}
	for name := range p {
		if !bytes.Equal(p[name], q[name]) {
			fields = append(fields, name)
		}
	}
	for name := range q {
		if _, both := p[name]; !both {
			fields = append(fields, name)
		}
	}
	if e.Library.Name != f.Library.Name || e.Library.Digest != f.Library.Digest {
		fields = append(fields, "library")
	}
	slices.Sort(fields)
	return fields
}
