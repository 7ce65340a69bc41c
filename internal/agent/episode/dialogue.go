package episode

import (
	"context"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// converse hands a reply without actions to the user, and appends the user's next message. It
// returns how the episode ended, or "" if it goes on.
func (e *episode) converse(ctx context.Context, d spec.Dialogue, reply string) assay.Ended {
	next, err := e.tell(ctx, d, reply)
	switch {
	case err != nil:
		e.broken = assay.AsFault(err)
		return ""
	case next == "":
		return assay.Finished
	}
	e.say(assay.Message{Role: assay.User, Content: next})
	return ""
}

// tell hands a reply to the user. It returns the user's next message with its part of the plan, or
// "" if the user says no more.
func (e *episode) tell(ctx context.Context, d spec.Dialogue, reply string) (next string, err error) {
	text, err := d.Reply(ctx, e.offer.of().Said(reply))
	if err != nil || text == "" {
		return "", err
	}
	data := struct {
		Text     string
		Plan     *workflow.Plan
		OwnTools bool
	}{Text: text, OwnTools: true}
	if e.transcript.Plan != nil {
		data.Plan = new(workflow.Plan)
	}
	if len(e.later) > 0 {
		data.Plan, e.later = e.offer.plan(e.later[0]), e.later[1:]
	}
	return render("user.tmpl", data), nil
}

// Reply hands the answer of an agent to the user. It returns the user's next message, or "" if the
// user says no more or the attempt is over. As a model's answers do, each answer counts as a turn,
// so an agent that no longer asks its model comes to an end, too.
func (s *Stage) Reply(answer string) (next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leave()
	s.endTurn()
	d, ok := s.e.world.(spec.Dialogue)
	if !ok || s.isOver() {
		return ""
	}
	next, err := s.e.tell(s.ctx, d, answer)
	if err != nil {
		s.fail(assay.AsFault(err))
		return ""
	}
	if s.answers++; next != "" && s.answers >= s.e.trial.Setting.Turns {
		s.end(assay.TurnLimit)
		return ""
	}
	if next != "" {
		s.e.say(assay.Message{Role: assay.Assistant, Content: answer})
		s.show(assay.Message{Role: assay.User, Content: next})
	}
	return next
}
