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

// A PlanConflict is an experiment of which two stores have different plans. Those who
// read the new store go by the plan of the latest run; attempts at trials of the other
// are there and not shown, unless both plan them.
type PlanConflict struct {
	Experiment string    `json:"experiment"`
	Kept       PlanClaim `json:"kept"`
	Left       PlanClaim `json:"left"`
	// Fields are those of the experiment's file that differ, and "library".
	Fields []string `json:"fields"`
}

// A PlanClaim is the latest run of an experiment in a store.
type PlanClaim struct {
	Store string      `json:"store"`
	Run   assay.RunID `json:"run"`
}

// planOf is what a store shows as the plan of an experiment: that of its latest run.
type planOf struct {
	experiment, started string
	claim               PlanClaim
	spec                map[string]json.RawMessage
	library             string // name and digest
}

func plansOf(s *DB, runs map[int64]*foundRun) (plans []planOf) {
	latest := make(map[string]int64)
	for seq, r := range runs {
		name, _ := r.row[1].(string)
		latest[name] = max(latest[name], seq)
	}
	for _, name := range slices.Sorted(maps.Keys(latest)) {
		r := runs[latest[name]]
		p := planOf{experiment: name, started: r.started, claim: PlanClaim{s.path, assay.RunID(r.id)}}
		p.library = fmt.Sprint(r.row[3], " ", r.row[4])
		text, _ := r.row[10].(string)
		if json.Unmarshal([]byte(text), &p.spec) == nil && p.spec != nil { // else it is lost
			plans = append(plans, p)
		}
	}
	return plans
}

// comparePlans tells of the stores whose plan of an experiment is not that of its latest
// run.
func (b *rebuilder) comparePlans(all []planOf) {
	if b.PlanConflict == nil {
		return
	}
	kept := make(map[string]planOf)
	for _, p := range all {
		k, ok := kept[p.experiment]
		if !ok || cmp.Or(strings.Compare(k.started, p.started), strings.Compare(string(k.claim.Run), string(p.claim.Run))) < 0 {
			kept[p.experiment] = p
		}
	}
	for _, p := range all {
		k := kept[p.experiment]
		if fields := differ(k, p); len(fields) > 0 {
			b.PlanConflict(PlanConflict{Experiment: p.experiment, Kept: k.claim, Left: p.claim, Fields: fields})
		}
	}
}

// differ returns the fields in which two plans differ.
func differ(p, q planOf) (fields []string) {
	for _, specs := range [][2]map[string]json.RawMessage{{p.spec, q.spec}, {q.spec, p.spec}} {
		for name, value := range specs[0] {
			if !bytes.Equal(value, specs[1][name]) && !slices.Contains(fields, name) {
				fields = append(fields, name)
			}
		}
	}
	if p.library != q.library && !slices.Contains(fields, "library") {
		fields = append(fields, "library")
	}
	slices.Sort(fields)
	return fields
}
