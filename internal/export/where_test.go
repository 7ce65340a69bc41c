package export_test

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/export"
)

func TestWhere(t *testing.T) {
	t.Parallel()
	a := assay.Attempt{Outcome: assay.Outcome{Level: assay.Failure, Turns: 7, OrderCorrect: true}}
	a.Model, a.Reliability = "m", 0.8
	for text, want := range map[string]bool{
		"":                              true,
		"model=m":                       true,
		"model=M":                       false,
		"model!=m":                      false,
		"level=failure,partial_success": true,
		"level!=failure":                false,
		"reliability=0.8 turns=7":       true,
		"reliability=0.80":              false,
		"order_correct=true model=x":    false,
		"severity=":                     true,
		"given_adherence=":              true,
	} {
		w, err := export.ParseWhere(strings.Fields(text))
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		if got := w.Has(&a); got != want {
			t.Errorf("%q chooses the attempt: %v, want %v", text, got, want)
		}
	}
	for text, hint := range map[string]string{"modl=x": "model", "model": "FIELD=VALUE", "": "FIELD=VALUE"} {
		if _, err := export.ParseWhere([]string{text}); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%q: %v, want a word of %s", text, err, hint)
		}
	}
}
