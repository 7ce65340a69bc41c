// Package classify asks a model for a second opinion on why an attempt did not
// fully succeed.
//
// It owns the prompt, the reading of the answer, the loop over attempts, and
// how well opinions agree with the rules. An opinion comes after the fact, from
// stored attempts, and stands beside the category that the rules gave: it
// changes no outcome. The package stores nothing and knows no store.
package classify

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// Categories are the names of the reasons, in the order of every table.
var Categories = assay.ErrorCategories

// A Case is an attempt to have an opinion on: one with an outcome that is not
// full success. Task and Transcript are nil where they are not known.
type Case struct {
	Attempt    *assay.Attempt
	Task       *assay.Task
	Transcript *assay.Transcript
}

// An Answer is an opinion and what it took.
type Answer struct {
	Opinion
	// Raw is the text of the last reply.
	Raw string
	// Usage and Cost, in dollars, are those of all requests.
	Usage assay.Usage
	Cost  float64
}

// ErrUnreadable says that a model replied, and twice not with an opinion.
var ErrUnreadable = errors.New("no readable opinion")

// A Classifier has a model give opinions. It is safe for concurrent use.
type Classifier struct {
	Provider assay.Provider
	Model    string
	Sampling assay.Sampling
	// Budget is the working time that each of the two turns of a case may take;
	// 0 means no limit.
	Budget time.Duration
}

// requests are what a case may take: the question, and one correction.
const requests = 2

// Classify asks for an opinion, and once more where none can be read in the
// reply. The error is then an [ErrUnreadable] with the reply, or the provider's
// as it is; what it took is in the answer all the same.
func (c *Classifier) Classify(ctx context.Context, k Case) (Answer, error) {
	var answer Answer
	var unread error
	req := assay.Request{
		Model: c.Model, Messages: Prompt(k.Attempt, k.Task, k.Transcript), Sampling: c.Sampling, Budget: c.Budget,
	}
	for range requests {
		resp, err := c.Provider.Chat(ctx, req)
		answer.Usage, answer.Cost = answer.Usage.Add(resp.Usage), answer.Cost+resp.Cost
		if err != nil {
			return answer, err
		}
		answer.Raw = resp.Message.Content
		if answer.Opinion, unread = Parse(answer.Raw); unread == nil {
			return answer, nil
		}
		req.Messages, req.Lane = append(req.Messages, correction(answer.Raw, unread)...), resp.Lane
	}
	return answer, fmt.Errorf("%w: %w; the reply was %q", ErrUnreadable, unread, shorten(answer.Raw, maxReply))
}
