package session

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
)

// A fork is the provider of an attempt that begins as an earlier one did. It gives the replies that both
// share, at no cost, as long as the conversation is the same; after them, the model is asked.
type fork struct {
	*gated
	of     string
	begins *assay.Transcript
	// replies has the place of each reply that is shared, among the messages of begins.
	replies []int
}

// beginning returns the provider of a trial's attempt: g, unless the trial is a fork.
func (s *Session) beginning(ctx context.Context, g *gated) (assay.Provider, error) {
	trial := g.trial
	if trial.Of == "" {
		return g, nil
	}
	at, err := trial.Point()
	if err != nil {
		return nil, err
	}
	tr, err := s.db.Transcript(ctx, at.Trial, at.Attempt)
	if err != nil {
		return nil, err
	}
	if at.Call > len(tr.Calls) || tr.Calls[at.Call-1].Met() != at.Fault {
		return nil, fmt.Errorf("call %d of %s/%d met no fault of the kind %s", at.Call, at.Trial, at.Attempt, at.Fault)
	}
	f := &fork{gated: g, of: trial.Of, begins: &tr}
	for i := range tr.Messages {
		if tr.Messages[i].Role == assay.Assistant && len(f.replies) < tr.Calls[at.Call-1].Turn {
			f.replies = append(f.replies, i)
		}
	}
	return f, nil
}

// Chat implements [assay.Provider].
func (f *fork) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	turn := 0
	for i := range req.Messages {
		if req.Messages[i].Role == assay.Assistant {
			turn++
		}
	}
	if turn >= len(f.replies) {
		return f.gated.Chat(ctx, req)
	}
	at := f.replies[turn]
	if err := sameMessages(f.begins.Messages[:at], req.Messages); err != nil {
		return new(assay.Response), &assay.Fault{
			Kind: assay.Harness, Hopeless: true, Err: err,
			Detail: fmt.Sprintf("the fork begins otherwise than attempt %s at turn %d: %v", f.of, turn+1, err),
		}
	}
	was := &f.begins.Turns[turn]
	return &assay.Response{
		Message: f.begins.Messages[at], Lane: was.Lane, ServedModel: was.ServedModel, Identity: was.Identity,
		Finish: was.Finish, Deviations: was.Deviations, Reported: was.Reported,
	}, nil
}

// sameMessages returns an error unless two conversations are the same.
func sameMessages(want, got []assay.Message) error {
	if len(want) != len(got) {
		return fmt.Errorf("there are %d messages instead of %d", len(got), len(want))
	}
	for i := range want {
		x, errX := json.Marshal(&want[i])
		y, errY := json.Marshal(&got[i])
		if err := errors.Join(errX, errY); err != nil {
			return err
		}
		if !bytes.Equal(x, y) {
			return fmt.Errorf("message %d is %s instead of %s", i+1, assay.Head(string(y), 200), assay.Head(string(x), 200))
		}
	}
	return nil
}
