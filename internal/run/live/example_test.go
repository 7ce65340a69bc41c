package live_test

import (
	"os"

	"github.com/assay-eval/assay/internal/run/live"
)

func Example() {
	meter := live.NewMeter(nil)
	meter.Model("my-model", 3, 0, 0)
	for range 2 {
		meter.Started("my-model")
	}
	meter.Settled("my-model", false)

	view := &live.Plain{W: os.Stdout}
	view.Close(meter.Progress())
	// Output:
	// 0s  1/3 done, 1 in flight, 0 tokens/min
}
