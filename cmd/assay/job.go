package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/openai"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/run/gate"
	"github.com/assay-eval/assay/internal/run/plan"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// A job is an experiment with its tasks and planned trials.
type job struct {
	experiment *plan.Experiment
	library    *library.Library
	plan       *plan.Plan
}

// openJob plans an experiment over its library, or the first so many trials of
// each model; 0 for all.
func openJob(ctx context.Context, e *plan.Experiment, limit int) (*job, error) {
	lib, err := openLibrary(ctx, e.Library)
	if err != nil {
		return nil, err
	}
	p, err := e.Expand(ctx, lib.Refs, applies(lib, e.World))
	if err == nil {
		if limit > 0 {
			p = p.Limit(limit)
		}
		err = checkFunctions(e, lib.Catalog())
	}
	if err != nil {
		return nil, errors.Join(err, lib.Close())
	}
	return &job{experiment: e, library: lib, plan: p}, nil
}

// functionName is what endpoints accept as the name of a function.
var functionName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// checkFunctions refuses to list tools whose names no endpoint would accept.
func checkFunctions(e *plan.Experiment, catalog *assay.Catalog) error {
	if e.Tools != assay.Listed {
		return nil
	}
	for _, name := range catalog.Names() {
		if !functionName.MatchString(name) {
			return e.FieldError("tools", fmt.Sprintf("tool %q of library %s cannot be a function: its name is not of letters, digits, _ and -", name, e.Library),
				"write tools: discover, which takes any name")
		}
	}
	return nil
}

func openLibrary(ctx context.Context, name string) (*library.Library, error) {
	if name == plan.BuiltinLibrary {
		return library.Builtin(ctx)
	}
	return library.Open(ctx, name)
}

func (j *job) close() error { return j.library.Close() }

// applies says whether the flaw of a variant applies to a task of a library.
func applies(lib *library.Library, world string) plan.Applies {
	return func(ctx context.Context, ref assay.TaskRef, difficulty, variant string) (bool, error) {
		flaw, flawed := assay.FlawOf(variant)
		if !flawed {
			return true, nil
		}
		task, err := lib.Task(ctx, ref.ID, difficulty)
		if err != nil {
			return false, err
		}
		return workflow.Applies(lib.Catalog(), world, &task, flaw), nil
	}
}

// planned is the number of trials over all models.
func (j *job) planned() int {
	n := 0
	for _, m := range j.experiment.Models {
		n += j.plan.Planned(m)
	}
	return n
}

// design is what reports have to know of the experiment beside its trials.
func (j *job) design() report.Design {
	d := report.Design{Categories: assay.ErrorCategories}
	for _, p := range j.plan.Parts() {
		d.Parts = append(d.Parts, report.Part{Name: p.Name, Models: p.Models, Varies: p.Varies, Has: p.Has})
	}
	for _, n := range j.plan.NotApplicable() {
		d.LeftOut = append(d.LeftOut, report.LeftOut(n))
	}
	return d
}

// tables makes the tables of the experiment's planned trials from a store, with their
// alarms.
func (j *job) tables(ctx context.Context, db *store.DB) (*report.Analysis, error) {
	prompts, err := j.prompts(ctx)
	if err != nil {
		return nil, err
	}
	return j.design().Analyze(j.experiment.Name, j.trials(), db.Verdicts(ctx, store.Filter{}), report.Beside{Prompts: prompts})
}

// trials yields all planned trials, model by model.
func (j *job) trials() iter.Seq[assay.Trial] {
	return func(yield func(assay.Trial) bool) {
		for _, m := range j.experiment.Models {
			for t := range j.plan.Trials(m) {
				if !yield(t) {
					return
				}
			}
		}
	}
}

// judge tells a gate the outcomes that the store holds of the planned trials,
// if a stop rule asks for them.
func (j *job) judge(ctx context.Context, db *store.DB, g *gate.Gate) error {
	if j.experiment.Stop == (plan.StopRules{}) {
		return nil
	}
	outcomes := make(map[assay.TrialID]store.Outcome)
	for o, err := range db.Outcomes(ctx) {
		if err != nil {
			return err
		}
		outcomes[o.Trial] = o
	}
	for t := range j.trials() {
		if o, ok := outcomes[t.ID]; ok {
			g.Outcome(t.Cell, o.Level, o.ErrorCategory)
		}
	}
	return nil
}

