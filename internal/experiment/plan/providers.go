package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/model/protocol"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// Providers is a providers file. It describes where models are served, with
// which keys and within which limits.
type Providers struct {
	Providers map[string]Endpoint `yaml:"providers"`
	// Agents are foreign agents, by the name under which their results are filed.
	Agents map[string]AgentSpec `yaml:"agents"`
	// Prices is the path of a price list for models without a price here, or "".
	Prices string `yaml:"prices"`

	doc *yamldoc.Document
}

// NoKey stands for the key of a server that does not need one.
const NoKey = "none"

// An Endpoint is one provider in the file.
type Endpoint struct {
	// Protocol is one of [protocol.Names].
	Protocol   string `yaml:"protocol"`
	BaseURL    string `yaml:"base_url"`
	APIVersion string `yaml:"api_version"`
	// Keys are the names of environment variables that hold the API keys, or [NoKey] alone.
	Keys Names `yaml:"keys"`
	// Headers are sent with every request. ${NAME} stands for an environment variable.
	Headers map[string]string `yaml:"headers"`
	Models  map[string]Serve  `yaml:"models"`
}

// A Serve describes how an endpoint serves one model.
type Serve struct {
	// Alias is the model that this is another name for. They share its lanes.
	Alias string `yaml:"alias"`
	// Deployments are the endpoint's names for its copies of the model. Each is a separate lane.
	// The default is the model's own name.
	Deployments []string `yaml:"deployments"`
	// Headers are sent in addition to the endpoint's.
	Headers map[string]string `yaml:"headers"`
	// Serves are further names that a response may give as its model.
	Serves []string    `yaml:"serves"`
	Limits lane.Limits `yaml:"limits"`
	// FirstReply is how long a lane waits for the first reply of an endpoint that is
	// busy or loads the model.
	FirstReply Duration   `yaml:"first_reply"`
	Price      lane.Price `yaml:"price"`
	PublicName `yaml:",inline"`
}

// A Lane is one combination of endpoint, key and deployment that serves a
// model.
type Lane struct {
	Provider, KeyName, Model, Deployment string
	Endpoint                             Endpoint
	Serve                                Serve
}

// Name returns the lane's readable name: provider/key/deployment.
func (l Lane) Name() string { return l.Provider + "/" + l.KeyName + "/" + l.Deployment }

// LoadProviders reads a providers file. It replaces ${NAME} in addresses by
// environment variables, which it looks up with getenv (usually os.LookupEnv).
// It does not read the API keys.
func LoadProviders(path string, getenv func(string) (string, bool)) (*Providers, error) {
	doc, err := readDocument(path)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && e.Line == 0 {
			e.Hint = "check --providers, or providers: in the experiment file, whose path is relative to that file"
			return nil, e
		}
		return nil, err
	}
	p := &Providers{doc: doc}
	if err := doc.Decode(p); err != nil {
		return nil, err
	}
	if p.Prices != "" {
		p.Prices = relative(doc.Dir, p.Prices)
	}
	if len(p.Providers) == 0 && len(p.Agents) == 0 {
		return nil, assay.WithHint(doc.At("$.providers", "no providers are listed", ""), assay.HintExample)
	}
	for _, name := range slices.Sorted(maps.Keys(p.Providers)) {
		e := p.Providers[name]
		if err := p.check(name, &e, getenv); err != nil {
			return nil, err
		}
		p.Providers[name] = e
	}
	if err := cmp.Or(p.checkIdentities(), p.checkAgents(getenv)); err != nil {
		return nil, err
	}
	if _, err := p.publicNames(); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Providers) check(name string, e *Endpoint, getenv func(string) (string, bool)) error {
	at := func(field, message, hint string) error {
		return p.doc.At("$.providers."+strconv.Quote(name)+field, message, hint)
	}
	e.Protocol = cmp.Or(e.Protocol, protocol.OpenAI)
	kind, ok := protocol.Find(e.Protocol)
	if !ok {
		return at(".protocol", fmt.Sprintf("unknown protocol %q", e.Protocol),
			assay.NameHint(e.Protocol, protocol.Names()))
	}
	var err error
	if e.BaseURL, err = expandEnv(e.BaseURL, getenv); err != nil {
		return at(".base_url", err.Error(), "set the variable, or write the address into the file")
	}
	if e.BaseURL == "" {
		return at("", fmt.Sprintf("provider %s needs a base_url", name),
			"for example base_url: "+kind.BaseURL)
	}
	u, err := url.Parse(e.BaseURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return at(".base_url", "the address does not start with http:// or https://",
			"for example base_url: https://api.example.com/v1")
	}
	if !portInRange(u) {
		return at(".base_url", fmt.Sprintf("there is no port %s", u.Port()), "ports are 1 to 65535")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return bare(at(".base_url", "the address has a part that may hold a secret: a user, a query or "+
			"a fragment", "write the part before it; a key belongs in a variable that keys: names, or "+
			"into headers as ${NAME}"))
	}
	if kind.Versioned && e.APIVersion == "" {
		return at("", fmt.Sprintf("provider %s needs an api_version", name),
			"for example api_version: 2025-04-01-preview")
	}
	if len(e.Keys) == 0 {
		return at(".keys", fmt.Sprintf("provider %s lists no keys", name),
			"write keys: [MY_KEY], where MY_KEY is an environment variable that holds the key, "+
				"or keys: none for a server without keys")
	}
	for i, k := range e.Keys {
		if k == NoKey && len(e.Keys) == 1 {
			break
		}
		if slices.Index(e.Keys, k) < i {
			return at(fmt.Sprintf(".keys[%d]", i), "this key is listed twice",
				"remove it, because two lanes would share its limits")
		}
		if !variableText.MatchString(k) || yamldoc.IsKey(k) {
			return bare(at(fmt.Sprintf(".keys[%d]", i),
				"this is not the name of an environment variable",
				"do not write keys into files: export the key as a variable and write the "+
					"variable's name"))
		}
	}
	place := "$.providers." + strconv.Quote(name)
	if err := p.checkHeaders(place+".headers", e.Headers, getenv); err != nil {
		return err
	}
	for _, model := range slices.Sorted(maps.Keys(e.Models)) {
		at := place + ".models." + strconv.Quote(model) + ".headers"
		if err := p.checkHeaders(at, e.Models[model].Headers, getenv); err != nil {
			return err
		}
	}
	return p.checkModels(name, e)
}

