// Package responses is both sides of OpenAI's Responses API, which OpenAI, Azure and some gateways
// speak: a client and a [Dialect].
//
// It owns the format of requests and responses, and adapts requests to what an endpoint refuses.
// Package wire carries them. Nothing is stored at the endpoint: every request holds the whole
// conversation, with the encrypted reasoning of earlier replies as it came.
//
// It does not use the official SDK. With 30 tools and 19 messages, encoding a request and decoding
// its reply costs 86 µs of CPU here and 547 µs with the SDK. The tests use the SDK as an oracle
// for both.
package responses

import (
	"context"
	"fmt"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/wire"
)

// path is the path after a base URL.
const path = "/responses"

// The endpoint encrypts reasoning for the organization of a key.
var protocol = wire.Protocol{
	Name: "responses", BaseURL: "https://api.openai.com/v1", Paths: []string{path},
	KeyHeader: "Authorization", KeyPrefix: "Bearer ", OwnKey: true,
}

// Provider sends requests to one deployment with one key. It is safe for concurrent use.
type Provider struct {
	*wire.Caller
	// functions caches the JSON of functions.
	functions wire.FunctionCache
	learned   wire.Learned
}

var _ assay.Provider = (*Provider)(nil)

// New returns a provider. It does no I/O.
func New(cfg wire.Config) (*Provider, error) {
	caller, err := wire.New(protocol, cfg)
	if err != nil {
		return nil, err
	}
	return &Provider{Caller: caller}, nil
}

// Chat requests one turn in one HTTP exchange. If the endpoint refuses a parameter by name that it
// can do without, Chat repeats the request without it; see [wire.Learned.Chat].
func (p *Provider) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	return p.learned.Chat(func(unsent wire.ParamSet) (*assay.Response, wire.ParamSet, error) {
		resp, sent, err := p.exchange(ctx, req, unsent)
		return resp, refusedParam(err) & sent, err
	})
}

// Omits returns the names of the settings in req that are not sent, because the protocol does not
// have them or the endpoint refuses them.
func (p *Provider) Omits(req assay.Request) []string {
	return omitted(req.Sampling, p.learned.Get())
}

// exchange sends req without the parameters in unsent. It returns the reply, which is never nil,
// and the parameters that were sent.
func (p *Provider) exchange(
	ctx context.Context, req *assay.Request, unsent wire.ParamSet,
) (*assay.Response, wire.ParamSet, error) {
	var sent wire.ParamSet
	reply, err := p.Post(ctx, p.BaseURL+path, func() (body *wire.Body, err error) {
		body, sent, err = p.encode(req, unsent)
		return body, err
	})
	if err != nil {
		return &assay.Response{}, sent, err
	}
	resp := &assay.Response{Quotas: reply.Quotas}
	if err := p.read(reply, len(req.Messages), resp); err != nil {
		return resp, sent, err
	}
	resp.Deviations = p.Deviations(req, omitted(req.Sampling, unsent))
	return resp, sent, nil
}

// read classifies a reply and copies it to resp. turn is part of the IDs given to calls that have
// none. A response that ends in a fault may have been paid for, so its usage is read too.
func (p *Provider) read(reply *wire.Reply, turn int, resp *assay.Response) error {
	if reply.Status < 300 && wire.IsStream(reply.Body) {
		reply.Body = assemble(wire.Events(reply.Body))
	}
	fault := p.Fault(reply)
	doc, err := parse(reply.Body)
	if err == nil {
		resp.ServedModel = p.Clean(doc.Model)
		resp.Usage = doc.Usage.total()
	}
	switch {
	case fault != nil:
		return fault
	case err != nil:
		why := fmt.Sprintf("the body of %d bytes is not valid JSON", len(reply.Body))
		return p.Unreadable(why, reply)
	}
	return p.decode(reply, doc, turn, resp)
}
