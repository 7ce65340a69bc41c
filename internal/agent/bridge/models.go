package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/model/gateway"
	"github.com/assay-eval/assay/internal/model/protocol"
)

const (
	// maxBody is the largest body of a request, in bytes.
	maxBody = 32 << 20
	// firstByteAfter is how long a client waits for the first byte of a reply, and for the next. Many
	// clients give up if no byte comes for a minute.
	firstByteAfter = 10 * time.Second
)

// serveModels adds the routes of the gateway.
func (b *Bridge) serveModels(mux *http.ServeMux) {
	mux.HandleFunc("/", astray)
	for _, d := range protocol.Dialects(gateway.ThinkingNone) {
		for _, pattern := range d.Routes() {
			method, path, _ := strings.Cut(pattern, " ")
			mux.HandleFunc(method+" /{attempt}"+path, func(w http.ResponseWriter, r *http.Request) {
				b.serveModel(w, r, d)
			})
		}
	}
	for _, pattern := range gateway.CatalogRoutes {
		method, path, _ := strings.Cut(pattern, " ")
		mux.HandleFunc(method+" /{attempt}"+path, b.listModels)
	}
}

// listModels lists the agent's model, which answers requests for any name.
func (b *Bridge) listModels(w http.ResponseWriter, r *http.Request) {
	a := b.find(r)
	if !a.admits(gateway.CatalogKey(r.Header)) {
		refuse(w, protocol.Dialects(gateway.ThinkingNone)[0], tokenRefused)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(gateway.Catalog(r, []string{a.model})) // the agent may have left
}

var tokenRefused = gateway.Refusal{
	Status: http.StatusUnauthorized, Message: refused,
	Kind: "invalid_request_error", Code: "invalid_api_key",
}

// astray answers a request to a path that does not exist. It names the path of a protocol that ends
// alike.
func astray(w http.ResponseWriter, r *http.Request) {
	_, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	path = "/" + strings.TrimSuffix(path, "/")
	dialects := protocol.Dialects(gateway.ThinkingNone)
	d, advice := dialects[0], "the tools are at /mcp, and the model is at /v1/chat/completions, "+
		"/v1/responses, /v1/messages and /v1beta/models/NAME:generateContent"
	for _, other := range dialects {
		_, route, _ := strings.Cut(other.Routes()[0], " ")
		missing, lacks := strings.CutSuffix(route, path)
		extra, has := strings.CutSuffix(path, route)
		switch {
		case route == path:
			d, advice = other, "ask POST …"+route
		case lacks && path != "/":
			d, advice = other, "the base URL ends with "+missing+", so ask POST …"+route
		case has:
			d, advice = other, "the base URL ends without "+extra+", so ask POST …"+route
		default:
			continue
		}
		break
	}
	refuse(w, d, gateway.Refusal{
		Status: http.StatusNotFound, Message: "there is no " + path + " here: " + advice,
		Kind: "invalid_request_error", Code: "not_found",
	})
}

func (b *Bridge) serveModel(w http.ResponseWriter, r *http.Request, d gateway.Dialect) {
	a := b.find(r)
	if !a.admits(cmp.Or(d.Key(r.Header), gateway.Bearer(r.Header))) {
		refuse(w, d, tokenRefused)
		return
	}
	defer a.contain()
	a.begun.Store(true)
	p := decode(w, r, d, func(body []byte) []byte {
		return a.items.Resolve(d, []byte(a.secrets.Text(string(body))))
	})
	if p != nil {
		a.answer(w, r, d, p)
	}
}

// decode reads a request, whose body it lets resolve complete. It returns nil if the request was
// refused.
func decode(
	w http.ResponseWriter, r *http.Request, d gateway.Dialect, resolve func(body []byte) []byte,
) *gateway.Prompt {
	named, stream, wrong := gateway.Target(r)
	if wrong != nil {
		refuse(w, d, *wrong)
		return nil
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		refuse(w, d, *gateway.BadRequest("", "We could not read the body of your request."))
		return nil
	}
	p, wrong := d.Decode(resolve(body))
	if wrong = cmp.Or(wrong, gateway.CheckDialogue(p.Messages)); wrong != nil {
		refuse(w, d, *wrong)
		return nil
	}
	p.Deployment, p.Stream = cmp.Or(named, p.Deployment), p.Stream || stream
	return &p
}

// answer asks the model and sends its reply.
func (a *attempt) answer(
	w http.ResponseWriter, r *http.Request, d gateway.Dialect, p *gateway.Prompt,
) {
	defer a.clock.pause()()
	defer count(&a.asking)()
	a.asked.Add(1)
	if p.Stream {
		a.streamed.Store(true)
	}
	asking := a.stage.Asks()
	provider := &spoiler{Provider: a.provider, spoils: asking.Fault.Rule().Spoils}
	if asking.Fault != "" && !provider.spoils {
		a.fail(w, r, d, p, asking)
		return
	}
	ctx, cancel := context.WithCancel(a.ctx)
	defer cancel()
	defer context.AfterFunc(r.Context(), func() {
		if a.stage.Limited() == "" { // the agent gave up, and was not stopped
			cancel()
		}
	})()

	relay(w, d, p, func() (gateway.Reply, *gateway.Refusal) {
		resp, err := a.stage.Chat(ctx, provider, p.Request)
		if episode.WrongForm(err) {
			a.asked.Add(-1) // an agent that only hears this does not suit its model, which is a fault
		}
		if err != nil {
			return gateway.Reply{}, refusalOf(err)
		}
		if provider.spoiled {
			asking.Met(r.Context().Err() == nil)
		} else {
			asking.Answered()
		}
		reply := replyOf(resp, a.nameIn(p))
		reply.Members = p.Members
		a.items.Keep(d, reply)
		return reply, nil
	})
}

// nameIn returns the model's name in the reply to a request.
func (a *attempt) nameIn(p *gateway.Prompt) string { return cmp.Or(p.Deployment, a.model) }

func replyOf(resp *assay.Response, model string) gateway.Reply {
	reply := gateway.Reply{
		ID: rand.Uint64(), Created: time.Now().Unix(), Model: model, Response: *resp,
	}
	reply.Finish = finish(resp.Finish)
	return reply
}

// relay sends the reply or the refusal that ask returns. Meanwhile it keeps the client waiting.
func relay(
	w http.ResponseWriter, d gateway.Dialect, p *gateway.Prompt,
	ask func() (gateway.Reply, *gateway.Refusal),
) {
	waiting, begun := keepAlive(w, p.Stream), false
	reply, refused := func() (gateway.Reply, *gateway.Refusal) {
		defer func() { begun = waiting.stop() }() // also if it panics
		return ask()
	}()
	if refused != nil {
		if !begun {
			refuse(w, d, *refused)
		}
		return
	}
	_, _ = w.Write(encode(w, d, p, reply)) // a failed write means that the agent has left
}

// encode returns the body of a reply, and sets its type.
func encode(w http.ResponseWriter, d gateway.Dialect, p *gateway.Prompt, reply gateway.Reply) []byte {
	if p.Stream {
		w.Header().Set("Content-Type", eventStream)
		return gateway.AppendEvents(nil, d.Events(p, reply))
	}
	w.Header().Set("Content-Type", "application/json")
	return gateway.Encode(d.Encode(reply))
}

// refusalOf returns the refusal that an agent gets for a request without a reply. If the
// conversation was too long, it may go on with a shorter one, and after a wrong form without it.
// Otherwise the attempt is over.
func refusalOf(err error) *gateway.Refusal {
	if episode.TooLong(err) {
		e := gateway.BadRequest("messages", "%s", assay.AsFault(err).Detail)
		e.Code = "context_length_exceeded"
		return e
	}
	if episode.WrongForm(err) {
		return gateway.BadRequest("response_format", "%s", assay.AsFault(err).Detail)
	}
	return &gateway.Refusal{
		Status: http.StatusServiceUnavailable, Message: errOver.Error(),
		Kind: "server_error", Code: "attempt_over",
	}
}

// finish translates the reason why a reply ended to the words of package gateway.
func finish(reason string) string {
	switch {
	case assay.Truncated(reason):
		return "length"
	case reason == "refusal":
		return reason
	}
	return ""
}

func refuse(w http.ResponseWriter, d gateway.Dialect, e gateway.Refusal) {
	status, body := d.Refuse(e)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // a failed write means that the agent has left
}

const eventStream = "text/event-stream"

// A keeper sends white space while an agent waits, so that it does not give up a request that only
// waits for a limit of the endpoint.
type keeper struct {
	end, ended chan struct{}
	begun      bool
}

func keepAlive(w http.ResponseWriter, stream bool) *keeper {
	k := &keeper{end: make(chan struct{}), ended: make(chan struct{})}
	blank, contentType := " ", "application/json"
	if stream {
		blank, contentType = ": waiting\n\n", eventStream
	}
	go func() {
		defer close(k.ended)
		ticker := time.NewTicker(firstByteAfter)
		defer ticker.Stop()
		for {
			select {
			case <-k.end:
				return
			case <-ticker.C:
			}
			if !k.begun {
				w.Header().Set("Content-Type", contentType)
				k.begun = true
			}
			_, _ = io.WriteString(w, blank)
			_ = http.NewResponseController(w).Flush()
		}
	}()
	return k
}

// stop ends the keeper and reports whether it has sent anything.
func (k *keeper) stop() bool {
	close(k.end)
	<-k.ended
	return k.begun
}
