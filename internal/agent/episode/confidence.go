package episode

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// confidenceQuestion is asked after the end of an episode. A change of it needs another value of
// [assay.Setting.AsksConfidence], because trials with other words are others.
const confidenceQuestion = "The task has ended, and nothing can be changed any more. How likely is it that you " +
	"have done everything that it asked for, and nothing else? Reply with one number from 0 to 100, and " +
	"without any other text: 0 means certainly not, 100 means certainly."

// askConfidence asks the model how likely it has succeeded. Whatever becomes of the request, the episode
// has ended as it has: only the end of ctx is an error.
func (e *episode) askConfidence(ctx context.Context) error {
	left := e.budget - e.waits.Working
	if e.budget > 0 && left <= 0 {
		return nil
	}
	req := e.request(left)
	req.Messages = withQuestion(req.Messages)
	req.Sampling.ToolChoice = "" // it may require a call
	resp, err := e.provider.Chat(ctx, req)
	a, bill := &e.attempt, resp.Billed()
	a.Spend = a.Spend.Add(bill)
	a.ConfidenceInputTokens, a.ConfidenceOutputTokens = bill.InputTokens, bill.OutputTokens
	a.ConfidenceCostUSD = bill.CostUSD
	e.waits.Requests += resp.Waits.Requests
	switch {
	case ctx.Err() != nil:
		return Stopped(ctx)
	case err == nil:
		e.transcript.Confidence = resp.Message.Content
		a.Confidence = confidenceIn(resp.Message.Content)
	}
	return nil
}

// withQuestion appends the question to a conversation: to the user's message if that is the last one,
// and after an answer to each call that has none.
func withQuestion(messages []assay.Message) []assay.Message {
	all := slices.Clone(messages)
	last := all[len(all)-1]
	if last.Role == assay.User {
		last.Content += "\n\n" + confidenceQuestion
		all[len(all)-1] = last
		return all
	}
	for _, c := range last.Calls {
		all = append(all, assay.Message{
			Role: assay.ToolRole, CallID: c.ID, Content: `{"refused":"the task has ended"}`,
		})
	}
	return append(all, assay.Message{Role: assay.User, Content: confidenceQuestion})
}

var (
	bareNumber = regexp.MustCompile(`^[*_\s]*(\d{1,3}(?:\.\d+)?)[*_\s]*(?:%|/\s*100|out of 100)?[.*_\s]*$`)
	anyNumber  = regexp.MustCompile(`-?\d+(?:[.,]\d+)*`)
	// aboutShare finds what makes a number within a sentence a confidence.
	aboutShare = regexp.MustCompile(`(?i)%|percent|/\s*100|out of 100|confiden|likel|probab|certain|sure`)
)

// confidenceIn returns the number from 0 to 100 that is a line of a reply, or else its only number if the
// words are about a share, as a share. It is nil if there is none, or several that differ.
func confidenceIn(reply string) *float64 {
	var found []string
	for line := range strings.Lines(reply) {
		if m := bareNumber.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			found = append(found, m[1])
		}
	}
	if len(found) == 0 && aboutShare.MatchString(reply) {
		found = anyNumber.FindAllString(strings.NewReplacer("/100", "", "/ 100", "", "out of 100", "").Replace(reply), -1)
	}
	if found = slices.Compact(found); len(found) != 1 {
		return nil
	}
	percent, err := strconv.ParseFloat(found[0], 64)
	if err != nil || percent < 0 || percent > 100 {
		return nil
	}
	return new(percent / 100)
}
