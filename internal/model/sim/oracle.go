package sim

import (
	"context"

	"github.com/assay-eval/assay"
)

// oracle is an agent that knows the answer.
type oracle struct {
	models      *Models
	required    []string
	reliability float64
}

// Oracle returns an agent that knows the tools a task requires, their order and their reliability,
// and follows the best policy. It needs no plan and takes no time. Its rate of full success equals
// the planner's prediction.
func (m *Models) Oracle(required []string, reliability float64) assay.Provider {
	return &oracle{m, required, reliability}
}

// Chat implements [assay.Provider].
func (o *oracle) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	if ctx.Err() != nil {
		return &assay.Response{}, ended(ctx)
	}
	v := newView(req, o.models.catalog)
	v.plan, v.reliability = []move{}, o.reliability
	for _, tool := range o.required {
		v.plan = append(v.plan, move{text: tool})
	}
	reply := o.models.optimal(v)
	return &assay.Response{
		Message: reply, ServedModel: req.Model, Usage: usage(req, reply), Waits: assay.Waits{
			Requests: 1,
		},
	}, nil
}
