package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/assay-eval/assay"
)

// Chat requests one turn in one HTTP exchange, with one exception. If the endpoint refuses a part
// of the request that it can do without, Chat repeats the request without it and, if that works,
// remembers the refusal. So this happens once for each part.
func (p *Provider) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	var newly ParamSet
	for {
		resp, refused, err := p.exchange(ctx, req, p.unsent()|newly)
		if refused == 0 {
			if f := assay.AsFault(err); f == nil || f.Kind != assay.BadRequest {
				p.learned.Or(uint32(newly))
			}
			return resp, err
		}
		newly |= refused
	}
}

// unsent returns the parameters that the endpoint has refused so far.
func (p *Provider) unsent() ParamSet { return ParamSet(p.learned.Load()) }

// Omits returns the names of the settings in req that are not sent, because the protocol does not
// have them or the endpoint does not accept them.
func (p *Provider) Omits(req assay.Request) []string {
	_, sent := p.protocol.Encode(p, &req, p.unsent())
	return p.omitted(req.Sampling, sent)
}

// exchange sends req without the parameters in unsent. It returns the response, which is never nil,
// and the part of the request that the endpoint refused, or 0.
func (p *Provider) exchange(
	ctx context.Context, req *assay.Request, unsent ParamSet,
) (*assay.Response, ParamSet, error) {
	var sent ParamSet
	var whole atomic.Bool // the request left completely, so the endpoint may have answered it
	resp := new(assay.Response)
	reply, err := p.post(ctx, func() (b *body, err error) {
		b, sent, err = p.encode(req, unsent)
		if b != nil {
			b.sent = &whole
		}
		return b, err
	})
	if err == nil {
		resp.Quotas = reply.Quotas
		err = p.read(reply, len(req.Messages), resp)
	}
	if err != nil {
		if f := assay.AsFault(err); req.Form.Type != "" && formRefused(f) {
			f.Form = true
		}
		if whole.Load() && resp.Usage.Total() == 0 && mayBeBilled(reply, assay.AsFault(err)) {
			resp.Lost.Requests = 1
		}
		return resp, p.refused(err, sent), err
	}
	resp.Deviations = p.deviations(req, sent, unsent)
	return resp, 0, nil
}

// encode returns the body of a request without the parameters in unsent, and the parameters that
// it contains.
func (p *Provider) encode(req *assay.Request, unsent ParamSet) (*body, ParamSet, error) {
	doc, sent := p.protocol.Encode(p, req, unsent)
	text, err := Marshal(doc)
	if err != nil {
		return nil, sent, err
	}
	if len(req.Functions) > 0 {
		tools, err := p.encodeTools(req.Functions, unsent)
		if err != nil {
			return nil, sent, err
		}
		text = append(text[:len(text)-len("}")], `,"tools":`...)
		text = append(append(text, tools...), '}')
	}
	return &body{text: Extend(text, req.Sampling.Extra)}, sent, nil
}

// encodeTools returns the JSON of functions.
func (p *Provider) encodeTools(functions []assay.Function, unsent ParamSet) ([]byte, error) {
	t := p.tools.Load()
	if t != nil && t.unsent == unsent && slices.EqualFunc(t.functions, functions, sameFunction) {
		return t.text, nil
	}
	text, err := Marshal(p.protocol.Tools(functions, unsent))
	if err == nil {
		t = &tools{slices.Clone(functions), unsent, text}
		for i, f := range t.functions {
			t.functions[i].Parameters = bytes.Clone(f.Parameters)
		}
		p.tools.Store(t)
	}
	return text, err
}

func sameFunction(a, b assay.Function) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Parameters, b.Parameters)
}

// refused returns the part of a request that the endpoint refused, or 0.
func (p *Provider) refused(err error, sent ParamSet) ParamSet {
	e := new(APIError)
	if !errors.As(err, &e) {
		return 0
	}
	if p.protocol.Refused != nil {
		if part := p.protocol.Refused(e, sent); part != 0 {
			return part
		}
	}
	return e.Refuses(p.protocol.Params) & sent
}

