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
	"strconv"
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
	Text    string
	Verdict Verdict
	// Why says what differs, or why there is no verdict.
	Why string
	// Lost and Added are the words with digits or @ that only the task or only the proposal has: numbers, which
	// are compared by value, dates, addresses and IDs.
	Lost, Added []string
	// Spend is that of all requests.
	assay.Spend
}

// A Verdict is what the reader found.
type Verdict string

// The verdicts.
const (
	Same    Verdict = "same"
	Differs Verdict = "differs"
	None    Verdict = "" // the reader's reply could not be read, or there was none
)

// ErrNothing means that a model has written no other words, or not all of them.
var ErrNothing = errors.New("no other words")

const writes = `You put tasks for an assistant in other words. The new text asks for exactly the same, with every name, number, date, limit and condition of the original and no others. You do not carry out the task and do not say how. Reply with the new text only.`

const reads = `You are shown two texts, each a task for an assistant. Would somebody who does all that the first one asks for, and nothing else, have done exactly what the second one asks for, and the other way round? Reply with a JSON object only: {"same": true or false, "differs": "what differs, in a sentence, or nothing"}`

// Propose asks the writer to put a task in other words of a style, such as casual, and the reader to compare
// both. The proposal has the spend so far, also if an error is returned. What the reader cannot say costs no
// proposal.
func Propose(ctx context.Context, writer, reader Model, task, style string) (p Proposal, err error) {
	resp, err := p.ask(ctx, writer, writes, fmt.Sprintf("Style: %s\n\nThe task:\n\n%s", style, task))
	if err != nil {
		return p, err
	}
	p.Text = strings.TrimSpace(strings.Map(printable, thoughts.ReplaceAllString(strings.ToValidUTF8(resp.Message.Content, ""), "")))
	switch {
	case assay.Truncated(resp.Finish):
		return p, fmt.Errorf("%s has written %w: its reply was cut off", writer.Name, ErrNothing)
	case p.Text == "" || p.Text == strings.TrimSpace(task):
		return p, fmt.Errorf("%s has written %w", writer.Name, ErrNothing)
	case len(p.Text) > longest*len(task)+200:
		return p, fmt.Errorf("%s has written %w, but %d bytes for a task of %d", writer.Name, ErrNothing, len(p.Text), len(task))
	}
	resp, err = p.ask(ctx, reader, reads, fmt.Sprintf("First:\n\n%s\n\nSecond:\n\n%s", task, p.Text))
	switch {
	case ctx.Err() != nil:
		return p, err
	case err != nil:
		p.Why = err.Error()
	default:
		p.Verdict, p.Why = opinion(resp.Message.Content)
	}
	before, now := exact(task), exact(p.Text)
	p.Lost, p.Added = without(before, now), without(now, before)
	return p, nil
}

// longest is how many times as long as its task a text in other words is at most, beside 200 bytes.
const longest = 4

// thoughts are what some models write before their reply.
var thoughts = regexp.MustCompile(`(?s)^\s*<think>.*?</think>`)

func (p *Proposal) ask(ctx context.Context, m Model, system, user string) (*assay.Response, error) {
	resp, err := m.Provider.Chat(ctx, &assay.Request{
		Model: m.Name, Sampling: m.Sampling, Messages: []assay.Message{
			{Role: assay.System, Content: system}, {Role: assay.User, Content: user},
		},
	})
	p.Spend = p.Spend.Add(resp.Billed())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	return resp, nil
}

// opinion reads the reader's reply, whose last JSON object counts: thoughts come before it.
func opinion(reply string) (v Verdict, why string) {
	for at := strings.LastIndexByte(reply, '{'); at >= 0; at = strings.LastIndexByte(reply[:at], '{') {
		var o struct {
			Same    *bool
			Differs string
		}
		if json.NewDecoder(strings.NewReader(reply[at:])).Decode(&o) == nil && o.Same != nil {
			if *o.Same {
				return Same, ""
			}
			return Differs, strings.TrimSpace(o.Differs)
		}
	}
	return None, fmt.Sprintf("no JSON object with same: %q", assay.Head(reply, 200))
}

// printable drops characters that a file of tasks cannot have or a terminal would not show, but not the ends of
// lines.
func printable(r rune) rune {
	if (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) && r != '\n' && r != '\t' {
		return -1
	}
	return r
}

var word = regexp.MustCompile(`[\pL\pN_@#$€£%/.,:+-]+`)

// exact returns the words of a text that stay as they are in any words: those with a digit or an address.
func exact(text string) (words []string) {
	for _, w := range word.FindAllString(text, -1) {
		if w = strings.Trim(w, ".,:"); strings.ContainsAny(w, "0123456789@") {
			words = append(words, valued(w))
		}
	}
	return words
}

// grouped matches a number with commas between groups of three digits.
var grouped = regexp.MustCompile(`^\d{1,3}(,\d{3})+(\.\d+)?$`)

// valued writes a number without what does not change its value: a currency, #, commas and zeros at the end.
func valued(w string) string {
	number := strings.Trim(w, "#$€£%")
	if grouped.MatchString(number) {
		number = strings.ReplaceAll(number, ",", "")
	}
	if f, err := strconv.ParseFloat(number, 64); err == nil && !strings.ContainsAny(number, "xXeEpPnN_") {
		return strconv.FormatFloat(f, 'f', -1, 64)
	}
	return w
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
