package bridge

import (
	"context"
	"io"
	"maps"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

const (
	// maxOutput is how much of an agent's output is kept, in bytes: the end of it.
	maxOutput = 256 << 10
	// maxPrompt is the longest prompt that goes into a variable. Linux refuses longer ones.
	maxPrompt = 100 << 10
)

// command runs a program of the agent with a message. Its standard output is the answer.
func (r *Runner) command(ctx context.Context, a *attempt, args []string, message string) end {
	e := end{ended: assay.Finished, fine: "exit status 0", scratch: a.scratch}
	exit, err := r.bridge.place.Program(ctx, r.childOf(a, args, message), message,
		func(output io.Reader) { e.answer = lastOf(output) })
	if err != nil {
		return broken("start the agent", err)
	}
	a.started.Store(true)
	e.stopped, e.record = exit.Stopped, assay.AgentRecord{Output: e.answer, Errors: exit.Errors}
	switch {
	case e.stopped:
		e.ended, e.answer, e.record.Exit = assay.AgentError, "", exit.State
	case exit.Code != 0:
		e.ended, e.answer, e.record.Exit = assay.AgentError, "", byOthers(exit.State)
	}
	return e
}

// broken is the end of an attempt that this machine could not carry out.
func broken(doing string, err error) end {
	return end{err: &assay.Fault{
		Kind: assay.Harness, Detail: doing + ": " + err.Error(), Err: err,
	}}
}

// childOf returns a program as it is started for an attempt with a message.
func (r *Runner) childOf(a *attempt, args []string, message string) child.Command {
	place := r.placeholders(a, message)
	c := child.Command{
		Pass: r.agent.Pass, Set: maps.Clone(r.agent.Set), Kept: a.scratch, Room: r.roomOf(a),
		Apart: r.agent.Sandbox == OwnUser,
	}
	for _, arg := range args {
		c.Args = append(c.Args, place.Replace(arg))
	}
	for name, value := range c.Set {
		c.Set[name] = place.Replace(value)
	}
	c.Files = maps.Clone(r.agent.Files)
	for path, text := range c.Files {
		c.Files[path] = place.Replace(text)
	}
	url := r.modelURL(a)
	c.Plain = []string{
		"ASSAY_MCP_URL=" + r.mcpURL(a), "ASSAY_TOKEN=" + a.token, "ASSAY_MODEL=" + r.modelName(),
		"OPENAI_BASE_URL=" + url + "/v1", "OPENAI_API_KEY=" + a.token,
		"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=" + a.token,
		"GOOGLE_GEMINI_BASE_URL=" + url, "GEMINI_API_KEY=" + a.token,
	}
	if len(message) <= maxPrompt {
		c.Plain = append(c.Plain, "ASSAY_PROMPT="+message)
	}
	return c
}

// modelName returns the name of the model for the agent, which may use any other. Frameworks take a
// slash or a colon for the end of a provider's name.
func (r *Runner) modelName() string {
	return strings.NewReplacer("/", "-", ":", "-").Replace(r.agent.Model)
}

// placeholders replaces names in braces in arguments, variables and files.
func (r *Runner) placeholders(a *attempt, message string) *strings.Replacer {
	url := r.modelURL(a)
	return strings.NewReplacer("{mcp_url}", r.mcpURL(a), "{token}", a.token,
		"{model}", r.modelName(), "{model_url}", url, "{prompt}", message)
}

// lastOf reads all of r and returns its end.
func lastOf(r io.Reader) string {
	var kept []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if kept = append(kept, buf[:n]...); len(kept) > 2*maxOutput {
			kept = append(kept[:0], kept[len(kept)-maxOutput-1:]...) // one more byte shows the cut
		}
		if err != nil {
			text := assay.Tail(string(kept), maxOutput)
			return strings.ToValidUTF8(strings.TrimSpace(text), "�")
		}
	}
}
