// Agree draws small experiments at random, stores them as runs do, and compares what people read of
// them: the first screen, the tables as text and HTML, the JSON of the report, and a second
// computation of the figures, in Python, from the export. It starts Python with recompute.py, which
// prints each disagreement with the seed of its experiment, and at last how many figures agree.
//
// No model takes part: outcomes, faults, costs and missing trials are made up.
package main

import (
	"bufio"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed *.py
var programs embed.FS

func main() {
	log.SetFlags(0)
	n := flag.Int("n", 2000, "the `number` of experiments")
	first := flag.Uint64("seed", 1, "the `seed` of the first one; the next ones have the next seeds")
	python := flag.String("python", "python3", "the `program` that recomputes the figures")
	keep := flag.String("keep", "", "only write what Python would get to this `file`")
	flag.Parse()
	dir, err := os.MkdirTemp("", "agree")
	if err == nil {
		if *keep != "" {
			err = write(dir, *keep, *first, *n)
		} else {
			err = agree(dir, *python, *first, *n)
		}
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		log.Fatal(err)
	}
}

func write(dir, file string, first uint64, n int) (err error) {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return drawAll(context.Background(), f, dir, first, n)
}

// agree draws experiments and has Python check them. Dir is for files that are not needed afterwards.
func agree(dir, python string, first uint64, n int) error {
	all, err := programs.ReadDir(".")
	if err != nil {
		return err
	}
	for _, p := range all {
		text, err := programs.ReadFile(p.Name())
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, p.Name()), text, 0o644); err != nil {
			return err
		}
	}
	cmd := exec.Command(python, "-B", filepath.Join(dir, "recompute.py"))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	err = drawAll(context.Background(), in, dir, first, n)
	return errors.Join(err, in.Close(), cmd.Wait())
}

// drawAll writes a line of JSON for each experiment.
func drawAll(ctx context.Context, to io.Writer, dir string, first uint64, n int) error {
	out := bufio.NewWriterSize(to, 1<<20)
	lines := json.NewEncoder(out)
	for seed := first; seed < first+uint64(n); seed++ {
		s, err := drawOne(ctx, dir, newDraw(seed))
		if err != nil {
			return fmt.Errorf("experiment of seed %d: %w", seed, err)
		}
		if err := lines.Encode(s); err != nil {
			return err
		}
	}
	return out.Flush()
}
