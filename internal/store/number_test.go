package store_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// What an attempt has cost that a kill cut off is known, and counts once, whatever the clock is set to
// meanwhile.
func TestClocksMakeNoDifferenceToWhatIsSaved(t *testing.T) {
	t.Parallel()
	const hour = time.Hour
	for _, tc := range []struct {
		name                    string
		before, began, finished time.Duration // when the attempt before ended, and the second one
		saved                   bool          // before the kill
		numbered                bool
	}{
		{"forwards", 0, hour, 2 * hour, false, true},
		{"forwards, saved", 0, hour, 2 * hour, true, true},
		{"set back before it began", 5 * hour, hour, 2 * hour, false, true},
		{"set back while it was carried out", 0, 5 * hour, hour, true, true},
		{"an older journal", 0, hour, 2 * hour, false, false},
		{"an older journal, saved", 0, hour, 2 * hour, true, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "s.db")
			db := open(t, path)
			begin(t, db, "r1")
			before := fault(1)
			before.StartedAt, before.FinishedAt = epoch.Add(tc.before-hour), epoch.Add(tc.before)
			must(t, db.Save(t.Context(), before, nil))

			read := db.Journal
			if !tc.numbered {
				read = func(context.Context) (*store.Journal, error) { return store.ReadJournal(path + ".bills") }
			}
			j, err := read(t.Context())
			must(t, err)
			j.Continue(store.JournalEntry{Run: before.Run, Experiment: before.Experiment}, func(err error) { t.Error(err) })
			entry := store.JournalEntry{Trial: &before.Trial, At: epoch.Add(tc.began)}
			j.Write(entry)
			j.Write(store.JournalEntry{ID: before.ID, Spent: &assay.Usage{InputTokens: 5}, Cost: .25})
			if tc.saved {
				done := outcome(1)
				done.Trial, done.CostUSD = before.Trial, .25
				done.StartedAt, done.FinishedAt = entry.At, epoch.Add(tc.finished)
				must(t, db.Save(t.Context(), done, nil))
			}
			j.Close(false) // as a kill does

			left, err := db.Left(t.Context())
			must(t, err)
			if got := len(left.Attempts); (got == 0) != tc.saved {
				t.Errorf("%d attempts are left; saved: %t", got, tc.saved)
			}
		})
	}
}

// An attempt that is over when the journal cannot be written any more is over: another one at its trial
// does not have its cost, too.
func TestAttemptsAreOverWithoutAJournal(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "gone")
	must(t, os.Mkdir(dir, 0o700))
	path, head := filepath.Join(dir, "journal"), store.JournalEntry{Run: "r1", Experiment: "e"}
	j, err := store.ReadJournal(path)
	must(t, err)
	j.Continue(head, func(err error) { t.Error(err) })
	a := outcome(1)
	j.Write(store.JournalEntry{Trial: &a.Trial, At: epoch})
	j.Write(store.JournalEntry{ID: a.ID, Spent: &assay.Usage{InputTokens: 5}, Cost: .25})
	j.Close(false)

	j, err = store.ReadJournal(path)
	must(t, err)
	must(t, os.RemoveAll(dir))
	failed := false
	j.Continue(head, func(error) { failed = true })
	if _, bill := j.Rewind(a.ID); bill.CostUSD != .25 || !failed {
		t.Fatalf("the attempt has cost %v; the journal failed: %t", bill.CostUSD, failed)
	}
	j.Write(store.JournalEntry{ID: a.ID, Over: true})
	if replies, bill := j.Rewind(a.ID); replies >= 0 || bill.CostUSD != 0 {
		t.Errorf("the next attempt has %d replies and has cost %v", replies, bill.CostUSD)
	}
	j.Close(false)
}

// A trial's next attempt is another one than those that were saved without the journal, which it does not
// take for itself: what a run has cost that was killed, or an attempt that was free.
func TestAttemptAfterASavedOneIsAnother(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"the cost of a killed run", "a free attempt"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t, filepath.Join(t.TempDir(), "s.db"))
			begin(t, db, "r1")
			saved := fault(1)
			head := store.JournalEntry{Run: saved.Run, Experiment: saved.Experiment}
			work := func(before, meanwhile func(*store.Journal)) {
				j, err := db.Journal(t.Context())
				must(t, err)
				before(j)
				j.Continue(head, func(err error) { t.Error(err) })
				meanwhile(j)
				j.Write(store.JournalEntry{Trial: &saved.Trial, At: epoch})
				j.Write(store.JournalEntry{ID: saved.ID, Spent: &assay.Usage{InputTokens: 5}, Cost: .25})
				j.Close(false) // as a kill does
			}
			save := func(j *store.Journal) {
				must(t, db.Save(t.Context(), saved, nil))
				j.Forget(saved.ID)
			}
			nothing := func(*store.Journal) {}
			if name == "a free attempt" {
				work(nothing, func(j *store.Journal) {
					other := outcome(2)
					j.Write(store.JournalEntry{Trial: &other.Trial, At: epoch})
					save(j)
				})
			} else {
				work(nothing, nothing)
				work(save, nothing)
			}
			left, err := db.Left(t.Context())
			must(t, err)
			if !slices.ContainsFunc(left.Attempts, func(u store.Unfinished) bool { return u.ID == saved.ID }) {
				t.Errorf("the second attempt is missing among the %d that are left", len(left.Attempts))
			}
		})
	}
}
