package store_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/store"
)

// TestSentLogRecallsEverySpan checks for any history of requests on two lanes, with kills in between,
// that the log recalls at least what was sent in each span up to now, and no more than that and what
// was sent in the minutes before. A kill is a log that is opened again without having been closed.
func TestSentLogRecallsEverySpan(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	rapid.Check(t, func(rt *rapid.T) {
		_ = os.Remove(path + ".sent")
		log, err := db.OpenSentLog()
		must(t, err)
		now := time.Unix(1_700_000_000, 0)
		sent := make(map[string][]store.Sent)
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{
				0, 1, 300, 1000, 7000, 61_000, 200_000, 3_600_000, 40_000_000,
			}).Draw(rt, "ms")) * time.Millisecond)
			lane := rapid.SampledFrom([]string{"a", "b"}).Draw(rt, "lane")
			switch x := rapid.IntRange(0, 9).Draw(rt, "kind"); {
			case x == 0:
				log, err = db.OpenSentLog()
				must(t, err)
			case x < 3 && len(sent[lane]) > 0: // a reply corrects an estimate
				s := &sent[lane][len(sent[lane])-1]
				if now.Sub(s.At) > time.Minute {
					continue // requests do not take that long
				}
				by := rapid.IntRange(-s.Input, 500).Draw(rt, "by")
				s.Input += by
				must(t, log.Add(lane, store.Sent{At: s.At, Input: by}))
			default:
				s := store.Sent{
					At: now, Requests: 1, Input: rapid.IntRange(0, 900).Draw(rt, "input"), Output: 7,
				}
				sent[lane] = append(sent[lane], s)
				must(t, log.Add(lane, s))
			}
		}
		log, err = db.OpenSentLog()
		must(t, err)
		for lane, all := range sent {
			if !log.Knows(lane) {
				rt.Fatalf("lane %s is not known", lane)
			}
			recalled := log.Recall(lane, now)
			for _, since := range append([]store.Sent{{At: now.Add(-24 * time.Hour)}}, all...) {
				if now.Sub(since.At) > 24*time.Hour {
					continue
				}
				coarse := time.Minute
				if now.Sub(since.At) < 3*time.Minute {
					coarse = time.Second
				}
				got, least := sum(recalled, since.At), sum(all, since.At)
				most := sum(all, since.At.Add(-coarse))
				if got.Requests < least.Requests || got.Input < least.Input || got.Output < least.Output ||
					got.Requests > most.Requests || got.Input > most.Input {
					rt.Fatalf("since %v before: recalled %+v, sent %+v to %+v",
						now.Sub(since.At), got, least, most)
				}
			}
		}
	})
}

func sum(all []store.Sent, since time.Time) (s store.Sent) {
	for _, x := range all {
		if !x.At.Before(since) {
			s.Requests, s.Input, s.Output = s.Requests+x.Requests, s.Input+x.Input, s.Output+x.Output
		}
	}
	return s
}

// TestSentLogOfReader checks that a store that is open for reading has the log, too, and leaves no
// file if there is none.
func TestSentLogOfReader(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	reader := openReadOnly(t, path)
	log, err := reader.OpenSentLog()
	must(t, err)
	if log.Knows("a") || log.Recall("a", time.Now()) != nil {
		t.Error("a log that does not exist knows a lane")
	}
	if found, _ := filepath.Glob(path + ".sent"); len(found) > 0 {
		t.Errorf("found %v", found)
	}
	writer, err := db.OpenSentLog()
	must(t, err)
	now := time.Now()
	must(t, writer.Add("a", store.Sent{At: now, Requests: 3}))
	must(t, writer.Close())
	must(t, writer.Add("a", store.Sent{At: now, Requests: 3})) // is ignored
	log, err = reader.OpenSentLog()
	must(t, err)
	if got := log.Recall("a", now); len(got) != 1 || got[0].Requests != 3 || !got[0].At.Equal(now) {
		t.Errorf("Recall() = %+v", got)
	}
}

// A power cut may take away what was written of some lanes. The others keep theirs.
func TestSentLogAfterPowerCut(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	log, err := db.OpenSentLog()
	must(t, err)
	now := time.Unix(1_700_000_000, 0)
	for _, lane := range []string{"a", "b", "c"} {
		must(t, log.Add(lane, store.Sent{At: now, Requests: 1}))
	}
	must(t, log.Close())
	b, err := os.ReadFile(path + ".sent")
	must(t, err)
	clear(b[:2*len(b)/3])
	must(t, os.WriteFile(path+".sent", b, 0o644))
	log, err = db.OpenSentLog()
	must(t, err)
	must(t, log.Add("d", store.Sent{At: now, Requests: 1}))
	must(t, log.Close())
	log, err = db.OpenSentLog()
	must(t, err)
	defer log.Close()
	for _, lane := range []string{"c", "d"} {
		if got := log.Recall(lane, now); len(got) != 1 {
			t.Errorf("%d uses of lane %s, want 1", len(got), lane)
		}
	}
}

// TestSentLogOfAClockThatIsSetBack checks that nothing is forgotten then.
func TestSentLogOfAClockThatIsSetBack(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	log, err := db.OpenSentLog()
	must(t, err)
	began := time.Unix(1_700_000_000, 0)
	const n, apart = 360, 10 * time.Second
	for i := range n {
		must(t, log.Add("a", store.Sent{At: began.Add(time.Duration(i) * apart), Requests: 1}))
	}
	for _, back := range []time.Duration{0, time.Second, 10 * time.Minute, time.Hour, 5 * time.Hour} {
		recalled := 0
		for _, s := range log.Recall("a", began.Add((n-1)*apart-back)) {
			recalled += s.Requests
		}
		if recalled != n {
			t.Errorf("set back by %v, it recalls %d of %d requests", back, recalled, n)
		}
	}
}

// TestSentLogOfTimesThatComeTwice holds that nothing is forgotten within a day, however often the clock is set
// back, so that it passes the same seconds and minutes again.
func TestSentLogOfTimesThatComeTwice(t *testing.T) {
	t.Parallel()
	db, _ := create(t)
	log, err := db.OpenSentLog()
	must(t, err)
	lanes := 0
	rapid.Check(t, func(t *rapid.T) {
		lanes++
		lane := fmt.Sprint(lanes)
		now, n := time.Unix(1_700_000_000, 0), 0
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			if rapid.IntRange(0, 5).Draw(t, "kind") == 0 {
				now = now.Add(-time.Duration(rapid.IntRange(1, 3600).Draw(t, "back")) * time.Second)
			} else {
				now = now.Add(time.Duration(rapid.IntRange(0, 900).Draw(t, "on")) * time.Second)
				if err := log.Add(lane, store.Sent{At: now, Requests: 1}); err != nil {
					t.Fatal(err)
				}
				n++
			}
			recalled := 0
			for _, s := range log.Recall(lane, now) {
				if recalled += s.Requests; s.At.After(now) {
					t.Fatalf("recalled at %v, which is after %v", s.At, now)
				}
			}
			if recalled != n {
				t.Fatalf("%d of %d requests are recalled", recalled, n)
			}
		}
	})
}