// pools are the models' providers, with what has to be closed after the run.
type pools struct {
	configs map[string][]lane.Config // by model
	byModel map[string]*lane.Pool
	client  *http.Client
	// notes tell the user what is not as the files say.
	notes []string
	// secrets are the values of all keys, for what has to keep them out.
	secrets []string
}

func (p *pools) close() {
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
}

// serves returns the names that responses of each model may bear.
func (p *pools) serves() map[string][]string {
	names := make(map[string][]string)
	for model, configs := range p.configs {
		for _, c := range configs {
			names[model] = append(append(names[model], c.Orders), c.Serves...)
		}
		slices.Sort(names[model])
		names[model] = slices.Compact(names[model])
	}
	return names
}

// waits says what requests of a model wait for, "" for nothing.
func (p *pools) waits(model string) string {
	lanes, waiting := p.byModel[model].Status()
	if waiting.Requests == 0 {
		return ""
	}
	return waitText(lanes)
}

// waitText says which lane can start a request next, and what that waits for.
func waitText(lanes []lane.Status) string {
	var next lane.Status
	for _, l := range lanes {
		switch {
		case l.Closed != nil:
		case next.Name == "", !l.Until.IsZero() && (next.Until.IsZero() || l.Until.Before(next.Until)):
			next = l
		}
	}
	if next.Waits == "" {
		return ""
	}
	s := fmt.Sprintf("%s of %s", next.Waits, next.Name)
	if !next.Until.IsZero() {
		s += fmt.Sprintf(", next in %.0fs", max(0, time.Until(next.Until).Seconds()))
	}
	return s
}

// preparePools finds the lanes of each model. A model that a providers file
// serves is asked there; otherwise it has to be a built-in one. It checks
// everything that can be wrong before the first request.
func (j *job) preparePools(p *process, simLatency time.Duration) (*pools, error) {
	var providers *plan.Providers
	if path := j.experiment.Providers; path != "" {
		var err error
		if providers, err = plan.LoadProviders(path, p.env); err != nil {
			return nil, err
		}
	}
	lanes, err := j.lanes(providers)
	if err != nil {
		return nil, err
	}
	if err := j.checkPrices(lanes); err != nil {
		return nil, err
	}
	keys, err := readKeys(providers, lanes, p.env)
	if err != nil {
		return nil, err
	}
	out := &pools{configs: make(map[string][]lane.Config), byModel: make(map[string]*lane.Pool)}
	out.client = openai.NewClient(openai.ClientOptions{
		// A lane's own limit comes first, and says more.
		ResponseHeaderTimeout: time.Duration(j.experiment.Limits.Request) + 10*time.Second,
		MaxIdleConnsPerHost:   width(lanes),
		Secrets:               secrets(keys),
	})
	for name := range keys {
		value, _ := p.env(name)
		out.secrets = append(out.secrets, strings.TrimSpace(value))
	}
	agents := sim.New(j.library.Catalog(), sim.Latency{Median: simLatency, Sigma: simSigma})
	for _, model := range j.experiment.Models {
		configs, err := out.remote(lanes[model], keys, j.experiment.Sampling)
		if err != nil {
			return nil, err
		}
		if len(configs) == 0 {
			configs = []lane.Config{{
				Name: "builtin", Provider: agents, Orders: model, Limits: lane.Limits{Concurrency: builtinConcurrency},
			}}
		}
		out.configs[model] = configs
	}
	return out, nil
}

// open makes the pools.
func (p *pools) open(options lane.Options) {
	for model, configs := range p.configs {
		p.byModel[model] = lane.NewPool(model, configs, options)
	}
}

// recall gives the lanes what earlier runs learned, and what they spent today
// of a limit per day.
func (p *pools) recall(ctx context.Context, db *store.DB) error {
	learned, err := db.Learned(ctx)
	if err != nil {
		return err
	}
	var spent map[string][]store.Spent
	for _, configs := range p.configs {
		for i := range configs {
			c := &configs[i]
			for _, l := range learned {
				if n := c.Learned.Of(l.Bucket); l.Lane == c.Name && n != nil {
					*n = l.Value
				}
			}
			if c.Limits.RPD == 0 {
				continue
			}
			if spent == nil {
				if spent, err = db.Spent(ctx, time.Now().Add(-24*time.Hour)); err != nil {
					return err
				}
			}
			for _, s := range spent[c.Name] {
				c.Spent = append(c.Spent, lane.Spent{At: s.At, Requests: s.Requests})
			}
		}
	}
	return nil
}

