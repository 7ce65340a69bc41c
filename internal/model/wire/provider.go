// Package wire is the client of every protocol: it sends requests to the endpoints of models over
// HTTP. A [Protocol] defines how requests and replies are written.
//
// It owns the HTTP client, which keeps deadlines and never reveals a key; the classification of
// failed responses as an [assay.Fault]; and the reading of limits from headers and messages. It
// repeats a request only without the parts that an endpoint refuses by name. Package lane retries,
// paces and prices requests.
package wire

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
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
	// protocol's own default applies. For Azure it is the resource's endpoint without "/openai".
	BaseURL string
	// Key is sent in the header of the protocol. If it is empty, no credential is sent, for
	// example to a local server.
	Key Secret
	// KeyName is the environment variable with the key, for use in messages.
	KeyName string
	// Deployment is the endpoint's name for the model. It is required.
	Deployment string
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
	return fmt.Sprintf("%s deployment %q key %s", redactURL(c.BaseURL), c.Deployment, c.KeyName)
}

// Format prints [Config.String] for every verb.
func (c Config) Format(f fmt.State, _ rune) { io.WriteString(f, c.String()) }

// LogValue logs [Config.String].
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// A Protocol is one way to talk to an endpoint.
type Protocol struct {
	// Name is its name in a providers file.
	Name string
	// BaseURL is the base URL of the protocol's own provider, and the default.
	BaseURL string
	// Versioned is true if a provider has to name the version of the API.
	Versioned bool
	// CachedFree is true if endpoints do not count input that is read from a cache against limits
	// of tokens.
	CachedFree bool
	// OwnKey is true if an endpoint may refuse a state that came with another key.
	OwnKey bool
	// Paths are endings that do not belong in a base URL.
	Paths []string
	// URL returns the address of requests.
	URL func(c *Config) string
	// KeyHeader is the header for the key, and KeyPrefix the text before it.
	KeyHeader, KeyPrefix string
	// Header returns the protocol's own headers. It is nil if there are no such headers.
	Header func(c *Config) http.Header

	// Encode returns the document of a request without its functions and the parameters in unsent,
	// and the parameters that it contains. Tools returns the form of functions in the field "tools"
	// of the document.
	Encode func(p *Provider, req *assay.Request, unsent ParamSet) (doc any, sent ParamSet)
	Tools  func(functions []assay.Function, unsent ParamSet) any
	// Params are the parameters that a request can do without, in the order in which messages are
	// searched for them.
	Params []Param
	// Refused returns another part of a request that the endpoint refused, or 0. It may be nil.
	Refused func(e *APIError, sent ParamSet) ParamSet
	// Omitted lists settings that were not sent, if the protocol can leave out more than the
	// temperature and top_p. Adapted names other differences between req and the request that was
	// sent. They may be nil.
	Omitted func(s assay.Sampling, sent ParamSet) []Setting
	Adapted func(req *assay.Request, sent, unsent ParamSet) []string

	// Assemble joins the events of a stream, which some endpoints send although the request did not
	// ask for one, into the reply that they should have sent. It may be nil.
	Assemble func(events [][]byte) ([]byte, error)
	// NewReply returns an empty document for a reply.
	NewReply func() Document
}

// A Document is the body of a reply, decoded.
type Document interface {
	// Outline returns the reply's ID, the model that answered and the usage of the reply. Even a
	// reply that ends in a fault may have been paid for.
	Outline() (id, model string, used assay.Usage)
	// Read completes resp, whose usage is set. If it returns a fault, it has set at most the finish
	// reason. turn is part of the IDs given to calls without an ID.
	Read(p *Provider, from *Reply, turn int, resp *assay.Response) error
}

// A Provider sends requests to one deployment with one key. It is safe for concurrent use.
type Provider struct {
	Config
	protocol *Protocol
	url      *url.URL // never modified
	scrub    *Redactor
	wire     *guard
	// header is the same in every request and holds the key. It is a pointer so that it prints as
	// an address, and is never modified.
	header *http.Header
	// learned is the ParamSet that the endpoint has refused so far.
	learned atomic.Uint32
	tools   atomic.Pointer[tools]
}

// tools is the JSON of the latest functions. Most trials of a run have the same list, and with
// thirty functions a run takes a fifth of its CPU less if it is encoded once.
type tools struct {
	functions []assay.Function
	unsent    ParamSet
	text      []byte
}

var _ assay.Provider = (*Provider)(nil)

// New returns a provider. It does no I/O. The error describes the mistake in cfg.
func (p *Protocol) New(cfg Config) (*Provider, error) {
	cfg.BaseURL = strings.TrimRight(cmp.Or(cfg.BaseURL, p.BaseURL), "/")
	if cfg.Client == nil {
		cfg.Client = NewClient(ClientOptions{})
	}
	if err := cfg.check(p.Paths); err != nil {
		return nil, err
	}
	post, err := http.NewRequest(http.MethodPost, p.URL(&cfg), nil) // with the checks of net/http
	if err != nil {
		return nil, fmt.Errorf("the deployment %q does not fit into an address", cfg.Deployment)
	}
	c := &Provider{
		Config: cfg, protocol: p, url: post.URL, header: p.header(&cfg),
		wire: guardOf(cfg.Client, NewRedactor(append(slices.Clone(cfg.Secrets), cfg.Key))),
	}
	c.scrub = c.wire.scrub
	return c, nil
}

func (p *Protocol) header(cfg *Config) *http.Header {
	h := &http.Header{
		"Content-Type": {"application/json"},
		"Accept":       {"application/json"},
		"User-Agent":   {"assay"},
	}
	if p.Header != nil {
		maps.Copy(*h, p.Header(cfg))
	}
	for name, values := range cfg.Header {
		(*h)[http.CanonicalHeaderKey(name)] = values
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
func (p *Provider) Origin() string {
	origin := p.protocol.Name
	if u, err := url.Parse(p.BaseURL); err == nil {
		origin += " " + u.Host
	}
	if p.protocol.OwnKey && p.KeyName != "" {
		origin += " " + p.KeyName
	}
	return origin
}

func (p *Provider) String() string { return p.protocol.Name + " " + p.Config.String() }

// Format prints [Provider.String] for every verb.
func (p *Provider) Format(f fmt.State, _ rune) { io.WriteString(f, p.String()) }

// LogValue logs [Provider.String].
func (p *Provider) LogValue() slog.Value { return slog.StringValue(p.String()) }

// Clean makes an endpoint's text safe to store. It removes secrets, including spellings that only
// decoding revealed, and makes the text valid UTF-8.
func (p *Provider) Clean(s string) string {
	return strings.ToValidUTF8(p.scrub.Text(s), "\uFFFD")
}