// A Reply is a complete response without secrets.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
	// Quotas holds the limits in the headers.
	Quotas []assay.QuotaState
}

// post sends a body and returns the reply, whose status may be an error; see [Provider.fault]. The
// error is a fault, and then there was no complete reply. If a transport has to write the body
// again, encode is called again. Ten thousand goroutines may wait in post, so it and its callees
// keep large values off the stack.
func (p *Provider) post(ctx context.Context, encode func() (*body, error)) (*Reply, error) {
	b, err := encode()
	if err != nil {
		return nil, &assay.Fault{Kind: assay.Harness, Detail: p.Detail(err.Error(), ""), Err: err}
	}
	post := &http.Request{
		Method: http.MethodPost, URL: p.url, Host: p.url.Host,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: *p.header, Body: b, ContentLength: int64(len(b.text)),
		GetBody: func() (io.ReadCloser, error) { return encode() },
	}
	resp, text, err := p.wire.fetch(post.WithContext(ctx))
	if err != nil {
		return nil, p.transportFault(ctx, err)
	}
	return &Reply{
		Status: resp.StatusCode, Header: resp.Header, Body: tidy(text),
		Quotas: quotaStates(resp.Header),
	}, nil
}

// body is the body of a request. It drops the text once it has been read, because it may be long,
// and thousands of requests may wait for minutes.
type body struct {
	sent *atomic.Bool // set when the whole text was read
	mu   sync.Mutex   // a transport may close a body while it reads it
	text []byte       // guarded by mu
}

func (b *body) Read(to []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.text) == 0 {
		b.text = nil
		return 0, io.EOF
	}
	n := copy(to, b.text)
	if b.text = b.text[n:]; len(b.text) == 0 {
		b.sent.Store(true)
	}
	return n, nil
}

// Close makes all further reads return [io.EOF].
func (b *body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = nil
	return nil
}

// read classifies a reply and copies it to resp. Some endpoints complain if a model's call is
// malformed. That is the model's doing, so the call becomes the text of the reply. They do not
// repeat the name of the model that they ran.
func (p *Provider) read(reply *Reply, turn int, resp *assay.Response) error {
	if p.protocol.Assemble != nil && reply.Status < 300 && isStream(reply.Body) {
		whole, err := p.protocol.Assemble(events(reply.Body))
		if err != nil {
			return p.Unreadable(err.Error(), reply)
		}
		reply.Body = whole
	}
	fault := p.fault(reply)
	doc := p.protocol.NewReply()
	err := Unmarshal(reply.Body, doc)
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		err = nil // the field counts as missing
	}
	if err == nil {
		id, model, used := doc.Outline()
		resp.ID, resp.ServedModel, resp.Usage = p.Clean(id), p.Clean(model), used
	}
	switch {
	case fault != nil:
		generated, ok := failedCall(fault)
		if !ok {
			return fault
		}
		resp.ServedModel, resp.Finish = p.Deployment, "tool_use_failed"
		resp.Message = assay.Message{Role: assay.Assistant, Content: generated}
		return nil
	case err != nil:
		why := fmt.Sprintf("the body of %d bytes is not valid JSON", len(reply.Body))
		return p.Unreadable(why, reply)
	}
	return doc.Read(p, reply, turn, resp)
}

// CallID returns the ID of the call after others in message turn of a conversation: the given one,
// unless it is empty or taken.
func (p *Provider) CallID(given string, others []assay.ToolCall, turn int) string {
	id := p.Clean(given)
	taken := func(c assay.ToolCall) bool { return c.ID == id }
	if id == "" || slices.ContainsFunc(others, taken) {
		return GeneratedID(turn, len(others))
	}
	return id
}

// GeneratedID returns the ID of call i in message turn, if the endpoint gave no ID.
func GeneratedID(turn, i int) string { return fmt.Sprintf("call_%d_%d", turn, i) }
