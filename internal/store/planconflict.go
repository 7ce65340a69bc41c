package store

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// planOf is the plan that a store shows for an experiment, which is the plan of its latest run.
type planOf struct {
	experiment, started string
	source              StoredPlan
	spec                map[string]json.RawMessage
	library             string // name and digest
}

// plansOf returns the plans of a store. It leaves out experiments whose text is lost.
func plansOf(s *DB, runs map[int64]*foundRun) (plans []planOf) {
	latest := make(map[string]int64)
	for seq, r := range runs {
		if r.doubtful {
			continue
		}
		name, _ := r.row[1].(string)
		latest[name] = max(latest[name], seq)
	}
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		r := runs[latest[name]]
		source := StoredPlan{s.path, assay.RunID(r.id)}
		p := planOf{experiment: name, started: r.started, source: source}
		p.library = fmt.Sprint(r.row[3], " ", r.row[4])
		text, _ := r.row[10].(string)
		if json.Unmarshal([]byte(text), &p.spec) == nil && p.spec != nil {
			plans = append(plans, p)
		}
	}
	return plans
}

// comparePlans reports the stores whose plan of an experiment differs from the plan of its latest
// run.
func (b *rebuilder) comparePlans(all []planOf) {
	if b.PlanConflict == nil {
		return
	}
	kept := make(map[string]planOf)
	for _, p := range all {
		if k, ok := kept[p.experiment]; !ok || k.before(p) {
			kept[p.experiment] = p
		}
	}
	for _, p := range all {
		k := kept[p.experiment]
		if fields := differ(k, p); len(fields) > 0 {
			c := PlanConflict{p.experiment, k.source, p.source, fields}
			b.calls = append(b.calls, func() { b.PlanConflict(c) })
		}
	}
}

// before orders plans by the start of their run, and by the run's ID if that is equal.
func (p planOf) before(q planOf) bool {
	return cmp.Or(
		strings.Compare(p.started, q.started),
		strings.Compare(string(p.source.Run), string(q.source.Run)),
	) < 0
}

// differ returns the fields in which two plans differ.
func differ(p, q planOf) (fields []string) {
	both := maps.Clone(p.spec)
	maps.Copy(both, q.spec)
	for name := range both {
		if !bytes.Equal(p.spec[name], q.spec[name]) {
			fields = append(fields, name)
		}
	}
	if p.library != q.library {
		fields = append(fields, "library")
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}
