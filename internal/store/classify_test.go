package store_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func opinion(a *assay.Attempt) store.Classification {
	return store.Classification{
		Trial: a.ID, Number: a.Number, Model: "judge", Prompt: "classify-1",
		Category: "tool_choice", Confidence: 0.75,
		Reason: "it took the parser for the reader", RuleCategory: a.ErrorCategory, At: epoch,
		InputTokens: 1500, OutputTokens: 60, CostUSD: 0.0012, Raw: `{"category": "tool_choice"}`,
	}
}

func classify(t testing.TB, db *store.DB, opinions ...store.Classification) {
	t.Helper()
	for _, c := range opinions {
		must(t, db.Classify(t.Context(), c))
	}
}

func classifications(
	t testing.TB, db *store.DB, experiment string, trial assay.TrialID,
) (all []store.Classification) {
	t.Helper()
	for c, err := range db.Classifications(t.Context(), experiment, trial) {
		must(t, err)
		all = append(all, c)
	}
	return all
}

func TestClassifications(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	must(t, db.BeginRun(t.Context(), experiment("f"),
		store.Run{ID: "r2", StartedAt: epoch}))
	one, two, three := outcome(1), outcome(2), outcome(3)
	two.Experiment, two.Run = "f", "r2"
	save(t, db, fault(1), one, two)
	save(t, db, three)

	first, second, other, newer := opinion(three), opinion(one), opinion(two), opinion(one)
	other.Model, newer.Prompt = "another judge", "classify-2"
	classify(t, db, first, second, other, newer)
	rescore(t, db, rescored(one, better(1))) // does not affect classifications
	killed := filepath.Join(t.TempDir(), "assay.db")
	copyFiles(t, path, killed)
	reader := openReadOnly(t, killed)
	for _, tc := range []struct {
		experiment string
		trial      assay.TrialID
		want       []store.Classification
	}{
		{"", "", []store.Classification{first, second, other, newer}},
		{"f", "", []store.Classification{other}},
		{"", one.ID, []store.Classification{second, newer}},
		{"f", one.ID, nil},
	} {
		got := classifications(t, reader, tc.experiment, tc.trial)
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%q, %q (-want +got):\n%s", tc.experiment, tc.trial, diff)
		}
	}
	for _, tc := range []struct{ model, prompt, want string }{
		{"judge", "classify-1", "1 3"},
		{"judge", "classify-2", "1"},
		{"another judge", "classify-1", "2"},
		{"another judge", "classify-2", ""},
		{"", "", ""},
	} {
		set, err := reader.Classified(t.Context(), tc.model, tc.prompt)
		var got []string
		for i := range 5 {
			if set.Has(outcome(i).ID) {
				got = append(got, fmt.Sprint(i))
			}
		}
		if err != nil || strings.Join(got, " ") != tc.want || set.Len() != len(got) {
			t.Errorf("Classified(%s, %s) = %v, %v, want %s", tc.model, tc.prompt, got, err, tc.want)
		}
	}
}

func TestClassifyRefuses(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	f, a := fault(1), outcome(1)
	save(t, db, f, a)
	for name, tc := range map[string]struct {
		spoil func(*store.Classification)
		want  error
	}{
		"fault": {
			func(c *store.Classification) { c.Number = f.Number },
			store.ErrInvalid,
		},
		"unknown attempt": {func(c *store.Classification) { c.Number = 3 }, store.ErrNotFound},
		"unknown trial": {
			func(c *store.Classification) { c.Trial = outcome(2).ID },
			store.ErrNotFound,
		},
		"no trial":  {func(c *store.Classification) { c.Trial = "" }, store.ErrInvalid},
		"no model":  {func(c *store.Classification) { c.Model = "" }, store.ErrInvalid},
		"no prompt": {func(c *store.Classification) { c.Prompt = "" }, store.ErrInvalid},
		"no category": {
			func(c *store.Classification) { c.Category = "" },
			store.ErrInvalid,
		},
		"confidence percent": {
			func(c *store.Classification) { c.Confidence = 75 },
			store.ErrInvalid,
		},
		"confidence below 0": {
			func(c *store.Classification) { c.Confidence = -0.1 },
			store.ErrInvalid,
		},
		"confidence no value": {
			func(c *store.Classification) { c.Confidence = math.NaN() },
			store.ErrInvalid,
		},
		"negative tokens": {
			func(c *store.Classification) { c.OutputTokens = -1 },
			store.ErrInvalid,
		},
		"cost infinite": {
			func(c *store.Classification) { c.CostUSD = math.Inf(1) },
			store.ErrInvalid,
		},
		"year 10000": {func(c *store.Classification) {
			c.At = year10000
		}, store.ErrInvalid},
	} {
		c := opinion(a)
		tc.spoil(&c)
		if err := db.Classify(t.Context(), c); !errors.Is(err, tc.want) {
			t.Errorf("%s: Classify() = %v, want %v", name, err, tc.want)
		}
	}
	if got := classifications(t, db, "", ""); got != nil {
		t.Errorf("a refused call stored %v", got)
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	taken := 0
	for range 20 {
		wg.Go(func() {
			err := db.Classify(t.Context(), opinion(a))
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				taken++
			} else if !errors.Is(err, store.ErrInvalid) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := classifications(t, db, "", ""); taken != 1 || len(got) != 1 {
		t.Errorf("%d opinions were accepted and %d are stored, want one", taken, len(got))
	}
}

func TestClassificationRoundTripProperty(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	a := outcome(1)
	save(t, db, fault(1), a)
	next := 0
	rapid.Check(t, func(r *rapid.T) {
		text := rapid.OneOf(rapid.String(),
			rapid.SampledFrom([]string{"", "\x00", "a\x00b", "'", "\xff\xfe", "2026-01-01", "12"}))
		n := rapid.IntRange(0, 1<<53)
		next++
		want := store.Classification{
			Trial: a.ID, Number: a.Number, Model: fmt.Sprint("m", next, text.Draw(r, "model")),
			Prompt: "p" + text.Draw(r, "prompt"), Category: "c" + text.Draw(r, "category"),
			Confidence: rapid.Float64Range(0, 1).Draw(r, "confidence"),
			Reason:     text.Draw(r, "reason"), RuleCategory: text.Draw(r, "rule"),
			At: time.Unix(rapid.Int64Range(-62135596800, 253402300799).Draw(r, "at"),
				rapid.Int64Range(0, 1e9-1).Draw(r, "ns")).UTC(),
			InputTokens: n.Draw(r, "in"), OutputTokens: n.Draw(r, "out"),
			CostUSD: rapid.Float64Range(0, 1e9).Draw(r, "cost"), Raw: text.Draw(r, "raw"),
		}
		classify(t, db, want)
		got := classifications(t, db, "", a.ID)
		if diff := cmp.Diff(want, got[len(got)-1]); diff != "" {
			r.Fatalf("-want +got:\n%s", diff)
		}
		set, err := db.Classified(t.Context(), want.Model, want.Prompt)
		if err != nil || set.Len() != 1 || !set.Has(a.ID) {
			r.Fatalf("Classified() has %d, %v, want one", set.Len(), err)
		}
	})
}
