package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// By default, a heap is collected when it has doubled, which takes a tenth of the CPU time of a run
// with a thousand episodes in flight. A heap with more than lean bytes, which a small run does not
// reach, may grow fourfold instead, but not beyond roomy bytes for that. A small one grows by
// thrifty percent, because it shares the machine with other programs. So does one with more than
// vast bytes, that of 50,000 episodes or more in flight: otherwise it would need as much again.
const lean, roomy, vast, thrifty = 16 << 20, 192 << 20, 512 << 20, 70

// saveMemory collects the heap often, unless the user has set GOGC.
func saveMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(thrifty)
	}
}

// relaxCollector collects a heap of medium size less often from now on, unless the user has set
// GOGC. Commands with many episodes call it when they have read the files of the user, which may
// need little memory.
func relaxCollector() {
	if os.Getenv("GOGC") == "" {
		afterCollection(thrifty)
	}
}

// afterCollection sets the target of the heap's growth after each collection, in percent of what is
// left then. It begins with the target that is set now.
func afterCollection(percent int) {
	type sentinel struct{ _ *int } // with a pointer, so that it has a block of its own
	runtime.AddCleanup(&sentinel{}, func(percent int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		now := thrifty
		if live[0].Value.Kind() == metrics.KindUint64 {
			now = growth(live[0].Value.Uint64())
		}
		if now != percent { // setting it stops the world
			debug.SetGCPercent(now)
		}
		afterCollection(now)
	}, percent)
}

// growth returns the growth in percent, for a heap with live bytes. It is a multiple of 50 between
// lean and vast.
func growth(live uint64) int {
	if live < lean || live > vast {
		return thrifty
	}
	return max(100, min(300, int(100*roomy/live)-100)/50*50)
}
