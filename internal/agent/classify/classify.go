// Package classify asks a model for a second opinion on why an attempt was not a full success.
//
// It owns the prompt, the parsing of answers, the loop over attempts, and the measure of agreement
// with the rules. An opinion is formed afterwards, from stored attempts. It is kept next to the
// category that the rules gave and changes no outcome. The package does not store opinions or know
// the store.
package classify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// Categories are the possible reasons, in the order of every table. That a model judged so is no reason in
// itself.
var Categories = slices.DeleteFunc(slices.Clone(assay.ErrorCategories),
	func(c string) bool { return c == assay.CategoryJudge })

// A Case is an attempt that needs an opinion: one whose outcome is not a full success. Task and
// Transcript are nil if they are unknown.
type Case struct {
	Attempt    *assay.Attempt
	Task       *assay.Task
	Transcript *assay.Transcript
}

// An Answer is an opinion and its cost.
type Answer struct {
	Opinion
	// Raw is the text of the last reply.
	Raw string
	// Spend covers all requests.
	assay.Spend
}

// ErrUnreadable means that neither of a model's two replies contained an opinion.
var ErrUnreadable = errors.New("no readable opinion")

// A Classifier asks a model for opinions. It is safe for concurrent use.
type Classifier struct {
	Provider assay.Provider
	Model    string
	Sampling assay.Sampling
	// Budget is the working time of each of the two turns of a case. 0 means no limit.
	Budget time.Duration
}

// requests is the maximum number of requests per case: the question and one correction.
const requests = 2

// Classify asks for an opinion. If the reply contains no opinion, it asks once more. It then fails
// with [ErrUnreadable] and the reply. Errors of the provider are returned as they are. In every
// case the answer holds the spend so far.
func (c *Classifier) Classify(ctx context.Context, k Case) (Answer, error) {
	var answer Answer
	var unread error
	req := assay.Request{
		Model: c.Model, Messages: Prompt(k.Attempt, k.Task, k.Transcript),
		Sampling: c.Sampling, Budget: c.Budget,
	}
	for range requests {
		resp, err := c.Provider.Chat(ctx, &req)
		answer.Spend = answer.Spend.Add(resp.Billed())
		if err != nil {
			return answer, err
		}
		answer.Raw = resp.Message.Content
		if answer.Opinion, unread = Parse(answer.Raw); unread == nil {
			return answer, nil
		}
		req.Messages = append(req.Messages, correction(answer.Raw, unread)...)
		req.Lane = resp.Lane
	}
	reply := shorten(answer.Raw, maxReply)
	return answer, fmt.Errorf("%w: %w; the reply was %q", ErrUnreadable, unread, reply)
}
