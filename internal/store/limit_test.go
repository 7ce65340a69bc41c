package store_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

func TestLearnedReturnsLatestValue(t *testing.T) {
	t.Parallel()
	db, path := create(t, store.Options{})
	begin(t, db, "r2")
	learned := func() []store.LaneLimit {
		t.Helper()
		got, err := openReadOnly(t, path).Learned(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := learned(); got != nil {
		t.Errorf("a new store returns limits %v", got)
	}
	// The order of storing counts, because the clocks of hosts differ.
	refused := store.Evidence{Accepted: 40, Refused: 3, Words: "slow down"}
	first := []store.LaneLimit{
		learnedLimit("west", assay.Tokens, 90_000, epoch.Add(time.Hour)),
		learnedLimit("east", assay.Tokens, 60_000, epoch),
		learnedLimit("east", assay.Requests, 60, epoch),
		{
			Run: "r1", Lane: "east", Bucket: assay.Tokens, Value: 50_000, At: epoch,
			Evidence: refused,
		},
	}
	second := []store.LaneLimit{
		learnedLimit("west", assay.Tokens, 80_000, epoch.Add(time.Minute)),
		learnedLimit("east", assay.Requests, 0, epoch.Add(time.Minute)),
	}
	second[0].Run = "r2"
	for run, limits := range map[assay.RunID][]store.LaneLimit{"r1": nil, "r2": {}} {
		if err := db.Learn(t.Context(), run, limits); err != nil {
			t.Errorf("Learn() without limits = %v", err)
		}
	}
	for _, step := range []struct {
		run    assay.RunID
		limits []store.LaneLimit
		want   []store.LaneLimit
	}{
		{"r1", first, []store.LaneLimit{first[2], first[3], first[0]}},
		{"r2", second, []store.LaneLimit{first[3], second[0]}},
		{"r1", first[2:3], []store.LaneLimit{first[2], first[3], second[0]}},
	} {
		if err := db.Learn(t.Context(), step.run, step.limits); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(step.want, learned()); diff != "" {
			t.Errorf("Learned() (-want +got):\n%s", diff)
		}
	}
}

func learnedLimit(lane string, b assay.Bucket, value int, at time.Time) store.LaneLimit {
	return store.LaneLimit{Run: "r1", Lane: lane, Bucket: b, Value: value, At: at}
}

func TestLearnRefusesInvalidLimits(t *testing.T) {
	t.Parallel()
	db, _ := create(t, store.Options{})
	good := store.LaneLimit{Lane: "l", Bucket: assay.Tokens, Value: 1, At: epoch}
	for name, tc := range map[string]struct {
		run  assay.RunID
		bad  store.LaneLimit
		want error
	}{
		"negative":    {"r1", learnedLimit("l", assay.Tokens, -1, epoch), store.ErrInvalid},
		"no lane":     {"r1", learnedLimit("", assay.Tokens, 1, epoch), store.ErrInvalid},
		"no bucket":   {"r1", learnedLimit("l", "", 1, epoch), store.ErrInvalid},
		"year 10000":  {"r1", learnedLimit("l", assay.Tokens, 1, year10000), store.ErrInvalid},
		"unknown run": {"r9", good, store.ErrUnknownRun},
	} {
		if err := db.Learn(t.Context(), tc.run, []store.LaneLimit{
			good,
			tc.bad,
		}); !errors.Is(err, tc.want) {
			t.Errorf("%s: Learn() = %v, want %v", name, err, tc.want)
		}
	}
	if got, err := db.Learned(t.Context()); len(got) != 0 || err != nil {
		t.Errorf("refused calls left %v, %v", got, err)
	}
	save(t, db, outcome(1)) // a refusal does not stop the store
}

func TestControlsAreKeptInOrder(t *testing.T) {
	t.Parallel()
	db, path := create(t, store.Options{})
	if err := db.BeginRun(t.Context(), experiment("f"),
		store.Run{ID: "r2", StartedAt: epoch}); err != nil {
		t.Fatal(err)
	}
	logged := []store.Control{
		{"r1", epoch.Add(time.Hour), json.RawMessage(`{"pause": "east"}`)},
		{"r2", epoch, json.RawMessage(`"stop"`)},
		{"r1", epoch.Add(time.Second), json.RawMessage(`{"resume": "east"}`)},
	}
	for _, c := range logged {
		if err := db.Log(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		got  store.Control
		want error
	}{
		"no JSON":     {store.Control{"r1", epoch, json.RawMessage("{")}, store.ErrInvalid},
		"nothing":     {store.Control{"r1", epoch, nil}, store.ErrInvalid},
		"unknown run": {store.Control{"r9", epoch, json.RawMessage("{}")}, store.ErrUnknownRun},
	} {
		if err := db.Log(t.Context(), tc.got); !errors.Is(err, tc.want) {
			t.Errorf("%s: Log() = %v, want %v", name, err, tc.want)
		}
	}
	for experiment, want := range map[string][]store.Control{
		"":  logged,
		"e": {logged[0], logged[2]}, "f": {logged[1]}, "g": nil,
	} {
		got, err := openReadOnly(t, path).Controls(t.Context(), experiment)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("Controls(%q): %v (-want +got):\n%s", experiment, err, diff)
		}
	}
}
