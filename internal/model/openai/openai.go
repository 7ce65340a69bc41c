// Package openai asks models that speak OpenAI's chat completions: OpenAI
// itself, compatible gateways and Azure deployments.
//
// It owns the wire format, the classification of everything that can go wrong
// on the wire into an [assay.Fault], and the HTTP client that does so within
// deadlines and never shows a key. It does not retry, wait, pace, price or
// check which model answered; a lane does.
//
// Encoding, sending and decoding are its own, and nothing sees a response
// before the body is read whole, bounded and cleaned of secrets. With 30 tools
// and 18 messages a call costs 53 µs of CPU here and 140 µs through the
// official SDK, and a request that waits for its reply holds 11 KB of heap and
// 2 KB of stack instead of 41 and 7. The SDK is the oracle of the tests: what
// is sent is what it would send, and what is read of a completion, in odd ones
// too, is what it would read.
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
	// By default the provider has one of its own. Of another client only the
	// transport is used: no redirect is followed.
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
	cfg   Config
	scrub *scrubber
	wire  *guard
	// url and header are the same in every request. header holds the key, and
	// prints as an address; nobody changes it.
	url    string
	header *http.Header
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
		cfg:    cfg,
		scrub:  newScrubber(append(slices.Clone(cfg.Secrets), cfg.Key)),
		url:    cfg.endpoint(),
		header: cfg.header(),
	}
	p.wire = guardOf(cfg.Client, p.scrub)
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
		return c.BaseURL + "/openai/deployments/" + url.PathEscape(c.Deployment) +
			"/chat/completions?api-version=" + url.QueryEscape(c.APIVersion)
	}
	return c.BaseURL + "/chat/completions"
}

func (c *Config) header() *http.Header {
	h := &http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}, "User-Agent": {"assay"}}
	switch key := c.Key.reveal(); {
	case key == "":
	case c.Azure:
		h.Set("Api-Key", key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
	return h
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
		resp, sent, err := p.exchange(ctx, &req, p.unsent(req.Model)|news)
		refused := refusedParam(err) & sent
		if refused == 0 {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest {
				p.learned.Or(uint32(news))
			}
			return *resp, err
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

// exchange sends req without the parameters in unsent and returns the reply,
// never nil, and the parameters that were sent. Ten thousand goroutines may
// wait in it, so that it and what it calls keep no large values on the stack.
func (p *Provider) exchange(ctx context.Context, req *assay.Request, unsent paramSet) (*assay.Response, paramSet, error) {
	post, sent, err := p.post(ctx, req, unsent)
	if err != nil {
		return &assay.Response{}, 0, &assay.Fault{Kind: assay.Harness, Detail: p.detail(err.Error(), ""), Err: err}
	}
	reply, body, err := p.wire.fetch(post)
	if err != nil {
		return &assay.Response{}, sent, p.transportFault(ctx, err)
	}
	resp, err := p.read(reply, body, len(req.Messages))
	return resp, sent, err
}

// post makes the HTTP request. Nothing in it keeps the encoded body once that
// is written: where a transport has to write it again, it is encoded again.
func (p *Provider) post(ctx context.Context, req *assay.Request, unsent paramSet) (*http.Request, paramSet, error) {
	body, sent, err := p.encode(req, unsent)
	if err != nil {
		return nil, 0, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, body)
	if err != nil {
		return nil, 0, err
	}
	post.Header = *p.header
	post.ContentLength = body.size()
	post.GetBody = func() (io.ReadCloser, error) {
		again, _, err := p.encode(req, unsent)
		return again, err
	}
	return post, sent, nil
}

// read classifies a response and decodes its completion. turn numbers the
// calls that come without an ID.
func (p *Provider) read(reply *http.Response, body []byte, turn int) (*assay.Response, error) {
	resp := &assay.Response{Quotas: quotaStates(reply.Header, p.cfg.Azure)}
	if f := p.responseFault(reply, body, resp.Quotas); f != nil {
		return resp, f
	}
	c, f := parseCompletion(body)
	if f != nil {
		return resp, f
	}
	return resp, p.decode(c, turn, resp)
}
