package query

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
)

// programs returns the programs of the agents among the experiment's models in all runs of a store,
// oldest first. Runs that do not know an agent's program are left out.
func (x *Experiment) programs(ctx context.Context, db *store.DB) (
	byModel map[string][]report.Program, err error,
) {
	type spec struct {
		Models []string `json:"models"`
		Levels map[string]struct {
			Model string `json:"model"`
		} `json:"levels"`
		Agents map[string]struct {
			Program map[string]string `json:"program"`
		} `json:"agents"`
	}
	var mine spec
	if json.Unmarshal(x.Stored.Spec, &mine) != nil || len(mine.Agents) == 0 {
		return nil, nil
	}
	runs, err := db.Runs(ctx, "")
	if err != nil {
		return nil, err
	}
	plans, err := db.Plans(ctx)
	if err != nil {
		return nil, err
	}
	byModel = make(map[string][]report.Program)
	for _, r := range runs {
		var s spec
		if json.Unmarshal(plans[r.ID].Spec, &s) != nil {
			continue
		}
		for _, model := range mine.Models {
			name := cmp.Or(mine.Levels[model].Model, model)
			if files := s.Agents[name].Program; len(files) > 0 {
				byModel[model] = append(byModel[model], report.Program{Run: r.ID, Files: files})
			}
		}
	}
	return byModel, nil
}
