package bridge

import (
	"context"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
)

// why describes why Assay has ended an attempt whose agent did not end it.
func (r *Runner) why(ctx context.Context, a *attempt, trial *assay.Trial) string {
	switch limit := a.stage.Limited(); {
	case limit != "":
		return reached(limit, &trial.Setting)
	case context.Cause(ctx) == errTimeout:
		return "the agent took longer than " + r.agent.Timeout.String()
	case context.Cause(ctx) == errOver:
		return "a request or a call was a fault"
	}
	return "the run stopped"
}

// reached describes how an agent has used up a limit.
func reached(limit assay.Ended, s *assay.Setting) string {
	switch limit {
	case assay.TurnLimit:
		return fmt.Sprintf("the agent had its %d replies of its model", s.Turns)
	case assay.CallLimit:
		if s.Calls > 0 {
			return fmt.Sprintf("the agent made its %d calls", s.Calls)
		}
	case assay.TokenLimit:
		return fmt.Sprintf("the agent used its %d tokens", s.Tokens)
	case assay.CostLimit:
		return fmt.Sprintf("the agent spent its $%g", s.USD)
	case assay.Loop:
		return "the agent repeated itself"
	}
	return "the agent reached the limit " + string(limit)
}

// killed is how the state of a process that got SIGKILL begins.
const killed = "signal: killed"

// byOthers notes in a state that Assay did not send the signal. The system does if memory runs out.
func byOthers(state string) string {
	if rest, ok := strings.CutPrefix(state, killed); ok {
		return killed + " (not by Assay)" + rest
	}
	return state
}
