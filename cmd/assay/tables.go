package main

import (
	"context"
	"os"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/job"
	"github.com/assay-eval/assay/internal/store"
)

// designOf returns what reports need to know about an experiment besides its trials.
func designOf(j *job.Job) report.Design {
	d := report.Design{Categories: assay.ErrorCategories}
	for _, p := range j.Plan.Parts() {
		d.Parts = append(d.Parts, report.Part{
			Name: p.Name, Models: p.Models, Varies: p.Varies, Has: p.Has,
		})
	}
	for _, n := range j.Plan.NotApplicable() {
		d.LeftOut = append(d.LeftOut, report.LeftOut(n))
	}
	return d
}

// tablesOf returns the tables and warnings of an experiment's planned trials.
func tablesOf(ctx context.Context, j *job.Job, db *store.DB) (*report.Analysis, error) {
	prompts, err := promptsOf(ctx, j)
	if err != nil {
		return nil, err
	}
	return designOf(j).Analyze(j.Experiment.Name, j.Trials(),
		db.Verdicts(ctx, store.Filter{}), report.Beside{Prompts: prompts})
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
