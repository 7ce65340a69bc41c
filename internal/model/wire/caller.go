// Package wire carries requests to the endpoints of models over HTTP, for every protocol.
//
// It owns the HTTP client, which keeps deadlines and never reveals a key; the classification of
// failed responses as an [assay.Fault]; and the reading of limits from headers and messages. It
// does not know what a request or a reply means: the packages of the protocols do. It does not
// retry, wait, pace or price requests. Package lane does that.
package wire

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

// Config describes one deployment and its key. Printing it never reveals the key.
type Config struct {
	// BaseURL is the part of the address before the path of the protocol. If it is empty, the
	// protocol's own default applies. For Azure it is the resource's endpoint without "/openai",
	// and is required.
	BaseURL string
	// Key is sent in the header of the protocol. If it is empty, no credential is sent, for
	// example to a local server.
	Key Secret
	// KeyName is the environment variable with the key, for use in messages.
	KeyName string
	// Deployment is the endpoint's name for the model. It is required.
	Deployment string
	// Azure selects Azure's URLs and header.
	Azure bool
	// APIVersion is the version of the API, for endpoints that want one: Azure's api-version or
	// Anthropic's anthropic-version. The protocol has a default.
	APIVersion string
	// Header holds further headers of every request. Its values may be secrets.
	Header http.Header
	// Client should come from [NewClient] and be shared by all providers of a process. The default
	// is a new client. Only the transport of another client is used, so redirects are never
	// followed.
	Client *http.Client
	// Secrets are all other secrets of the process. They are replaced in every text of an
	// endpoint, even if it echoes them.
	Secrets []Secret
}

func (c Config) String() string {
	azure := ""
	if c.Azure {
		azure = " on azure"
	}
	return fmt.Sprintf("%s%s deployment %q key %s",
		redactURL(c.BaseURL), azure, c.Deployment, c.KeyName)
}

// Format prints [Config.String] for every verb.
func (c Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue logs [Config.String].
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// A Protocol is what the HTTP exchanges of a protocol have of their own.
type Protocol struct {
	// Name is its name in the providers file.
	Name string
	// BaseURL is the default address.
	BaseURL string
	// Paths are endings that do not belong in a base URL.
	Paths []string
	// KeyHeader is the header for the key, and KeyPrefix the text before it.
	KeyHeader, KeyPrefix string
	// Header holds the protocol's own headers.
	Header http.Header
	// OwnKey is true if an endpoint may refuse a state that came with another key.
	OwnKey bool
}

// A Caller posts requests to one deployment with one key. It is safe for concurrent use.
type Caller struct {
	Config
	protocol Protocol
	scrub    *Redactor
	wire     *guard
	// header is the same in every request and holds the key. It is a pointer so that it prints as
	// an address, and is never modified.
	header *http.Header
	latest atomic.Pointer[parsedURL] // see parse
}

// New returns a caller. It does no I/O. The error says what is wrong with cfg.
func New(p Protocol, cfg Config) (*Caller, error) {
	if cfg.BaseURL == "" && !cfg.Azure {
		cfg.BaseURL = p.BaseURL
	}
	if cfg.Client == nil {
		cfg.Client = NewClient(ClientOptions{})
	}
	cfg.BaseURL = strings.TrimRight(cfg.BaseURL, "/")
	if err := cfg.check(p.Paths); err != nil {
		return nil, err
	}
	c := &Caller{
		Config: cfg, protocol: p, header: p.header(cfg),
		wire: guardOf(cfg.Client, NewRedactor(append(slices.Clone(cfg.Secrets), cfg.Key))),
	}
	c.scrub = c.wire.scrub
	return c, nil
}

func (p *Protocol) header(cfg Config) *http.Header {
	h := &http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json"},
		"User-Agent":   {"assay"},
	}
	for _, own := range []http.Header{p.Header, cfg.Header} {
		for name, values := range own {
			(*h)[http.CanonicalHeaderKey(name)] = values
		}
	}
	if key := cfg.Key.reveal(); key != "" {
		h.Set(p.KeyHeader, p.KeyPrefix+key)
	}
	return h
}

