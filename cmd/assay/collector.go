package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// roomyHeap is the size in bytes up to which the heap may grow before it is collected. By default,
// a heap is collected when it has doubled, which for one of 20 MB is many times a second and takes
// a tenth of a run's CPU time.
const roomyHeap = 192 << 20

// relaxCollector lets a small heap grow to roomyHeap, unless the user has set GOGC. A heap of more
// than half of that is collected as by default.
func relaxCollector() {
	if os.Getenv("GOGC") == "" {
		afterCollection(100)
	}
}

// afterCollection sets the target of the heap's growth after each collection, in percent of what is
// left then. It begins with the target that is set now.
func afterCollection(percent int) {
	type sentinel struct{ _ *int } // with a pointer, so that it has a block of its own
	runtime.AddCleanup(&sentinel{}, func(percent int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		now := 100
		if n := live[0].Value.Uint64(); n > 0 {
			now = growth(n)
		}
		if now != percent { // setting it stops the world
			debug.SetGCPercent(now)
		}
		afterCollection(now)
	}, percent)
}

// growth returns the growth in percent for a heap with live bytes, in steps of 50.
func growth(live uint64) int {
	return max(100, min(800, int(100*roomyHeap/live)-100)/50*50)
}
