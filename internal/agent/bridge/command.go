package bridge

import (
	"context"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

const (
	// mostOutput is how much of an agent's output is kept, in bytes: the end of it.
	mostOutput = 256 << 10
	// mostPrompt is the longest prompt that goes into a variable. Linux refuses longer ones.
	mostPrompt = 100 << 10
)

// command runs the agent's program. Its standard output is the answer.
func (r *Runner) command(ctx context.Context, a *attempt) end {
	p, err := child.Start(r.childOf(a))
	if err != nil {
		return broken("start the agent", err)
	}
	a.started.Store(true)
	go func() {
		_, _ = io.WriteString(p.Stdin, a.stage.Prompt()) // an agent need not read it
		_ = p.Stdin.Close()
	}()
	e := end{ended: assay.Finished, fine: "exit status 0", scratch: p.Dir}
	output := make(chan string, 1)
	go func() { output <- lastOf(p.Stdout) }()
	select {
	case <-p.Ended():
	case <-ctx.Done():
		e.stopped = true
		p.Stop()
	}
	select {
	case e.answer = <-output:
		err = p.Close()
	case <-time.After(time.Second): // another process holds its output open
		err = p.Close()
		e.answer = <-output
	}
	if err != nil {
		e.err = broken("remove the scratch directory", err).err
	}
	e.record = assay.AgentRecord{Output: e.answer, Errors: p.Stderr()}
	switch {
	case e.stopped:
		e.ended, e.answer, e.record.Exit = assay.AgentError, "", p.State()
	case p.ExitCode() != 0:
		e.ended, e.answer, e.record.Exit = assay.AgentError, "", byOthers(p.State())
	}
	return e
}

// broken is the end of an attempt that this machine could not carry out.
func broken(doing string, err error) end {
	return end{err: &assay.Fault{
		Kind: assay.Harness, Detail: doing + ": " + err.Error(), Err: err,
	}}
}

// childOf returns the program as it is started for an attempt.
func (r *Runner) childOf(a *attempt) child.Command {
	place := r.placeholders(a)
	c := child.Command{Pass: r.agent.Pass, Set: maps.Clone(r.agent.Set)}
	for _, arg := range r.agent.Command {
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
	if prompt := a.stage.Prompt(); len(prompt) <= mostPrompt {
		c.Plain = append(c.Plain, "ASSAY_PROMPT="+prompt)
	}
	return c
}

// modelName returns the name of the model for the agent, which may use any other. Frameworks take a
// slash or a colon for the end of a provider's name.
func (r *Runner) modelName() string {
	return strings.NewReplacer("/", "-", ":", "-").Replace(r.agent.Model)
}

// placeholders replaces names in braces in arguments, variables and files.
func (r *Runner) placeholders(a *attempt) *strings.Replacer {
	url := r.modelURL(a)
	return strings.NewReplacer("{mcp_url}", r.mcpURL(a), "{token}", a.token,
		"{model}", r.modelName(), "{model_url}", url, "{prompt}", a.stage.Prompt())
}

// lastOf reads all of r and returns its end.
func lastOf(r io.Reader) string {
	var kept []byte
	buf := make([]byte, 32<<10)
	for {
		n, err := r.Read(buf)
		if kept = append(kept, buf[:n]...); len(kept) > 2*mostOutput {
			kept = append(kept[:0], kept[len(kept)-mostOutput-1:]...) // one more byte shows the cut
		}
		if err != nil {
			text := assay.Tail(string(kept), mostOutput)
			return strings.ToValidUTF8(strings.TrimSpace(text), "�")
		}
	}
}
