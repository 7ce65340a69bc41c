package store_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
)

// A journal that is written anew reads each of its lines once, however many attempts have replies in it:
// with n attempts in flight, the line of a flush has replies of all of them. Each keeps its own.
func TestAJournalIsWrittenAnewInOnePass(t *testing.T) {
	head := store.JournalEntry{Run: "r", Experiment: "e"}
	failed := func(err error) { t.Error(err) }
	began := func(j *store.Journal, n int) (all []assay.Trial) {
		j.Continue(head, failed)
		for i := range n {
			all = append(all, outcome(i).Trial)
			j.Write(store.JournalEntry{Trial: &all[i], At: epoch})
		}
		return all
	}
	const turns = 3
	reply := func(id assay.TrialID, turn int) *store.JournalReply {
		return &store.JournalReply{
			To: uint64(turn), Began: epoch, Ended: epoch.Add(time.Hour),
			Response: assay.Response{Lane: fmt.Sprint(id, turn)},
		}
	}
	allocations := func(n int) uint64 {
		path := filepath.Join(t.TempDir(), "j")
		synctest.Test(t, func(t *testing.T) { // so that replies wait for each other
			j, err := store.ReadJournal(path)
			must(t, err)
			trials := began(j, n)
			for turn := range turns {
				var all sync.WaitGroup
				for _, trial := range trials {
					all.Go(func() {
						j.Keep(store.JournalEntry{ID: trial.ID, Reply: reply(trial.ID, turn)})
					})
				}
				all.Wait()
			}
			for i := range n / 2 {
				j.Write(store.JournalEntry{ID: trials[2*i].ID, Over: true})
			}
			j.Close(false)
		})
		j, err := store.ReadJournal(path)
		must(t, err)
		defer j.Close(false)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		j.Continue(head, failed)
		runtime.ReadMemStats(&after)
		for i := range n {
			id := outcome(i).ID
			if replies, _ := j.Rewind(id); i%2 == 0 {
				if replies != -1 {
					t.Errorf("trial %d is over, and has %d replies", i, replies)
				}
				continue
			}
			for turn := range turns {
				r, _ := j.Replay(id, false, uint64(turn))
				if want := reply(id, turn); r == nil || r.Response.Lane != want.Response.Lane {
					t.Errorf("trial %d, turn %d: got %v, want %v", i, turn, r, want)
				}
			}
		}
		return after.Mallocs - before.Mallocs
	}
	few, many := allocations(60), allocations(240) // 4 times as many attempts
	if many > 7*few {
		t.Errorf("%d allocations for 240 attempts, %d for 60", many, few)
	}
}

// With 40 attempts in flight, a flush has 7 replies or more, also on a disk that is as fast as can be. A
// flush costs CPU and writes whole pages, so with fewer replies in each, saving turns costs more than
// 15 % of what a run costs without.
func TestFlushesHaveSeveralReplies(t *testing.T) {
	const inFlight, turns, latency = 40, 15, 100 * time.Millisecond
	path := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		j, err := store.ReadJournal(path)
		must(t, err)
		j.Continue(store.JournalEntry{Run: "r", Experiment: "e"}, func(err error) { t.Error(err) })
		random, began := rand.New(rand.NewPCG(1, 2)), time.Now()
		var all sync.WaitGroup
		for i := range inFlight {
			trial, luck := outcome(i).Trial, rand.New(rand.NewPCG(random.Uint64(), 0))
			j.Write(store.JournalEntry{Trial: &trial, At: began})
			all.Go(func() {
				for range turns {
					asked := time.Now()
					time.Sleep(latency/2 + time.Duration(luck.Int64N(int64(latency))))
					j.Keep(store.JournalEntry{ID: trial.ID, Reply: &store.JournalReply{Began: asked, Ended: time.Now()}})
				}
			})
		}
		all.Wait()
		if took, most := time.Since(began), turns*latency*5/4; took > most*5/4 {
			t.Errorf("the attempts took %v, want about %v", took, most)
		}
		j.Close(false)
	})
	text, err := os.ReadFile(path)
	must(t, err)
	if flushes := bytes.Count(text, []byte(`"packed"`)); flushes == 0 || inFlight*turns/flushes < 7 {
		t.Errorf("%d replies took %d flushes", inFlight*turns, flushes)
	}
}
