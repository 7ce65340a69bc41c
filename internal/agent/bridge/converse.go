package bridge

import (
	"context"
	"errors"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
)

// deaf is the fault of an agent that is not told how to go on.
const deaf = "the user goes on after the agent's answer, but the agent has no `next` in the " +
	"providers file: the command, or the URL, that hears a further message"

// work lets the agent work on the task. A program has one scratch directory for the attempt.
func (r *Runner) work(ctx context.Context, a *attempt) end {
	if r.agent.URL != "" {
		return r.converse(ctx, a, []string{r.agent.URL})
	}
	folder, err := child.NewFolder()
	if err != nil {
		return broken("make a scratch directory", err)
	}
	a.scratch = folder.Path
	var e end
	if r.agent.ACP {
		e = r.speak(ctx, a)
	} else {
		e = r.converse(ctx, a, r.agent.Command)
	}
	if err := folder.Remove(); err != nil {
		e.err = errors.Join(e.err, broken("remove the scratch directory", err).err)
	}
	return e
}

// converse starts the agent with the task, and again with each further message of the user, until
// the user says no more, the agent fails or ctx ends.
func (r *Runner) converse(ctx context.Context, a *attempt, start []string) end {
	message := a.stage.Prompt()
	for {
		var e end
		if r.agent.URL != "" {
			e = r.post(ctx, a, start[0], message)
		} else {
			e = r.command(ctx, a, start, message)
		}
		if e.ended != assay.Finished || e.err != nil || !a.trace().acted() {
			return e
		}
		goOn := a.clock.pause() // the user's time is not the agent's
		message = a.stage.Reply(e.answer)
		goOn()
		if message == "" {
			return e
		}
		if start = r.agent.Next; len(start) == 0 {
			e.err = &assay.Fault{Kind: assay.ToolServer, Hopeless: true, Detail: deaf}
			return e
		}
		a.refresh()
	}
}
