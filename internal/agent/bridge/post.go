package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"

	"github.com/assay-eval/assay"
)

// post sends the prompt to the agent's service. The text of its reply is the answer. A service that
// cannot be reached is a fault, because the agent has not begun.
func (r *Runner) post(ctx context.Context, a *attempt) end {
	body, err := json.Marshal(map[string]string{
		"prompt": a.stage.Prompt(), "mcp_url": r.mcpURL(a), "model_url": r.modelURL(a),
		"model": r.agent.Model, "token": a.token,
	})
	if err != nil {
		return end{err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.agent.URL, bytes.NewReader(body))
	if err != nil {
		return end{err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return unreached(err)
	}
	a.started.Store(true)
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, mostOutput+1))
	b = []byte(assay.Head(string(b), mostOutput))
	output := strings.ToValidUTF8(string(b), "�")
	e := end{
		ended: assay.AgentError, fine: "status 200",
		record: assay.AgentRecord{Output: output, Exit: resp.Status},
	}
	var reply struct {
		Text *string `json:"text"`
	}
	switch {
	case err != nil:
		e.record.Exit = "the reply broke off: " + err.Error()
	case resp.StatusCode != http.StatusOK:
	case json.Unmarshal(b, &reply) != nil || reply.Text == nil:
		e.record.Exit = fmt.Sprintf(`the reply is not {"text": …} of at most %d bytes`,
			mostOutput)
	default:
		e.ended, e.answer, e.record.Exit = assay.Finished, *reply.Text, ""
	}
	return e
}

// unreached is the end of an agent whose service did not reply.
func unreached(err error) end {
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return end{err: &assay.Fault{
			Kind: assay.Network, Detail: "reach the agent: " + err.Error(), Err: err,
		}}
	}
	return end{ended: assay.AgentError, record: assay.AgentRecord{Exit: err.Error()}}
}
