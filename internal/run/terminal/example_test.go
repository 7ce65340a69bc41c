package terminal_test

import (
	"os"

	"github.com/assay-eval/assay/internal/run/terminal"
)

func Example() {
	model := terminal.ModelState{Model: "my-model"}
	model.Planned, model.Done, model.InFlight = 3, 1, 1

	view := &terminal.Plain{W: os.Stdout}
	view.Close(terminal.Progress{Models: []terminal.ModelState{model}})
	// Output:
	// 0s  1/3 done, 1 in flight, 0 tokens/min
}
