package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func TestAttemptsFilter(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	must(t, db.BeginRun(t.Context(), experiment("f"),
		store.Run{ID: "r2", StartedAt: epoch}))
	begin(t, db, "r3")
	another, later := outcome(2), outcome(3)
	another.Experiment, another.Run, later.Run = "f", "r2", "r3"
	save(t, db, fault(1), outcome(1), another)
	snapshot, err := db.Snapshot(t.Context())
	must(t, err)
	save(t, db, later)
	for name, tc := range map[string]struct {
		filter store.Filter
		want   string
	}{
		"all":                     {store.Filter{}, "r1/1 r1/2 r2/1 r3/1"},
		"experiment":              {store.Filter{Experiment: "e"}, "r1/1 r1/2 r3/1"},
		"experiment and outcomes": {store.Filter{Experiment: "e", OnlySettled: true}, "r1/2 r3/1"},
		"faults":                  {store.Filter{OnlyFaults: true}, "r1/1"},
		"both":                    {store.Filter{OnlyFaults: true, OnlySettled: true}, ""},
		"run":                     {store.Filter{Run: "r2"}, "r2/1"},
		"trial":                   {store.Filter{Trial: outcome(1).ID}, "r1/1 r1/2"},
		"snapshot":                {store.Filter{Snapshot: snapshot}, "r1/1 r1/2 r2/1"},
		"first state":             {store.Filter{Snapshot: "0"}, ""},
		"unknown":                 {store.Filter{Experiment: "g"}, ""},
	} {
		var got []string
		for _, a := range all(t, db, tc.filter) {
			got = append(got, fmt.Sprintf("%s/%d", a.Run, a.Number))
		}
		if strings.Join(got, " ") != tc.want {
			t.Errorf("%s: %v, want %s", name, got, tc.want)
		}
	}
	for _, a := range db.Attempts(t.Context(), store.Filter{Trial: "xyz"}) {
		if a == nil {
			t.Error("an invalid trial ID gives no error")
		}
	}
}

func TestAttemptsEndWithContext(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	save(t, db, outcome(1), outcome(2))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	calls := 0
	for _, err := range db.Attempts(ctx, store.Filter{}) {
		if calls++; !errors.Is(err, context.Canceled) {
			t.Errorf("error = %v, want canceled", err)
		}
	}
	if calls != 1 {
		t.Errorf("%d steps, want 1", calls)
	}
}

func TestSettledSet(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	const n = 30
	for i := range n {
		a := outcome(i)
		if i%3 == 0 {
			a = fault(i)
		}
		save(t, db, a)
	}
	set, err := db.Settled(t.Context())
	must(t, err)
	for i := range 2 * n {
		id := outcome(i).ID
		if got, want := set.Has(id), i < n && i%3 != 0; got != want {
			t.Errorf("trial %d: Has() = %v, want %v", i, got, want)
		}
	}
	if set.Len() != n*2/3 || set.Has("") || set.Has("zz") || (store.Set{}).Has(outcome(1).ID) {
		t.Errorf("the set of %d holds trials that are not settled", set.Len())
	}
}

func TestSnapshotNamesOneState(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	var states []string
	a, again := outcome(1), better(1)
	again.Turns++
	for _, change := range []func(){
		func() {}, func() { save(t, db, a) }, func() { save(t, db, outcome(2)) },
		func() { rescore(t, db, rescored(a, better(1))) },
		func() { rescore(t, db, rescored(a, again)) },
	} {
		change()
		now := snapshot(t, db)
		if slices.Contains(states, now) || snapshot(t, db) != now ||
			snapshot(t, openReadOnly(t, path)) != now {
			t.Errorf("state %d has another name for each reader, or an earlier one: %s, %v",
				len(states), now, states)
		}
		states = append(states, now)
	}
	shape := regexp.MustCompile(`-[0-9a-f]{12}\b`).ReplaceAllString(strings.Join(states, " "), "-X")
	if shape != "0 1-X 2-X 2+1-X 2+2-X" {
		t.Errorf("the states have the names %v", states)
	}
	wrong := []string{"3-aaaaaaaaaaaa", "2-aaaaaaaaaaaa", states[1] + "x", "2", "-", "x"}
	_, digest, _ := strings.Cut(states[3], "-")
	for _, rows := range []string{"2+3-", "3+1-", "2+0-", "2+2-", "+1-", "2+-"} {
		wrong = append(wrong, rows+digest)
	}
	for _, name := range wrong {
		for _, err := range db.Attempts(t.Context(), store.Filter{Snapshot: name}) {
			if !errors.Is(err, store.ErrUnknownSnapshot) {
				t.Errorf("snapshot %q: error = %v, want ErrUnknownSnapshot", name, err)
			}
		}
	}
}

func TestTranscriptOfEachAttempt(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	save(t, db, fault(1), fault(1), outcome(1), fault(1))
	id := outcome(1).ID
	for i := range 4 {
		got, err := db.Transcript(t.Context(), id, i+1)
		if diff := cmp.Diff(*transcript(i), got); diff != "" || err != nil {
			t.Errorf("Transcript(%d): %v (-want +got):\n%s", i+1, err, diff)
		}
	}
	must(t, db.Save(t.Context(), outcome(2), nil))
	for trial, number := range map[assay.TrialID]int{id: 5, outcome(2).ID: 1, outcome(3).ID: 1} {
		if _, err := db.Transcript(t.Context(), trial, number); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Transcript(%s, %d) = %v, want ErrNotFound", trial, number, err)
		}
	}
}

