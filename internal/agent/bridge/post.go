package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// post sends a message to a URL of the agent's service. The text of its reply is the answer. A
// service that cannot be reached, is overloaded or breaks off before its first call of a tool is a
// fault: the agent has not tried the task.
func (r *Runner) post(ctx context.Context, a *attempt, url, message string) end {
	body, err := json.Marshal(map[string]string{
		"prompt": message, "mcp_url": r.mcpURL(a), "model_url": r.modelURL(a),
		"model": r.agent.Model, "token": a.token,
	})
	if err != nil {
		return end{err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return end{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	for name, text := range r.agent.Headers {
		for _, key := range r.agent.Keys {
			text = strings.ReplaceAll(text, "${"+key+"}", keyOf(key))
		}
		req.Header.Set(name, text)
	}
	resp, err := (&http.Client{Transport: r.bridge.place.Services}).Do(req)
	if err != nil {
		return a.unreached(ctx, "reach the agent: ", err)
	}
	a.started.Store(true)
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxOutput+1))
	b = []byte(assay.Head(string(b), maxOutput))
	output := a.secrets.Text(strings.ToValidUTF8(string(b), "�"))
	e := end{
		ended: assay.AgentError, fine: "status 200",
		record: assay.AgentRecord{Output: output, Exit: a.secrets.Text(resp.Status)},
	}
	var reply struct {
		Text *string `json:"text"`
	}
	switch {
	case err != nil:
		return a.unreached(ctx, "the reply broke off: ", err)
	case resp.StatusCode != http.StatusOK:
		e.err = a.unavailable(resp, output)
	case json.Unmarshal([]byte(output), &reply) != nil || reply.Text == nil:
		e.record.Exit = fmt.Sprintf(`the reply is not {"text": …} of at most %d bytes`,
			maxOutput)
	default:
		e.ended, e.answer, e.record.Exit = assay.Finished, *reply.Text, ""
	}
	return e
}

// keyOf returns the key in an environment variable.
func keyOf(name string) string { return strings.TrimSpace(os.Getenv(name)) }

// tried reports whether the agent has tried the task, so that its end is its own: it has called a tool,
// or its model has failed as the trial has planned it.
func (a *attempt) tried() bool { return a.called.Load() > 0 || a.stage.Met() > 0 }

// unreached is the end of an agent whose service sent no reply, or a part of it. It is the agent's
// doing after its first call of a tool, and if ctx has ended, Assay's.
func (a *attempt) unreached(ctx context.Context, what string, err error) end {
	what += a.secrets.Text(err.Error())
	if ctx.Err() != nil || a.tried() {
		return end{
			ended: assay.AgentError, stopped: ctx.Err() != nil,
			record: assay.AgentRecord{Exit: what},
		}
	}
	return end{err: &assay.Fault{Kind: assay.Network, Detail: what}}
}

// unavailable returns the fault of a service that was too busy, or that a proxy could not reach,
// before its first call of a tool. It returns nil for any other reply.
func (a *attempt) unavailable(resp *http.Response, output string) error {
	kind, ok := map[int]assay.FaultKind{
		http.StatusTooManyRequests: assay.RateLimited, http.StatusBadGateway: assay.Server,
		http.StatusServiceUnavailable: assay.Overloaded, http.StatusGatewayTimeout: assay.Server,
	}[resp.StatusCode]
	if !ok || a.tried() {
		return nil
	}
	detail := "the agent's service replied " + a.secrets.Text(resp.Status)
	if word := child.LastLines(output, 1); word != "" {
		detail += ": " + word
	}
	return &assay.Fault{Kind: kind, Detail: detail}
}
