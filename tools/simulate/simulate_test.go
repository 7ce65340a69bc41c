package main

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestWorlds lives a few worlds. The whole program lives more; see docs/simulation.md.
func TestWorlds(t *testing.T) {
	dir, err := scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	requests, enough := 0, 5000
	if testing.Short() {
		enough = 800
	}
	for seed := uint64(1); requests < enough; seed++ {
		r := liveWorld(t, &task{Seed: seed})
		requests += r.Requests
		if len(r.Wrong) > 0 {
			explain(os.Stderr, r)
			t.Fatalf("seed %d breaks laws:\n%s\nshorten it: go run ./tools/simulate --seed %d --requests 1",
				seed, strings.Join(r.Wrong, "\n"), seed)
		}
	}
}

// TestKnownSeeds relives worlds in which defects were found, in the product or in a law.
func TestKnownSeeds(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes four seconds")
	}
	dir, err := scratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	t.Setenv("TMPDIR", dir)
	for seed, found := range map[uint64]string{
		7:        "a disk ended a run that did not say what to do",
		20003709: "a run whose lanes were paused did not notice that its store had failed, and never ended",
		7001065:  "status forgot trials that were parked after a requeue and after the clock was set back",
		8001212:  "a small budget was spent on trials that were all cut off, run after run",
		20005443: "a run did not know that earlier trials had cost more than their models, because of their judges",
		10002363: "requests of minutes that a clock had passed twice were sent once more",
		242:      "replies that a kill overtook on their way to disk were taken for lost",
	} {
		if r := liveWorld(t, &task{Seed: seed, Early: true}); len(r.Wrong) > 0 {
			explain(os.Stderr, r)
			t.Errorf("seed %d, with which was found that %s, breaks laws", seed, found)
		}
	}
}

// TestItemsKeepTheirDice makes sure that a seed always is the same world, and that many seeds draw
// everything that can happen.
func TestItemsKeepTheirDice(t *testing.T) {
	kinds, more, ofNotes := make(map[string]int), make(map[int]int), 0
	for seed := range uint64(300) {
		one, two := drawItems(seed, false), drawItems(seed, false)
		for n := range one {
			if one[n] != two[n] {
				t.Fatalf("seed %d: %v, then %v", seed, one[n], two[n])
			}
			kinds[one[n].Kind]++
		}
		more[drawShape(seed).more]++
		if drawShape(seed).plan == judged {
			ofNotes++
		}
	}
	if ofNotes < 10 {
		t.Errorf("a model judges in %d of 300 worlds", ofNotes)
	}
	for n, text := range extras {
		if more[n] < 5 {
			t.Errorf("experiments hardly ever ask for %q", text)
		}
	}
	least := math.MaxInt
	for _, kind := range []string{
		"fault", "outage", "revoke", "rename", "pause", "set", "cancel", "interrupt", "kill", "second run", "stall", "clock", "suspend", "disk",
		"agent", "row",
	} {
		least = min(least, kinds[kind])
	}
	if least < 10 {
		t.Errorf("something hardly ever happens: %v", kinds)
	}
}

// TestMutationsHaveAPlace makes sure that the code which mutations change is still there, once.
func TestMutationsHaveAPlace(t *testing.T) {
	for _, m := range mutations {
		text, err := os.ReadFile(filepath.Join("..", "..", m.file))
		if err != nil {
			t.Error(err)
		} else if n := strings.Count(string(text), m.from); n != 1 {
			t.Errorf("%s: %s has %q %d times, want once", m.name, m.file, m.from, n)
		}
	}
}
