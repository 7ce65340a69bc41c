// Levels simulates experiments whose truth is known, and counts how often the figures of a report,
// a comparison, a gate and a certificate of hosts are wrong about it: how often equal sides are
// called different, and how often an interval lacks the truth. With -decisions, it simulates the rules
// of a gate, of the largest loss and of a ranking. With -forks, it plays forks of a model whose truth
// is known. It prints a table in Markdown.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
)

// populations are the numbers of tasks and of their templates, which are sequences of tools.
var populations = []taskPopulation{
	{6, 6}, {20, 20}, {20, 6}, {60, 60}, {60, 15}, {60, 6},
}

// repeats are the trials of a task in a cell. With unequal ones, each has 1 to 5.
var repeats = []int{1, 3, 5, unequal}

func main() {
	log.SetFlags(0)
	draws := flag.Int("draws", 250, "the `number` of simulated experiments for a population and "+
		"number of repeats, once without any effect and once with effects")
	decisions := flag.Bool("decisions", false, "instead, the rules of gate, largest loss and ranking")
	forks := flag.Bool("forks", false, "instead, forks of calls that met a fault, of a model whose truth is known")
	profile := flag.Bool("profile", false, "instead, the profile of a model whose truth is known, in studies of the suite profile")
	own := flag.Bool("own", false, "with -profile, a like experiment with tools of one's own")
	plays := flag.Int("plays", 20, "with -profile, how many `times` the experiment is played with all tasks for the truth")
	only := flag.String("only", "", "with -decisions, only the rows whose name has this `text`")
	flag.Parse()
	if *forks {
		if err := studyForks(context.Background(), os.Stdout, *draws); err != nil {
			log.Fatal(err)
		}
		return
	}
	if *profile {
		if err := studyProfile(context.Background(), os.Stdout, *own, *draws, *plays, []int{2, 6, 20}); err != nil {
			log.Fatal(err)
		}
		return
	}
	if *decisions {
		if err := decide(os.Stdout, *draws, *only); err != nil {
			log.Fatal(err)
		}
		return
	}
	var columns []counts
	for i, p := range populations {
		sum := make(counts)
		for k, r := range repeats {
			c, err := field{taskPopulation: p, repeats: r}.count(*draws, uint64(len(repeats)*i+k))
			if err != nil {
				log.Fatal(err)
			}
			sum.add(c)
			log.Printf("%s, repeats %d: done", p, r)
		}
		columns = append(columns, sum)
	}
	if err := write(os.Stdout, columns); err != nil {
		log.Fatal(err)
	}
}

// write prints a row for each figure: the share in percent, and the lowest and the highest share of
// a number of repeats.
func write(out io.Writer, columns []counts) error {
	var text strings.Builder
	text.WriteString("| |")
	for _, p := range populations {
		fmt.Fprintf(&text, " %s |", p)
	}
	fmt.Fprintf(&text, "\n|---|%s\n", strings.Repeat("---|", len(populations)))
	for _, name := range figures {
		fmt.Fprintf(&text, "| %s |", name)
		for _, c := range columns {
			all := c[name]
			low := slices.MinFunc(all, drawTally.compare).percent()
			high := slices.MaxFunc(all, drawTally.compare).percent()
			fmt.Fprintf(&text, " %.1f (%.1f–%.1f) |", total(all).percent(), low, high)
		}
		text.WriteString("\n")
	}
	_, err := io.WriteString(out, text.String())
	return err
}
