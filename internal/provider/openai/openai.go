// Package openai asks models that speak OpenAI's chat completions: OpenAI
// itself, compatible gateways and Azure deployments.
//
// It owns the wire format, the classification of everything that can go wrong
// on the wire into an [assay.Fault], and the HTTP client that does so within
// deadlines and never shows a key. It does not retry, wait, pace, price or
// check which model answered; a lane does.
//
// The official SDK sends and decodes. Its retries are off, it reads nothing
// from the environment, and it sees a response only after the body is read
// whole, bounded, cleaned of secrets and known to be JSON.
package openai

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/assay-eval/assay"
)

const (
	defaultBaseURL    = "https://api.openai.com/v1"
	defaultAPIVersion = "2024-10-21"
)

// Config says how one deployment is reached with one key. Printing it in any
// way shows no secret.
type Config struct {
	// BaseURL is what comes before "/chat/completions", by default OpenAI's
	// own "https://api.openai.com/v1". For Azure it is the resource's
	// endpoint, without "/openai", and has no default.
	BaseURL string
	// Key is sent as a bearer token, for Azure as the header api-key. Without
	// one no credential is sent, which suits a server of one's own.
	Key Secret
	// KeyName is the environment variable that held Key. Messages name it.
	KeyName string
	// Deployment is what the endpoint calls the model. It has no default.
	Deployment string
	// Azure selects Azure's addresses and header.
	Azure bool
	// APIVersion is Azure's api-version, by default "2024-10-21".
	APIVersion string
	// Client is shared by all providers of a process and made by [NewClient].
	// By default the provider has one of its own. Redirects are never
	// followed, whatever the client says.
	Client *http.Client
	// Secrets are all secrets of the process beside Key. None of them leaves
	// this package, even if an endpoint echoes it.
	Secrets []Secret
}

func (c Config) String() string {
	kind := "openai"
	if c.Azure {
		kind = "azure"
	}
	return fmt.Sprintf("%s %s deployment %q key %s", kind, redactURL(c.BaseURL), c.Deployment, c.KeyName)
}

// Format prints [Config.String] for every verb.
func (c Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue logs [Config.String].
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Provider is one deployment, asked with one key. It is safe for concurrent
// use.
type Provider struct {
	cfg     Config
	scrub   *scrubber
	service sdk.ChatCompletionService
	// functions holds what was sent as tools.
	functions functionCache
	// learned holds the parameters that the endpoint has refused so far, a
	// paramSet.
	learned atomic.Uint32
}

var _ assay.Provider = (*Provider)(nil)

// New returns the provider that cfg describes. It does no I/O.
func New(cfg Config) (*Provider, error) {
	if err := cfg.setDefaults(); err != nil {
		return nil, err
	}
	p := &Provider{
		cfg:   cfg,
		scrub: newScrubber(append(slices.Clone(cfg.Secrets), cfg.Key)),
	}
	opts := []option.RequestOption{
		option.WithBaseURL(cfg.endpoint()),
		option.WithHTTPClient(guarded(cfg.Client, p.scrub)),
		option.WithMaxRetries(0),
	}
	switch {
	case cfg.Azure:
		opts = append(opts, option.WithQuery("api-version", cfg.APIVersion))
		if !cfg.Key.IsZero() {
			opts = append(opts, option.WithHeader("api-key", cfg.Key.reveal()))
		}
	case !cfg.Key.IsZero():
		opts = append(opts, option.WithAPIKey(cfg.Key.reveal()))
	}
	p.service = sdk.NewChatCompletionService(opts...)
	return p, nil
}

// setDefaults fills what is unset and refuses what cannot work.
func (c *Config) setDefaults() error {
	if c.BaseURL == "" && !c.Azure {
		c.BaseURL = defaultBaseURL
	}
	if c.APIVersion == "" {
		c.APIVersion = defaultAPIVersion
	}
	if c.Client == nil {
		c.Client = NewClient(ClientOptions{})
	}
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if err := checkBaseURL(c.BaseURL); err != nil {
		return err
	}
	if c.Deployment == "" {
		return errors.New("a provider needs a deployment: what its endpoint calls the model")
	}
	key := c.Key.reveal()
	if key == "" && c.KeyName != "" {
		return fmt.Errorf("the variable %s is empty\nhint: set it to the key of %s", c.KeyName, c.BaseURL)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("the key in %s holds a blank, a line break or another character that no key has\nhint: set the variable again, without quotes or a line end in it", c.KeyName)
	}
	return nil
}

// checkBaseURL never repeats a part of the URL that may hold a credential.
func checkBaseURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the base URL is not an http or https address\nhint: it looks like https://host/v1")
	case u.User != nil:
		return fmt.Errorf("the base URL at %s holds a user or a password\nhint: give credentials as keys", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the base URL at %s has a query or a fragment\nhint: give the part before the question mark", u.Host)
	case strings.HasSuffix(u.Path, "/chat/completions"):
		return fmt.Errorf("the base URL at %s ends in /chat/completions\nhint: leave that part out", u.Host)
	}
	return nil
}

func (c *Config) endpoint() string {
	if c.Azure {
		return c.BaseURL + "/openai/deployments/" + url.PathEscape(c.Deployment) + "/"
	}
	return c.BaseURL + "/"
}

func (p *Provider) String() string { return p.cfg.String() }

// Format prints [Config.String] for every verb.
func (p *Provider) Format(f fmt.State, _ rune) { io.WriteString(f, p.String()) }

// LogValue logs [Config.String].
func (p *Provider) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Chat asks for one turn in one HTTP exchange. There is one exception: when
// the endpoint refuses a sampling parameter by name, Chat repeats the request
// without it at once and, if that works, remembers the refusal. A provider
// meets this once for a parameter.
func (p *Provider) Chat(ctx context.Context, req assay.Request) (assay.Response, error) {
	var news paramSet
	for {
		body, sent, err := p.encode(req, p.unsent(req.Model)|news)
		if err != nil {
			return assay.Response{}, &assay.Fault{Kind: assay.Harness, Detail: p.detail(err.Error(), ""), Err: err}
		}
		resp, err := p.exchange(ctx, body, len(req.Messages))
		refused := refusedParam(err) & sent
		if refused == 0 {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest {
				p.learned.Or(uint32(news))
			}
			return resp, err
		}
		news |= refused
	}
}

// Omits names the sampling parameters that req sets and that the endpoint is
// not sent, because its model refuses them.
func (p *Provider) Omits(req assay.Request) []string {
	sent := new(wireRequest).setSampling(req.Sampling, p.unsent(req.Model))
	return missing(req.Sampling, sent)
}

// unsent is what requests for model go without: what its dialect says and
// what the endpoint taught us.
func (p *Provider) unsent(model string) paramSet {
	return dialectOf(p.cfg.Deployment) | dialectOf(model) | paramSet(p.learned.Load())
}

// exchange sends a body. turn numbers the calls that come without an ID.
func (p *Provider) exchange(ctx context.Context, body []byte, turn int) (assay.Response, error) {
	var quotas []assay.QuotaState
	classify := func(r *http.Request, next option.MiddlewareNext) (*http.Response, error) {
		return p.classify(r, next, &quotas)
	}
	completion, err := p.service.New(ctx, sdk.ChatCompletionNewParams{},
		option.WithRequestBody("application/json", body), option.WithMiddleware(classify))
	if err != nil {
		return assay.Response{Quotas: quotas}, p.faultOf(ctx, err)
	}
	resp, err := p.decode(completion, turn)
	resp.Quotas = quotas
	return resp, err
}
