// Package judge asks a model whether an episode is a success, by a rubric that a user wrote.
//
// It owns the question, the reading of the reply, and what becomes of an attempt without a verdict. The
// model's opinion is a part of the transcript, so scoring stays a function of what is recorded, and
// nobody is asked a second time. The package does not know the store.
package judge

import (
	"context"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/task/score"
)

// A Court judges attempts whose tasks have a model as a judge. It is safe for concurrent use.
type Court struct {
	rules  *score.Judge
	budget time.Duration
}

// New returns a court for the tasks of a catalog. budget is the working time of each of the two turns
// that a verdict may take; 0 means no limit.
func New(catalog *assay.Catalog, budget time.Duration) *Court {
	return &Court{score.New(catalog), budget}
}

// requests is how often the model is asked at most: the question, and one correction.
const requests = 2

// Attend asks for a verdict on an attempt that ended in an outcome, records it in the transcript, and
// judges the attempt again with it. Without a verdict the attempt ends in a fault, whatever the agent
// did. Other tasks, and attempts that ended in a fault, stay as they are.
func (c *Court) Attend(
	ctx context.Context, provider assay.Provider, a *assay.Attempt, task *assay.Task, tr *assay.Transcript,
) {
	if task.Judge == nil || task.Judge.Model == "" || !a.Settles() {
		return
	}
	a.JudgedBy = task.Judge.Model
	opinion, err := c.ask(ctx, provider, &a.Trial, task, tr)
	if err != nil {
		f := assay.AsFault(err)
		if ctx.Err() != nil {
			f = episode.Stopped(ctx)
		}
		a.FaultKind, a.FaultDetail, a.Parked = f.Kind, "the judge "+task.Judge.Model+": "+f.Error(), f.Hopeless
		a.Withdraw()
		return
	}
	tr.Opinion = opinion
	a.Outcome = c.rules.Outcome(&a.Trial, task, tr)
}

// ask returns the opinion of the model. A reply without a verdict is pointed out to it once.
func (c *Court) ask(
	ctx context.Context, provider assay.Provider, trial *assay.Trial, task *assay.Task, tr *assay.Transcript,
) (*assay.Opinion, error) {
	q := newQuestion(task, tr)
	req := assay.Request{
		Model: task.Judge.Model, Judge: true, Messages: q.messages(), Budget: c.budget, Seed: trial.ModelSeed(),
	}
	o := &assay.Opinion{Model: task.Judge.Model, Prompt: PromptVersion, Asked: digest(req.Messages), Cut: q.cut}
	var unread error
	for range requests {
		resp, err := provider.Chat(ctx, &req)
		o.AddJudge(resp)
		if err != nil {
			return nil, err
		}
		o.ServedModel, o.Lane = resp.ServedModel, resp.Lane
		if o.Verdict, o.Reason, unread = q.read(resp.Message.Content); unread == nil {
			return o, nil
		}
		req.Messages = append(req.Messages, q.correction(resp.Message.Content, unread)...)
		req.Lane = resp.Lane
	}
	said := req.Messages[len(req.Messages)-2].Content
	return nil, &assay.Fault{
		Kind: assay.Malformed, Lane: o.Lane, Hopeless: true,
		Detail: fmt.Sprintf("neither of its two replies has a verdict: %v; the second one was %q", unread, said),
	}
}
