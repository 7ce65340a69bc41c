package episode

import (
	"cmp"
	"slices"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/adapter"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// An offer is another interface of a task's tools than their own. A nil one is their own. Episodes
// share it and never change it.
type offer struct {
	adapter *adapter.Adapter
	// functions returns all tools as functions.
	functions func() []assay.Function
}

func newOffer(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) *offer {
	if trial.Interface == "" {
		return nil
	}
	o := &offer{adapter: adapter.Of(trial.Interface, catalog, task)}
	worldName := trial.World
	o.functions = sync.OnceValue(func() []assay.Function { return functionsOf(worldName, o.adapter, catalog.All()) })
	return o
}

// of returns the adapter, or nil.
func (o *offer) of() *adapter.Adapter {
	if o == nil {
		return nil
	}
	return o.adapter
}

// plan returns a plan with the names and values that the interface has.
func (o *offer) plan(p *workflow.Plan) *workflow.Plan {
	if o == nil || p == nil {
		return p
	}
	offered := *p
	offered.Steps = slices.Clone(p.Steps)
	for i := range offered.Steps {
		s := &offered.Steps[i]
		s.Purpose = o.adapter.Text(s.Purpose)
		s.Arguments, s.Gives = o.adapter.Offer(s.Tool, s.Arguments), o.adapter.Gives(s.Gives)
	}
	return &offered
}

// offers keeps the latest offers, because repeats, variants and models share tasks. It is safe for
// concurrent use.
type offers struct{ known *lru.Cache[offerKey, *offer] }

type offerKey struct {
	task         *assay.Task
	world, level string
}

const maxOffers = 512

func newOffers() *offers {
	known, err := lru.New[offerKey, *offer](maxOffers)
	if err != nil {
		panic("episode: " + err.Error()) // the size is positive
	}
	return &offers{known}
}

func (all *offers) of(catalog *assay.Catalog, trial *assay.Trial, task *assay.Task) *offer {
	if trial.Interface == "" {
		return nil
	}
	key := offerKey{task, trial.World, trial.Interface}
	o, ok := all.known.Get(key)
	if !ok {
		o = newOffer(catalog, trial, task)
		all.known.Add(key, o)
	}
	return o
}

// A wording is a call as the model wrote it, and its result as it was shown.
type wording struct{ written, shown string }

// call executes a call, which the model wrote for the interface that it is offered. It returns the
// result, or the error, as the model is shown it.
func (e *episode) call(turn int, tool, written string) (r assay.CallRecord, shown string, err error) {
	if e.offer == nil {
		r, err = e.world.Call(turn, tool, written)
		return r, cmp.Or(r.Output, r.Error), err
	}
	a := e.offer.adapter
	arguments, mistake := a.Read(tool, written)
	if w, ok := e.world.(spec.Refuser); ok && mistake != "" {
		r, err = w.Refuse(turn, tool, arguments, mistake)
		shown = r.Error
	} else {
		r, err = e.world.Call(turn, tool, arguments)
		shown = a.Error(tool, r.Error, r.Code == own.InvalidInput)
	}
	if err != nil {
		return r, "", err
	}
	if r.OK {
		shown = a.Output(r.Output)
	}
	w := wording{}
	if arguments != written {
		w.written = written
	}
	if r.OK && shown != r.Output {
		w.shown = shown
	}
	if e.worded == nil {
		e.worded = make(map[int]wording)
	}
	e.worded[len(e.world.Calls())-1] = w
	return r, shown, nil
}

// answer returns the last reply in the tools' own formats, or "" if it has no others.
func (o *offer) answer(messages []assay.Message) string {
	if o == nil {
		return ""
	}
	for _, m := range slices.Backward(messages) {
		if m.Role == assay.Assistant {
			if said := o.adapter.Said(m.Content); said != m.Content {
				return said
			}
			break
		}
	}
	return ""
}