// checkPrices refuses a bound in dollars on models that have no price: it
// would never be met.
func (j *job) checkPrices(lanes map[string][]plan.Lane) error {
	e := j.experiment
	field := ""
	switch {
	case e.Limits.USD > 0:
		field = "limits.usd"
	case e.Budget.USD > 0:
		field = "budget.usd"
	case e.Budget.PerModel.USD > 0:
		field = "budget.per_model.usd"
	case e.Budget.PerCell.USD > 0:
		field = "budget.per_cell.usd"
	default:
		return nil
	}
	for _, model := range e.Models {
		if len(lanes[model]) == 0 && e.Limits.USD == 0 {
			continue // built in, and free
		}
		for _, l := range lanes[model] {
			if l.Serve.Price == (lane.Price{}) {
				return e.FieldError(field, fmt.Sprintf("%s bounds dollars, but model %s has no price at provider %s", field, model, l.Provider),
					"write price: {input: 0.27, output: 1.10} beside its limits, in dollars per million tokens, or bound tokens")
			}
		}
	}
	return nil
}

// simSigma spreads the built-in models' latency.
const simSigma = 0.4

// builtinConcurrency is how many episodes of a built-in model run at once.
const builtinConcurrency = 16

// lanes returns the lanes of each model, none for a built-in one.
func (j *job) lanes(providers *plan.Providers) (map[string][]plan.Lane, error) {
	byModel := make(map[string][]plan.Lane)
	known := append([]string{}, sim.Names...)
	if providers != nil {
		known = append(known, providers.Models()...)
	}
	for _, model := range j.experiment.Models {
		if providers != nil {
			byModel[model] = providers.Lanes(model)
		}
		if len(byModel[model]) > 0 || sim.Is(model) {
			continue
		}
		hint := assay.NameHint(model, known)
		if providers == nil && !strings.HasPrefix(hint, "did") {
			hint = "list the model in a providers file, and name that with --providers or as `providers: providers.yaml` in the experiment file"
		}
		return nil, j.experiment.ModelError(model, fmt.Sprintf("no provider serves model %s", model), hint)
	}
	return byModel, nil
}

// readKeys reads the keys that the lanes need from the environment.
func readKeys(providers *plan.Providers, lanes map[string][]plan.Lane, env func(string) (string, bool)) (map[string]openai.Secret, error) {
	keys := make(map[string]openai.Secret)
	for _, ls := range lanes {
		for _, l := range ls {
			if _, ok := keys[l.KeyName]; ok {
				continue
			}
			value, ok := env(l.KeyName)
			if value = strings.TrimSpace(value); !ok || value == "" {
				return nil, providers.KeyError(l, fmt.Sprintf("environment variable %s is not set", l.KeyName),
					fmt.Sprintf("export %s=... with the key of provider %s", l.KeyName, l.Provider))
			}
			keys[l.KeyName] = openai.NewSecret(value)
		}
	}
	return keys, nil
}

func secrets(keys map[string]openai.Secret) []openai.Secret {
	var all []openai.Secret
	for _, s := range keys {
		all = append(all, s)
	}
	return all
}

func width(lanes map[string][]plan.Lane) int {
	n := 0
	for _, ls := range lanes {
		for _, l := range ls {
			n += l.Serve.Limits.Widest()
		}
	}
	return max(n, 1)
}

// remote returns a model's lanes at its providers.
func (p *pools) remote(lanes []plan.Lane, keys map[string]openai.Secret, sampling assay.Sampling) ([]lane.Config, error) {
	var configs []lane.Config
	for _, l := range lanes {
		provider, err := openai.New(openai.Config{
			BaseURL: l.Endpoint.BaseURL, Key: keys[l.KeyName], KeyName: l.KeyName, Deployment: l.Deployment,
			Azure: l.Endpoint.Protocol == plan.Azure, APIVersion: l.Endpoint.APIVersion,
			Client: p.client, Secrets: secrets(keys),
		})
		if err != nil {
			return nil, fmt.Errorf("lane %s: %w", l.Name(), err)
		}
		if unsent := provider.Omits(assay.Request{Sampling: sampling}); len(unsent) > 0 {
			p.notes = append(p.notes, fmt.Sprintf("%s refuses %s, so it is asked without", l.Name(), strings.Join(unsent, ", ")))
		}
		configs = append(configs, lane.Config{
			Name: l.Name(), Provider: provider, Limits: l.Serve.Limits, Price: l.Serve.Price,
			Orders: l.Deployment, Serves: l.Serve.Serves,
		})
	}
	return configs, nil
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}