func (c *Config) check(paths []string) error {
	if err := checkBaseURL(c.BaseURL, paths); err != nil {
		return err
	}
	if c.Deployment == "" {
		return errors.New("the deployment is missing\n" +
			"hint: set it to the endpoint's name for the model")
	}
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

// checkBaseURL checks a base URL. Its messages never repeat a part of the URL that may contain a
// credential.
func checkBaseURL(base string, paths []string) error {
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
	}
	for _, path := range paths {
		if strings.HasSuffix(u.Path, path) {
			return fmt.Errorf("the base URL at %s ends in %s\nhint: leave that part out",
				u.Host, path)
		}
	}
	return nil
}

// Origin names the endpoint in an [assay.State]: its protocol, its host and, if that matters, the
// variable with the key.
func (c *Caller) Origin() string {
	origin := c.protocol.Name
	if u, err := url.Parse(c.BaseURL); err == nil {
		origin += " " + u.Host
	}
	if c.protocol.OwnKey && c.KeyName != "" {
		origin += " " + c.KeyName
	}
	return origin
}

func (c *Caller) String() string { return c.protocol.Name + " " + c.Config.String() }

// Format prints [Caller.String] for every verb.
func (c *Caller) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue logs [Caller.String].
func (c *Caller) LogValue() slog.Value { return slog.StringValue(c.String()) }

// A Reply is a complete response without secrets.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	// Quotas holds the limits in the headers.
	Quotas []assay.QuotaState
}

// Post sends a body and returns the reply, whose status may be an error; see [Caller.Fault]. The
// error is a fault, and then there was no complete reply. If a transport has to write the body
// again, encode is called again. Ten thousand goroutines may wait in Post, so it and its callees
// keep large values off the stack.
func (c *Caller) Post(
	ctx context.Context, url string, encode func() (*Body, error),
) (*Reply, error) {
	post, err := c.request(ctx, url, encode)
	if err != nil {
		return nil, &assay.Fault{Kind: assay.Harness, Detail: c.Detail(err.Error(), ""), Err: err}
	}
	resp, body, err := c.wire.fetch(post)
	if err != nil {
		return nil, c.transportFault(ctx, err)
	}
	return &Reply{
		Status: resp.StatusCode, Header: resp.Header, Body: tidy(body),
		Quotas: quotaStates(resp.Header),
	}, nil
}

// request returns the HTTP request. It does not keep the body after it has been written.
func (c *Caller) request(
	ctx context.Context, url string, encode func() (*Body, error),
) (*http.Request, error) {
	body, err := encode()
	if err != nil {
		return nil, err
	}
	target, err := c.parse(url)
	if err != nil {
		return nil, err
	}
	post := &http.Request{
		Method: http.MethodPost, URL: target, Host: target.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: *c.header, Body: body, ContentLength: body.size(),
		GetBody: func() (io.ReadCloser, error) { return encode() },
	}
	return post.WithContext(ctx), nil
}

// A parsedURL is an address and what it was parsed to, which is never modified.
type parsedURL struct {
	text string
	url  *url.URL
}

// parse parses a URL. It keeps the latest, because most protocols have one.
func (c *Caller) parse(text string) (*url.URL, error) {
	if known := c.latest.Load(); known != nil && known.text == text {
		return known.url, nil
	}
	post, err := http.NewRequest(http.MethodPost, text, nil) // with the checks of net/http
	if err != nil {
		return nil, err
	}
	c.latest.Store(&parsedURL{text, post.URL})
	return post.URL, nil
}

// Clean makes an endpoint's text safe to store. It removes secrets, including spellings that only
// decoding revealed, and makes the text valid UTF-8.
func (c *Caller) Clean(s string) string {
	return strings.ToValidUTF8(c.scrub.Text(s), "\uFFFD")
}
