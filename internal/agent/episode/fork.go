package episode

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/assay-eval/assay"
)

// A beginning is the provider of an attempt that begins as an earlier one did.
type beginning struct {
	assay.Provider
	of string
	tr *assay.Transcript
	// replies has the place of each reply that both share, among the messages of the transcript.
	replies []int
}

// Continue returns the provider of a fork, of the attempt with the transcript. It gives the replies that
// both share, at no cost, as long as the conversation is the same, and a fault otherwise. After them, it
// asks the other provider.
func Continue(provider assay.Provider, fork assay.Fork, tr *assay.Transcript) (assay.Provider, error) {
	at, err := fork.Point()
	if err != nil {
		return nil, err
	}
	if at.Call < 1 || at.Call > len(tr.Calls) || tr.Calls[at.Call-1].Met() != at.Fault {
		return nil, fmt.Errorf("the call of fork %s met no fault of the kind %s", fork.Of, at.Fault)
	}
	b := &beginning{Provider: provider, of: fork.Of, tr: tr}
	for i := range tr.Messages {
		if tr.Messages[i].Role == assay.Assistant && len(b.replies) < tr.Calls[at.Call-1].Turn {
			b.replies = append(b.replies, i)
		}
	}
	return b, nil
}

// Chat implements [assay.Provider].
func (b *beginning) Chat(ctx context.Context, req *assay.Request) (*assay.Response, error) {
	turn := 0
	for i := range req.Messages {
		if req.Messages[i].Role == assay.Assistant {
			turn++
		}
	}
	if turn >= len(b.replies) {
		return b.Provider.Chat(ctx, req)
	}
	at := b.replies[turn]
	if err := sameMessages(b.tr.Messages[:at], req.Messages); err != nil {
		return new(assay.Response), &assay.Fault{
			Kind: assay.Harness, Hopeless: true, Err: err,
			Detail: fmt.Sprintf("at turn %d, the fork does not begin as %s did: %v", turn+1, b.of, err),
		}
	}
	was := &b.tr.Turns[turn]
	return &assay.Response{
		Message: b.tr.Messages[at], Lane: was.Lane, ServedModel: was.ServedModel, Identity: was.Identity,
		Earlier: was.Usage, Finish: was.Finish, Deviations: was.Deviations, Reported: was.Reported,
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
