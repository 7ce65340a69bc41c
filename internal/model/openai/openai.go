// Package openai is a client for OpenAI's chat completions protocol, which OpenAI,
// compatible gateways and Azure deployments speak.
//
// It owns the wire format, the classification of errors as an [assay.Fault], and
// an HTTP client that keeps deadlines and never reveals a key. It does not retry,
// wait, pace or price requests, and does not check which model answered. Package
// lane does that.
//
// Package plan lists the protocols of the providers file, and package job opens
// a client for each lane.
//
// It does not use the official SDK. A response is only passed on after its body
// has been read completely, within a size limit, and cleaned of secrets. With 30
// tools and 18 messages, a call costs 53 µs of CPU here and 140 µs with the SDK. A
// request waiting for its reply holds 11 KB of heap and 2 KB of stack instead of
// 41 KB and 7 KB. The tests use the SDK as an oracle: this package sends what the
// SDK would send, and reads from a completion, even an odd one, what the SDK would
// read.
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

// Config describes one deployment and its key. Printing it never reveals the key.
type Config struct {
	// BaseURL is the part before "/chat/completions". The default is OpenAI's
	// "https://api.openai.com/v1". For Azure it is the resource's endpoint without
	// "/openai", and is required.
	BaseURL string
	// Key is sent as a bearer token, or in the header api-key for Azure. If it is
	// empty, no credential is sent, for example to a local server.
	Key Secret
	// KeyName is the environment variable with the key, for use in messages.
	KeyName string
	// Deployment is the endpoint's name for the model. It is required.
	Deployment string
	// Azure selects Azure's URLs and header.
	Azure bool
	// APIVersion is Azure's api-version. The default is "2024-10-21".
	APIVersion string
	// Client should come from [NewClient] and be shared by all providers of a
	// process. The default is a new client. Only the transport of another client is
	// used, so redirects are never followed.
	Client *http.Client
	// Secrets are all other secrets of the process. They never leave this package,
	// even if an endpoint echoes them.
	Secrets []Secret
}

func (c Config) String() string {
	kind := "openai"
	if c.Azure {
		kind = "azure"
	}
	return fmt.Sprintf("%s %s deployment %q key %s",
		kind, redactURL(c.BaseURL), c.Deployment, c.KeyName)
}

// Format prints [Config.String] for every verb.
func (c Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue logs [Config.String].
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// Provider sends requests to one deployment with one key. It is safe for
// concurrent use.
type Provider struct {
	cfg   Config
	scrub *scrubber
	wire  *guard
	// url and header are the same in every request. header holds the key. It is a
	// pointer so that it prints as an address, and is never modified.
	url    string
	header *http.Header
	// functions caches the JSON of functions.
	functions functionCache
	// learned is the paramSet that the endpoint has refused so far.
	learned atomic.Uint32
}

var _ assay.Provider = (*Provider)(nil)

// New returns a provider. It does no I/O.
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

// setDefaults sets missing fields and returns an error if the rest cannot work.
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
		return errors.New("the deployment is missing\n" +
			"hint: set it to the endpoint's name for the model")
	}
	return c.checkKey()
}

func (c *Config) checkKey() error {
	key := c.Key.reveal()
	if key == "" && c.KeyName != "" {
		return fmt.Errorf("the variable %s is empty\nhint: set it to the key of %s",
			c.KeyName, c.BaseURL)
	}
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("the key in %s contains white space or another invalid character\n"+
			"hint: set the variable again, without quotes and line breaks", c.KeyName)
	}
	return nil
}

// checkBaseURL checks a base URL. Its messages never repeat a part of the URL
// that may contain a credential.
func checkBaseURL(base string) error {
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("the base URL is not an http or https URL\n" +
			"hint: it looks like https://host/v1")
	case u.User != nil:
		return fmt.Errorf("the base URL at %s contains a user or a password\n"+
			"hint: give credentials as keys", u.Host)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("the base URL at %s has a query or a fragment\n"+
			"hint: give only the part before it", u.Host)
	case strings.HasSuffix(u.Path, "/chat/completions"):
		return fmt.Errorf("the base URL at %s ends in /chat/completions\n"+
			"hint: leave that part out", u.Host)
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
	h := &http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json"},
		"User-Agent":   {"assay"},
	}
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

// Chat requests one turn in one HTTP exchange, with one exception. If the
// endpoint refuses a sampling parameter by name, Chat repeats the request without
// it and, if that works, remembers the refusal. So this happens once per
// parameter.
func (p *Provider) Chat(ctx context.Context, req assay.Request) (assay.Response, error) {
	var newlyRefused paramSet
	for {
		resp, sent, err := p.exchange(ctx, &req, p.unsent(req.Model)|newlyRefused)
		refused := refusedParam(err) & sent
		if refused == 0 {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest {
				p.learned.Or(uint32(newlyRefused))
			}
			return *resp, err
		}
		newlyRefused |= refused
	}
}

// Omits returns the names of the sampling parameters that req sets but that are
// not sent, because the model refuses them.
func (p *Provider) Omits(req assay.Request) []string {
	sent := new(wireRequest).setSampling(req.Sampling, p.unsent(req.Model))
	return missing(req.Sampling, sent)
}

// unsent returns the parameters that are not sent in requests for model: those of
// its dialect and those that the endpoint has refused.
func (p *Provider) unsent(model string) paramSet {
	return dialectOf(p.cfg.Deployment) | dialectOf(model) | paramSet(p.learned.Load())
}

// exchange sends req without the parameters in unsent. It returns the reply,
// which is never nil, and the parameters that were sent. Ten thousand goroutines
// may wait in it, so it and its callees keep large values off the stack.
func (p *Provider) exchange(
	ctx context.Context, req *assay.Request, unsent paramSet,
) (*assay.Response, paramSet, error) {
	post, sent, err := p.post(ctx, req, unsent)
	if err != nil {
		fault := &assay.Fault{Kind: assay.Harness, Detail: p.detail(err.Error(), ""), Err: err}
		return &assay.Response{}, 0, fault
	}
	reply, body, err := p.wire.fetch(post)
	if err != nil {
		return &assay.Response{}, sent, p.transportFault(ctx, err)
	}
	resp, err := p.read(reply, body, len(req.Messages))
	return resp, sent, err
}

// post returns the HTTP request. It does not keep the encoded body after it has
// been written. If a transport has to write it again, the body is encoded again.
func (p *Provider) post(
	ctx context.Context, req *assay.Request, unsent paramSet,
) (*http.Request, paramSet, error) {
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

// read classifies a response and decodes its completion. See decode for turn.
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
