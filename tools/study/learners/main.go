// Learners measures fresh libraries: what their tasks demand, how much the libraries of twenty seeds differ
// in difficulty, and whether those of fifteen seeds teach a learner the tools of five others. It takes about
// ten minutes on two cores.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/signal"
	"text/tabwriter"
)

// tasksPerType is the size of a library, in tasks of each type.
const tasksPerType = 126

// A row is a figure with its name.
type row struct{ name, value string }

func percent(share float64) string { return fmt.Sprintf("%.1f %%", 100*share) }

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	for _, m := range []struct {
		title string
		rows  func(context.Context) ([]row, error)
	}{
		{"what the tasks of a fresh library demand", demands},
		{"learners of fifteen seeds at the tasks of five others", leaks},
		{"the libraries of twenty seeds, lowest to highest", seedDifferences},
	} {
		log.Print(m.title)
		rows, err := m.rows(ctx)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Fprintf(out, "\n%s\n", m.title)
		for _, r := range rows {
			fmt.Fprintf(out, "  %s\t%s\n", r.name, r.value)
		}
		_ = out.Flush()
	}
}
