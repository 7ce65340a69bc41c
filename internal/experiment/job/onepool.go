package job

import (
	"context"
	"errors"
	"time"

	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/task/library"
)

// One is a model that belongs to no experiment.
type One struct {
	// Name appears in errors.
	Name, Model string
	Providers   string // a path; empty for built-in models
}

// OnePool opens the lanes of one model. It also returns the function that closes them.
func OnePool(
	ctx context.Context, one One, env func(string) (string, bool), simLatency time.Duration,
) (*lane.Pool, func() error, error) {
	e := &plan.Experiment{
		Name: one.Name, Limits: plan.Limits{Request: plan.DefaultRequest},
	}
	if err := e.SetModels([]string{one.Model}); err != nil {
		return nil, nil, err
	}
	if one.Providers != "" {
		e.SetProviders(one.Providers)
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
	return pools.ByModel[one.Model], func() error { pools.Close(); return lib.Close() }, nil
}