func TestFindTrial(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	withID := func(id string) *assay.Attempt {
		a := outcome(1)
		a.ID = assay.TrialID(id)
		return a
	}
	long := "aabbccdd" + strings.Repeat("0", 23)
	for _, last := range "0123456" {
		save(t, db, withID(long+string(last)))
	}
	alone := "aabbccde" + strings.Repeat("f", 24)
	save(t, db, withID(alone))
	for prefix, want := range map[string]string{
		"aabbccde": alone, "AABBCCDE": alone,
		"aabbccdef": alone, alone: alone, long + "3": long + "3",
	} {
		if got, err := db.FindTrial(t.Context(), prefix); string(got) != want || err != nil {
			t.Errorf("FindTrial(%q) = %q, %v, want %q", prefix, got, err, want)
		}
	}
	for prefix, want := range map[string]error{
		"": store.ErrPrefix, "aab": store.ErrPrefix, "xxxx": store.ErrPrefix,
		"aabbé": store.ErrPrefix, alone + "0": store.ErrPrefix,
		"ffff": store.ErrNotFound, "aabbccdf": store.ErrNotFound, "aabbccde0": store.ErrNotFound,
	} {
		if _, err := db.FindTrial(t.Context(), prefix); !errors.Is(err, want) {
			t.Errorf("FindTrial(%q) = %v, want %v", prefix, err, want)
		}
	}
	_, err := db.FindTrial(t.Context(), "aabb")
	var ambiguous *store.AmbiguousError
	if !errors.As(err, &ambiguous) || len(ambiguous.Trials) != 5 || !ambiguous.More ||
		!strings.Contains(err.Error(), "\nhint: ") {
		t.Errorf("FindTrial(aabb) = %v, want five candidates and a sign that there are more", err)
	}
}

func TestExperimentsAndRuns(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	later := experiment("e")
	later.Spec, later.Planned, later.Library.Digest = json.RawMessage(`{"edited": true}`), 20, "d2"
	must(t, db.BeginRun(t.Context(), later,
		store.Run{
			ID: "r2", Program: "v2", Host: "h", PID: 8,
			StartedAt: epoch.Add(time.Hour),
		}))
	first := store.Experiment{
		Name: "a", Spec: json.RawMessage("null"), Run: "r3", CreatedAt: epoch,
		UpdatedAt: epoch,
	}
	must(t, db.BeginRun(t.Context(), first, store.Run{ID: "r3", StartedAt: epoch}))
	later.Run = "r2"
	later.CreatedAt, later.UpdatedAt, later.Plans = epoch, epoch.Add(time.Hour), 2
	got, err := db.Experiments(t.Context())
	if diff := cmp.Diff([]store.Experiment{first, later}, got); diff != "" || err != nil {
		t.Errorf("Experiments(): %v (-want +got):\n%s", err, diff)
	}

	before := time.Now()
	must(t, db.EndRun(t.Context(), "r2", json.RawMessage(`{"done": 3}`)))
	runs, err := db.Runs(t.Context(), "e")
	if err != nil || len(runs) != 2 {
		t.Fatalf("Runs() = %v, %v, want two", runs, err)
	}
	if end := runs[1].FinishedAt; end.Before(before) || end.After(time.Now()) {
		t.Errorf("the run ended at %v, want now", end)
	}
	runs[1].FinishedAt = time.Time{}
	want := []store.Run{
		{ID: "r1", Experiment: "e", Program: "v1", Host: "h", PID: 7, StartedAt: epoch},
		{
			ID: "r2", Experiment: "e", Program: "v2", Host: "h", PID: 8,
			StartedAt: epoch.Add(time.Hour), Summary: json.RawMessage(`{"done": 3}`),
		},
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Errorf("Runs() (-want +got):\n%s", diff)
	}
	plans, err := db.Plans(t.Context())
	libraries := make(map[assay.RunID]store.Library)
	for run, e := range plans {
		libraries[run] = e.Library
	}
	used := map[assay.RunID]store.Library{
		"r1": experiment("e").Library, "r2": later.Library,
		"r3": {},
	}
	if diff := cmp.Diff(used, libraries); diff != "" || err != nil {
		t.Errorf("libraries of Plans(): %v (-want +got):\n%s", err, diff)
	}
	if runs, err := db.Runs(t.Context(), ""); len(runs) != 3 || err != nil {
		t.Errorf("Runs of all = %v, %v, want three", runs, err)
	}
}

func TestRunsBeginAndEndOnce(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	must(t, db.EndRun(t.Context(), "r1", nil))
	for name, tc := range map[string]struct{ got, want error }{
		"begin again": {
			db.BeginRun(t.Context(), experiment("e"), store.Run{ID: "r1"}),
			store.ErrRunExists,
		},
		"end again":   {db.EndRun(t.Context(), "r1", nil), store.ErrRunEnded},
		"end unknown": {db.EndRun(t.Context(), "r9", nil), store.ErrUnknownRun},
		"no name": {
			db.BeginRun(t.Context(), store.Experiment{}, store.Run{ID: "r2"}),
			store.ErrInvalid,
		},
		"no ID": {db.BeginRun(t.Context(), experiment("e"), store.Run{}), store.ErrInvalid},
		"no JSON": {
			db.BeginRun(t.Context(),
				store.Experiment{Name: "e", Spec: json.RawMessage("{")}, store.Run{ID: "r2"}),
			store.ErrInvalid,
		},
	} {
		if !errors.Is(tc.got, tc.want) {
			t.Errorf("%s: %v, want %v", name, tc.got, tc.want)
		}
	}
	save(t, db, outcome(1)) // a refusal does not stop the store
}
