package rephrase_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/rephrase"
)

// replies are given in turn.
type replies struct {
	texts []string
	asked []string
}

func (r *replies) Chat(_ context.Context, req *assay.Request) (*assay.Response, error) {
	r.asked = append(r.asked, req.Model+": "+req.Messages[1].Content)
	if len(r.texts) == 0 {
		return new(assay.Response), errors.New("nothing left")
	}
	resp := &assay.Response{Usage: assay.Usage{InputTokens: 7, OutputTokens: 2}}
	resp.Message.Content, r.texts = r.texts[0], r.texts[1:]
	if strings.HasSuffix(resp.Message.Content, " and") {
		resp.Finish = "length"
	}
	return resp, nil
}

func TestPropose(t *testing.T) {
	t.Parallel()
	const task = "Refund 25 euros of order 7 to ada@example.com."
	for name, test := range map[string]struct {
		replies     []string
		verdict     rephrase.Verdict
		why         string
		lost, added []string
		err         string
	}{
		"same":        {replies: []string{" H\x00ey,\r order 7? Give ada@example.com her 25 euros back. ", `{"same": true}`}, verdict: rephrase.Same},
		"thinks":      {replies: []string{"x 25 7 ada@example.com", "{hm} {\"same\": true} no: {\"same\": false, \"differs\": \"no order\"}"}, verdict: rephrase.Differs, why: "no order"},
		"changes":     {replies: []string{"Refund 52 euros of order 7.", `{"same": true, "differs": ""}`}, verdict: rephrase.Same, lost: []string{"25", "ada@example.com"}, added: []string{"52"}},
		"silent":      {replies: []string{"other 25 7 ada@example.com", "Yes."}, why: `no JSON object with same: "Yes."`},
		"same words":  {replies: []string{task + "\n"}, err: "w has written no other words"},
		"no reply":    {replies: nil, err: "w: nothing left"},
		"no opinion":  {replies: []string{"other 25 7 ada@example.com"}, why: "r: nothing left"},
		"by value":    {replies: []string{"€25.00 of order #7 to ada@example.com", `{"same": true}`}, verdict: rephrase.Same},
		"too long":    {replies: []string{strings.Repeat("x", 1000)}, err: "w has written no other words, but 1000 bytes for a task of 46"},
		"cut off":     {replies: []string{"Give 25 for 7 to ada@example.com and"}, err: "w has written no other words: its reply was cut off"},
		"thoughts":    {replies: []string{"<think>7?</think>", ""}, err: "w has written no other words"},
		"empty reply": {replies: []string{" "}, err: "w has written no other words"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			models := &replies{texts: test.replies}
			p, err := rephrase.Propose(t.Context(), rephrase.Model{Provider: models, Name: "w"},
				rephrase.Model{Provider: models, Name: "r"}, task, "casual")
			if test.err != "" {
				if err == nil || err.Error() != test.err {
					t.Errorf("error %v, want %s", err, test.err)
				}
				return
			}
			if err != nil || p.Verdict != test.verdict || p.Why != test.why || !slices.Equal(p.Lost, test.lost) || !slices.Equal(p.Added, test.added) {
				t.Errorf("%+v, %v", p, err)
			}
			if p.Text != strings.TrimSpace(strings.NewReplacer("\x00", "", "\r", "").Replace(test.replies[0])) || p.InputTokens != 7*len(test.replies) {
				t.Errorf("text %q, %+v", p.Text, p.Spend)
			}
			if want := "r: First:\n\n" + task + "\n\nSecond:\n\n" + p.Text; models.asked[1] != want {
				t.Errorf("the reader was asked %q", models.asked[1])
			}
		})
	}
}