// portInRange reports whether the port of an address exists, or is the default.
func portInRange(u *url.URL) bool {
	n, err := strconv.Atoi(u.Port())
	return u.Port() == "" || err == nil && n >= 1 && n <= 65535
}

// bare leaves out the line that an error points at, because the line has a secret.
func bare(err error) error {
	if e, ok := err.(*Error); ok {
		return e.Bare()
	}
	return err
}

func (p *Providers) checkModels(name string, e *Endpoint) error {
	if len(e.Models) == 0 {
		return p.doc.At("$.providers."+strconv.Quote(name)+".models",
			fmt.Sprintf("provider %s lists no models", name), "write models: {NAME: {}}")
	}
	for _, model := range slices.Sorted(maps.Keys(e.Models)) {
		s := e.Models[model]
		place := "$.providers." + strconv.Quote(name) + ".models." + strconv.Quote(model)
		for _, b := range lane.Buckets {
			if *s.Limits.Of(b) < 0 {
				return p.doc.At(place+".limits."+string(b), fmt.Sprintf("limits.%s is negative", b),
					"remove it if you do not know the limit; the lane finds it out")
			}
		}
		for i, name := range s.Deployments {
			if slices.Index(s.Deployments, name) < i {
				return p.doc.At(fmt.Sprintf("%s.deployments[%d]", place, i), "deployment "+name+" is listed twice",
					"remove it, because two lanes would share its limits")
			}
		}
		if s.FirstReply < 0 {
			return p.doc.At(place+".first_reply", "first_reply is negative",
				"remove it; a lane waits five minutes for the first reply")
		}
		if p.doc.Has(place + ".price") {
			if err := checkPrice(p.doc, place, "price", model, &s.Price); err != nil {
				return err
			}
		}
		e.Models[model] = s
	}
	return nil
}

// variableText is stricter than operating systems are, so that a key pasted in
// place of its name is refused.
var variableText = regexp.MustCompile(`^[A-Z_][A-Z0-9_]{0,63}$`)

var envReference = regexp.MustCompile(`\$\{([^}]*)\}`)

func expandEnv(s string, getenv func(string) (string, bool)) (string, error) {
	var missing string
	out := envReference.ReplaceAllStringFunc(s, func(ref string) string {
		name := ref[2 : len(ref)-1]
		v, ok := getenv(name)
		if !ok || v == "" {
			missing = name
		}
		return v
	})
	if missing != "" {
		return "", fmt.Errorf("environment variable %s is not set", missing)
	}
	return out, nil
}

// Lanes returns the lanes of a model over all providers, sorted by provider
// name. The list is empty if no provider serves the model.
func (p *Providers) Lanes(model string) []Lane {
	model = p.Resolve(model)
	var lanes []Lane
	for _, name := range slices.Sorted(maps.Keys(p.Providers)) {
		e := p.Providers[name]
		s, ok := e.Models[model]
		if !ok {
			continue
		}
		for _, d := range s.names(model) {
			for _, k := range e.Keys {
				lanes = append(lanes, Lane{
					Provider: name, KeyName: k, Model: model, Deployment: d, Endpoint: e, Serve: s,
				})
			}
		}
	}
	return lanes
}

// Models lists all models that the providers serve.
func (p *Providers) Models() []string {
	var names []string
	for _, e := range p.Providers {
		for m := range e.Models {
			names = append(names, m)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// LaneError returns an error that points at the provider of a lane in the file.
func (p *Providers) LaneError(l Lane, err error) error {
	message, hint, _ := strings.Cut(err.Error(), "\nhint: ")
	return p.doc.AtKey("$.providers", l.Provider, "lane "+l.Name()+": "+message, hint)
}

// KeyError returns an error that points at a key in the file.
func (p *Providers) KeyError(l Lane, message, hint string) error {
	i := slices.Index(l.Endpoint.Keys, l.KeyName)
	return p.doc.At(fmt.Sprintf("$.providers.%s.keys[%d]", strconv.Quote(l.Provider), i), message, hint)
}
