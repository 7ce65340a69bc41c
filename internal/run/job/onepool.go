package job

import (
	"context"
	"errors"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/task/library"
)

// OnePool opens the lanes of one model, which belongs to no experiment. It also returns the
// function that closes them. Name appears in errors. An empty providers path is for built-in
// models.
func OnePool(
	ctx context.Context, name, model, providers string,
	env func(string) (string, bool), simLatency time.Duration,
) (*lane.Pool, func() error, error) {
	e := &plan.Experiment{Name: name, Limits: plan.Limits{Request: plan.DefaultRequest}}
	if err := e.SetModels([]string{model}); err != nil {
		return nil, nil, err
	}
	if providers != "" {
		e.SetProviders(providers)
	}
	lib, err := library.Builtin(ctx)
	if err != nil {
		return nil, nil, err
	}
	j := &Job{Experiment: e, Library: lib}
	pools, err := j.Pools(env, simLatency)
	if err != nil {
		return nil, nil, errors.Join(err, lib.Close())
	}
	pools.Open(lane.Options{Request: time.Duration(e.Limits.Request)})
	return pools.ByModel[model], func() error { pools.Close(); return lib.Close() }, nil
}
