package job

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/model/wire"
	"github.com/assay-eval/assay/internal/store"
)

const (
	// simSigma is the spread of the built-in models' latency.
	simSigma = 0.4
	// BuiltinConcurrency is the number of episodes of a built-in model that run at once.
	BuiltinConcurrency = 32
	builtinLane        = "builtin"
)

// An Env looks up environment variables, as [os.LookupEnv] does.
type Env func(name string) (value string, ok bool)

// Pools holds the lanes of each model: first their configuration and, after [Pools.Open], the
// pools that send requests.
type Pools struct {
	// Configs and ByModel have the models as keys. A model and its aliases have one pool.
	Configs map[string][]lane.Config
	ByModel map[string]*lane.Pool
	// owners has the models that own the lanes of others.
	owners map[string]string
	// clients are the providers of lanes, by the lane's name.
	clients map[string]levels
	// Agents has the models that are foreign agents.
	Agents map[string]Agent
	// Notes mention settings that an endpoint does not accept, and prices that are probably wrong.
	Notes []string
	// Secrets are the values of all keys, so that logs can leave them out.
	Secrets []string

	client *http.Client
}

// Pools finds the lanes of each model: the lanes in the experiment's providers file, or else the
// lane of a built-in model, which takes simLatency to reply in the median. It checks everything
// that can be checked before the first request.
func (j *Job) Pools(env Env, simLatency time.Duration) (*Pools, error) {
	var providers *plan.Providers
	if path := j.Experiment.Providers; path != "" {
		var err error
		if providers, err = plan.LoadProviders(path, env); err != nil {
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
	keys, err := readKeys(providers, lanes, env)
	if err != nil {
		return nil, err
	}
	agents := j.agents(providers)
	if server := j.Library.Catalog().Server(); server != nil && len(server.Answer) > 0 {
		for _, model := range slices.Sorted(maps.Keys(agents)) {
			if err := providers.CheckNext(agents[model].Name); err != nil {
				return nil, err
			}
		}
	}
	for _, a := range agents {
		for _, name := range a.Keys {
			value, _ := env(name) // it is set, as LoadProviders has checked
			keys[name] = wire.NewSecret(strings.TrimSpace(value))
		}
	}

	p := &Pools{
		Agents:  agents,
		Configs: make(map[string][]lane.Config), ByModel: make(map[string]*lane.Pool),
		owners: make(map[string]string), clients: make(map[string]levels),
	}
	for _, model := range j.Experiment.Asked() {
		for _, l := range lanes[model] {
			for _, doubt := range l.PriceDoubts() {
				p.addNote(doubt)
			}
		}
	}
	p.client = wire.NewClient(wire.ClientOptions{
		// The time limit of the lane ends a request first, because its error is more specific.
		ResponseHeaderTimeout: time.Duration(j.Experiment.Limits.Request) + 10*time.Second,
		MaxIdleConnsPerHost:   width(lanes),
		Secrets:               secrets(keys),
		Transport:             j.Transport,
	})
	for name := range keys {
		value, _ := env(name)
		p.Secrets = append(p.Secrets, strings.TrimSpace(value))
	}

	simulated := sim.New(j.Library.Catalog(), sim.Latency{Median: simLatency, Sigma: simSigma}).
		Knowing(j.Library.Answer).KnowingTasks(j.Library.Described)
	for _, model := range j.Experiment.Asked() {
		base := j.Experiment.Served(model)
		configs, err := j.remote(p, model, providers, lanes[model], keys, env)
		if err != nil {
			return nil, err
		}
		p.owners[model] = base
		if providers != nil {
			p.owners[model] = providers.Resolve(base)
		}
		if len(configs) == 0 {
			p.owners[model] = model
			configs = []lane.Config{{
				Name: builtinLane, Provider: levels{model: {base, simulated}}, Orders: base,
				Limits: lane.Limits{Concurrency: BuiltinConcurrency},
				Price:  lane.Price{Stated: true}, // it is free
			}}
		}
		p.Configs[model] = configs
	}
	p.noteJudges(j.Experiment)
	return p, nil
}

// noteJudges says what a user should know of models that judge: which of them nothing else checks, and
// which judge themselves.
func (p *Pools) noteJudges(e *plan.Experiment) {
	for _, judge := range e.Judges {
		if judge.Alone > 0 {
			p.addNote(fmt.Sprintf("the model %s is the only judge of %d of the library's tasks: nothing else says "+
				"whether its verdicts are right", judge.Model, judge.Alone))
		}
		for _, model := range e.Models {
			if p.owners[model] == p.owners[judge.Model] {
				p.addNote(fmt.Sprintf("%s is judged by the same model, %s, which may prefer its own work",
					model, judge.Model))
			}
		}
	}
}

// Builtin reports whether a model is part of this program.
func (p *Pools) Builtin(model string) bool {
	all := p.Configs[model]
	return len(all) == 1 && all[0].Name == builtinLane
}

// lanes returns the lanes of each model. The list is empty for a built-in model.
func (j *Job) lanes(providers *plan.Providers) (map[string][]plan.Lane, error) {
	byModel := make(map[string][]plan.Lane)
	var prices *plan.Prices
	var err error
	if providers != nil && providers.Prices != "" {
		if prices, err = plan.LoadPrices(providers.Prices); err != nil {
			return nil, err
		}
	}
	known := append([]string{}, sim.Names...)
	if providers != nil {
		known = append(known, providers.Models()...)
		known = slices.AppendSeq(known, maps.Keys(providers.Agents))
	}
	for _, model := range j.Experiment.Asked() {
		base := j.Experiment.Served(model)
		if providers != nil {
			byModel[model] = providers.Lanes(base)
		}
		for i := range byModel[model] {
			if l := &byModel[model][i]; prices != nil && l.Serve.Price.Unknown() {
				if l.Serve.Price, err = prices.Of(*l); err != nil {
					return nil, err
				}
			}
		}
		if len(byModel[model]) > 0 || sim.Is(base) {
			continue
		}
		hint := assay.NameHint(base, withLevels(known, base))
		if providers == nil && !strings.HasPrefix(hint, "did") {
			hint = "list the model in a providers file, and name that file with --providers " +
				"or as `providers: providers.yaml` in the experiment file"
		}
		message := fmt.Sprintf("no provider serves model %s", base)
		return nil, j.Experiment.ModelError(model, message, hint)
	}
	return byModel, nil
}

// checkPrices returns an error if the experiment has a limit in dollars and a model has no
// price, because the limit would never be reached.
func (j *Job) checkPrices(lanes map[string][]plan.Lane) error {
	e := j.Experiment
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
	const hint = "write price: {input: 0.27, output: 1.10} next to the model's limits, " +
		"in dollars per million tokens, name a price list with prices: FILE, or limit tokens instead"
	for _, model := range e.Asked() {
		for _, l := range lanes[model] {
			if l.Serve.Price.Unknown() {
				message := fmt.Sprintf(
					"%s limits dollars, but model %s has no price at provider %s",
					field, model, l.Provider)
				return e.FieldError(field, message, hint)
			}
		}
	}
	return nil
}

// readKeys reads the keys of the lanes, and other secrets in their headers, from the environment.
func readKeys(
	providers *plan.Providers, lanes map[string][]plan.Lane, env Env,
) (map[string]wire.Secret, error) {
	keys := make(map[string]wire.Secret)
	for _, ls := range lanes {
		for _, l := range ls {
			for _, name := range l.Variables() {
				value, _ := env(name) // it is set, as LoadProviders has checked
				keys[name] = wire.NewSecret(strings.TrimSpace(value))
			}
			if _, ok := keys[l.KeyName]; ok || l.KeyName == plan.NoKey {
				continue
			}
			value, ok := env(l.KeyName)
			if value = strings.TrimSpace(value); !ok || value == "" {
				return nil, providers.KeyError(l,
					fmt.Sprintf("environment variable %s is not set", l.KeyName),
					fmt.Sprintf("export %s=... with the key of provider %s", l.KeyName, l.Provider))
			}
			keys[l.KeyName] = wire.NewSecret(value)
		}
	}
	return keys, nil
}

func secrets(keys map[string]wire.Secret) []wire.Secret {
	var all []wire.Secret
	for _, s := range keys {
		all = append(all, s)
	}
	return all
}

// width returns the largest number of requests that all lanes can have in flight.
func width(lanes map[string][]plan.Lane) int {
	n := 0
	for _, ls := range lanes {
		for _, l := range ls {
			n += l.Serve.Limits.Widest()
		}
	}
	return max(n, 1)
}

// decidesThinking reports whether a setting decides how a model thinks or acts. Models are compared
// by these, so they are never left out.
func decidesThinking(setting string) bool {
	return setting == "effort" || setting == "thinking" || setting == "tool_choice"
}

// remote returns the configuration of a model's lanes at its providers.
func (j *Job) remote(
	p *Pools, model string, providers *plan.Providers, lanes []plan.Lane,
	keys map[string]wire.Secret, env Env,
) ([]lane.Config, error) {
	sampling := j.Experiment.SamplingOf(model)
	var configs []lane.Config
	for _, l := range lanes {
		header, err := header(l, sampling, env)
		if err != nil {
			return nil, providers.LaneError(l, err)
		}
		kind, _ := protocol.Find(l.Endpoint.Protocol) // checked when the file was read
		keyName := l.KeyName
		if keyName == plan.NoKey {
			keyName = ""
		}
		client, err := kind.New(wire.Config{
			BaseURL: l.Endpoint.BaseURL, Key: keys[l.KeyName], KeyName: keyName,
			Deployment: l.Deployment, APIVersion: l.Endpoint.APIVersion, Header: header,
			Client: p.client, Secrets: secrets(keys),
		})
		if err != nil {
			return nil, providers.LaneError(l, err)
		}
		unsent := client.Omits(assay.Request{Sampling: sampling})
		if i := slices.IndexFunc(unsent, decidesThinking); i >= 0 {
			message := fmt.Sprintf("%s has no %s, so its results would be filed under a setting "+
				"that was not used", l.Name(), unsent[i])
			return nil, j.Experiment.ModelError(model, message,
				"docs/protocols.md lists the settings of each protocol; "+
					"effort exists in all of them")
		}
		if len(unsent) > 0 {
			p.addNote(fmt.Sprintf("%s does not accept %s, so requests leave it out",
				l.Name(), strings.Join(unsent, ", ")))
		}
		if p.clients[l.Name()] == nil {
			p.clients[l.Name()] = make(levels)
		}
		p.clients[l.Name()][model] = level{j.Experiment.Served(model), client}
		configs = append(configs, lane.Config{
			Name: l.Name(), Provider: p.clients[l.Name()], Limits: l.Serve.Limits,
			Price: l.Serve.Price, CachedFree: kind.CachedFree, Orders: l.Deployment, Serves: l.Serve.Serves,
			Origin: client.Origin(), Address: client.BaseURL,
			FirstReply: time.Duration(l.Serve.FirstReply),
		})
	}
	return configs, nil
}

// addNote adds a note, unless another level has given it.
func (p *Pools) addNote(text string) {
	if !slices.Contains(p.Notes, text) {
		p.Notes = append(p.Notes, text)
	}
}

// Open creates the pools of all models.
func (p *Pools) Open(options lane.Options) {
	shared := make(map[string]*lane.Pool)
	for model, configs := range p.Configs {
		owner := p.owners[model]
		if shared[owner] == nil {
			shared[owner] = lane.NewPool(owner, configs, options)
		}
		p.ByModel[model] = shared[owner]
	}
}

// Apart leaves out the models that share the pool of an earlier one.
func (p *Pools) Apart(models []string) (apart []string) {
	known := make(map[string]bool)
	for _, model := range models {
		if owner := p.owners[model]; !known[owner] {
			known[owner] = true
			apart = append(apart, model)
		}
	}
	return apart
}

// Close closes idle connections.
func (p *Pools) Close() { p.client.CloseIdleConnections() }

// Windowed reports whether a lane has a limit for some span of time.
func (p *Pools) Windowed() bool {
	for _, configs := range p.Configs {
		if slices.ContainsFunc(configs, func(c lane.Config) bool { return c.Limits.Windowed() }) {
			return true
		}
	}
	return false
}

// Recall adds what lanes have used within the last 24 hours to the configurations of lanes with
// limits for a span of time. It is known from the log of sent requests. Of a lane that the log does
// not know, the stored attempts count.
func (p *Pools) Recall(ctx context.Context, db *store.DB) error {
	if !p.Windowed() {
		return nil
	}
	now := time.Now()
	sent, err := db.OpenSentLog()
	if err != nil {
		return err
	}
	stored, err := db.Spent(ctx, now.Add(-24*time.Hour))
	if err := errors.Join(err, sent.Close()); err != nil {
		return err
	}
	for _, configs := range p.Configs {
		for i := range configs {
			c := &configs[i]
			spent := stored[c.Name]
			if sent.Knows(c.Name) {
				spent = sent.Recall(c.Name, now)
			}
			for _, s := range spent {
				c.Spent = append(c.Spent, lane.Spent(s))
			}
		}
	}
	return nil
}

// Prices returns the price per million tokens of each model at each of its lanes, as JSON.
func (p *Pools) Prices() json.RawMessage {
	prices := make(map[string]map[string]lane.Price)
	for model, configs := range p.Configs {
		prices[model] = make(map[string]lane.Price)
		for _, c := range configs {
			if !c.Price.Unknown() {
				prices[model][c.Name] = c.Price
			}
		}
	}
	text, err := json.Marshal(prices)
	if err != nil {
		panic("job: prices: " + err.Error())
	}
	return text
}

// Serves returns the model names that responses may bear, for each model.
func (p *Pools) Serves() map[string][]string {
	names := make(map[string][]string)
	for model, configs := range p.Configs {
		for _, c := range configs {
			names[model] = append(append(names[model], c.Orders), c.Serves...)
		}
		slices.Sort(names[model])
		names[model] = slices.Compact(names[model])
	}
	return names
}
