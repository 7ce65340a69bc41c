package live_test

import (
	"os"

	"github.com/assay-eval/assay/internal/run/live"
)

func Example() {
	model := live.ModelState{Model: "my-model"}
	model.Planned, model.Done, model.InFlight = 3, 1, 1

	view := &live.Plain{W: os.Stdout}
	view.Close(live.Progress{Models: []live.ModelState{model}})
	// Output:
	// 0s  1/3 done, 1 in flight, 0 tokens/min
}
