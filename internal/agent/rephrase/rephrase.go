// Package rephrase asks a model to put a task in other words, and another one whether both texts ask for
// the same.
//
// It owns the prompts and what is read out of the replies. It does not know files, and it decides nothing: a
// person does.
package rephrase

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// A Model is asked through its provider.
type Model struct {
	Provider assay.Provider
	Name     string
	Sampling assay.Sampling
}

// A Proposal is a task in other words.
type Proposal struct {
	Text string
	// Same reports whether the reader found that both texts ask for the same. Differs says what does not, or why
	// the reader's answer is unknown.
	Same    bool
	Differs string
	// Lost and Added are the words with digits or signs such as @ that only the task or only the proposal has:
	// numbers, dates, addresses and IDs.
	Lost, Added []string
	// Spend is that of all requests.
	assay.Spend
}

// ErrNothing means that a model has written no other words.
var ErrNothing = errors.New("no other words")

const writes = `You put tasks for an assistant in other words. The new text asks for exactly the same, with every name, number, date, limit and condition of the original and no others. You do not carry out the task and do not say how. Reply with the new text only.`

const reads = `You are shown two texts, each a task for an assistant. Would somebody who does all that the first one asks for, and nothing else, have done exactly what the second one asks for, and the other way round? Reply with a JSON object only: {"same": true or false, "differs": "what differs, in a sentence, or nothing"}`

// Propose asks the writer to put a task in other words of a style, such as casual, and the reader to compare
// both. The proposal has the spend so far, also if an error is returned.
func Propose(ctx context.Context, writer, reader Model, task, style string) (p Proposal, err error) {
	reply, err := p.ask(ctx, writer, writes, fmt.Sprintf("Style: %s\n\nThe task:\n\n%s", style, task))
	if err != nil {
		return p, err
	}
	if p.Text = strings.TrimSpace(strings.Map(printable, strings.ToValidUTF8(reply, ""))); p.Text == "" || p.Text == strings.TrimSpace(task) {
		return p, fmt.Errorf("%s has written %w", writer.Name, ErrNothing)
	}
	if reply, err = p.ask(ctx, reader, reads, fmt.Sprintf("First:\n\n%s\n\nSecond:\n\n%s", task, p.Text)); err != nil {
		return p, err
	}
	p.Same, p.Differs = opinion(reply)
	before, now := exact(task), exact(p.Text)
	p.Lost, p.Added = without(before, now), without(now, before)
	return p, nil
}

func (p *Proposal) ask(ctx context.Context, m Model, system, user string) (string, error) {
	resp, err := m.Provider.Chat(ctx, &assay.Request{
		Model: m.Name, Sampling: m.Sampling, Messages: []assay.Message{
			{Role: assay.System, Content: system}, {Role: assay.User, Content: user},
		},
	})
	p.Spend = p.Spend.Add(resp.Billed())
	if err != nil {
		return "", fmt.Errorf("%s: %w", m.Name, err)
	}
	return resp.Message.Content, nil
}

// opinion reads the reader's reply, whose last JSON object counts: thoughts come before it.
func opinion(reply string) (same bool, differs string) {
	for at := strings.LastIndexByte(reply, '{'); at >= 0; at = strings.LastIndexByte(reply[:at], '{') {
		var o struct {
			Same    *bool
			Differs string
		}
		if json.NewDecoder(strings.NewReader(reply[at:])).Decode(&o) == nil && o.Same != nil {
			return *o.Same, strings.TrimSpace(o.Differs)
		}
	}
	return false, fmt.Sprintf("the reader's answer is no JSON object with same: %q", assay.Head(reply, 200))
}

// printable drops control characters, which a file of tasks cannot have, but not the ends of lines.
func printable(r rune) rune {
	if unicode.IsControl(r) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

var word = regexp.MustCompile(`[\pL\pN_@#$€£%/.:+-]+`)

// exact returns the words of a text that stay as they are in any words: those with a digit or an address.
func exact(text string) (words []string) {
	for _, w := range word.FindAllString(text, -1) {
		if w = strings.Trim(w, ".:"); strings.ContainsAny(w, "0123456789@") {
			words = append(words, w)
		}
	}
	return words
}

// without returns the words that others lack, in order, each once.
func without(words, others []string) (left []string) {
	for _, w := range words {
		if !slices.Contains(others, w) && !slices.Contains(left, w) {
			left = append(left, w)
		}
	}
	return left
}
