package episode

import (
	"context"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// converse hands a reply without actions to the user, and appends the user's next message with its
// part of the plan. It returns how the episode ended, or "" if it goes on.
func (e *episode) converse(ctx context.Context, d spec.Dialogue, reply string) assay.Ended {
	next, err := d.Reply(ctx, reply)
	switch {
	case err != nil:
		e.broken = assay.AsFault(err)
		return ""
	case next == "":
		return assay.Finished
	}
	data := struct {
		Text     string
		Plan     *workflow.Plan
		OwnTools bool
	}{Text: next, OwnTools: true}
	if e.transcript.Plan != nil {
		data.Plan = new(workflow.Plan)
	}
	if len(e.later) > 0 {
		data.Plan, e.later = e.later[0], e.later[1:]
	}
	e.say(assay.Message{Role: assay.User, Content: render("user.tmpl", data)})
	return ""
}

// handOver hands the answer of a foreign agent to the user. An agent that has ended cannot hear what
// the user says next, so that is a fault.
func (e *episode) handOver(ctx context.Context, answer string) error {
	d, ok := e.world.(spec.Dialogue)
	if !ok {
		return nil
	}
	next, err := d.Reply(ctx, answer)
	if err == nil && next != "" {
		err = &assay.Fault{
			Kind: assay.ToolServer, Hopeless: true,
			Detail: "the user goes on after the agent's answer, which a foreign agent cannot hear; " +
				"tasks with several messages of the user are for models",
		}
	}
	return err
}
