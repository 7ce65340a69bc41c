package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func TestSpentByLaneAndMinute(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	since := time.Date(2026, 3, 4, 12, 0, 30, 0, time.UTC)
	for i, s := range []struct {
		lane     string
		after    time.Duration
		requests int
	}{
		{"behind", time.Second, 8},           // is behind the end of the walk
		{"east", -48 * time.Hour, 1_000_000}, // ends the walk
		{"east", 10 * time.Second, 7},        // saved late, within the slack
		{"east", -24*time.Hour + 1, 100_000},
		{"east", -1, 10_000},
		{"east", 0, 1},
		{"west", 29 * time.Second, 2},
		{"east", 20 * time.Second, 3},
		{"", 20 * time.Second, 1000},
		{"idle", 20 * time.Second, 0},
		{"east", 30 * time.Second, 4},
		{"east", 15 * time.Second, 5},
		{"west", 2 * time.Hour, 6},
	} {
		a := outcome(i)
		if i%2 == 0 {
			a = fault(i)
		}
		a.Lane, a.Requests, a.FinishedAt = s.lane, s.requests, since.Add(s.after)
		a.InputTokens, a.OutputTokens, a.CachedTokens = 10*s.requests, s.requests, 0
		save(t, db, a)
	}
	for name, tc := range map[string]struct {
		since time.Time
		want  map[string][]store.Sent
	}{
		"since": {since, map[string][]store.Sent{
			"east": {
				{since.Add(20 * time.Second), 7 + 1 + 3 + 5, 10 * (7 + 1 + 3 + 5), 7 + 1 + 3 + 5},
				{since.Add(30 * time.Second), 4, 10 * 4, 4},
			},
			"west": {{since.Add(29 * time.Second), 2, 10 * 2, 2}, {since.Add(2 * time.Hour), 6, 10 * 6, 6}},
		}},
		"another zone": {
			since.Add(2 * time.Hour).In(time.FixedZone("", 3600)),
			map[string][]store.Sent{"west": {{since.Add(2 * time.Hour), 6, 10 * 6, 6}}},
		},
		"later": {since.Add(3 * time.Hour), map[string][]store.Sent{}},
		"a day before": {since.Add(-24 * time.Hour), map[string][]store.Sent{
			"east": {
				{since.Add(-24*time.Hour + 1), 100_000, 10 * 100_000, 100_000},
				{since.Add(20 * time.Second), 10_000 + 7 + 1 + 3 + 5, 10 * (10_000 + 7 + 1 + 3 + 5), 10_000 + 7 + 1 + 3 + 5},
				{since.Add(30 * time.Second), 4, 10 * 4, 4},
			},
			"west":   {{since.Add(29 * time.Second), 2, 10 * 2, 2}, {since.Add(2 * time.Hour), 6, 10 * 6, 6}},
			"behind": {{since.Add(time.Second), 8, 10 * 8, 8}},
		}},
	} {
		got, err := db.Spent(t.Context(), tc.since)
		if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
			t.Errorf("%s: Spent(): %v (-want +got):\n%s", name, err, diff)
		}
	}
}

func TestProfileByModelAndVariant(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	at := func(a *assay.Attempt, model, variant string) *assay.Attempt {
		cell := a.Cell
		cell.Model, cell.Variant = model, variant
		a.Trial = assay.NewTrial(cell, assay.TaskRef{ID: a.Task, Digest: a.TaskDigest},
			a.Setting, 1, 1)
		return a
	}
	plain := outcome(1).Spend
	thinking := at(outcome(1), "b", "optimal")
	think(thinking)
	cut := at(fault(2), "a", "optimal")
	cut.FaultKind = assay.Interrupted
	asides := assay.Bill{Tokens: 30 + 3 + 7 + 1, USD: .5 + .25}
	for _, a := range []*assay.Attempt{thinking, cut} {
		a.UserSpend = assay.UserSpend{UserInputTokens: 30, UserOutputTokens: 3, UserCostUSD: .5}
		a.JudgeSpend = assay.JudgeSpend{JudgeInputTokens: 7, JudgeOutputTokens: 1, JudgeCostUSD: .25}
	}
	besides := plain.Bill()
	besides.Add(asides)
	save(t, db,
		at(outcome(1), "b", "baseline"), at(outcome(2), "b", "baseline"),
		at(fault(3), "b", "baseline"),
		thinking, at(fault(1), "a", "optimal"), at(fault(1), "a", "optimal"), cut)
	one := outcome(1)
	think(one)
	want := []store.Profile{
		{Model: "a", Variant: "optimal", Faulted: 2, FaultedRequests: 2 * one.Requests, Besides: besides},
		{
			Model: "b", Variant: "baseline", Attempts: 2, Turns: 2 * one.Outcome.Turns,
			Requests: 2 * one.Requests, WorkingMS: 2 * one.WorkingMS, Faulted: 1,
			Spend:           plain.Add(plain),
			FaultedRequests: one.Requests,
		},
		{
			Model: "b", Variant: "optimal", Attempts: 1, Turns: one.Outcome.Turns,
			Requests: one.Requests, WorkingMS: one.WorkingMS, Spend: one.Spend, Besides: asides,
		},
	}
	got, err := db.Profile(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Profile(): %v (-want +got):\n%s", err, diff)
	}
}

func TestProfileCoversLatestAttempts(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	save(t, db, outcome(1), fault(2), outcome(2), fault(3))
	for latest, want := range []string{"0+0", "0+1", "1+1", "1+2", "2+2", "2+2"} {
		got, err := db.ProfileOf(t.Context(), latest)
		attempts, faulted := 0, 0
		for _, p := range got {
			attempts, faulted = attempts+p.Attempts, faulted+p.Faulted
		}
		if fmt.Sprintf("%d+%d", attempts, faulted) != want || err != nil {
			t.Errorf("latest %d attempts: %+v, %v, want %s", latest, got, err, want)
		}
	}
}
