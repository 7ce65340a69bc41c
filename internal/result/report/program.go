package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Program describes the program of an agent in a run: digests of its files by their names.
type Program struct {
	Run   assay.RunID
	Files map[string]string
}

// changed returns the names of the files that differ.
func (p Program) changed(q Program) (names []string) {
	all := maps.Clone(p.Files)
	maps.Copy(all, q.Files)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if p.Files[name] != q.Files[name] {
			names = append(names, name)
		}
	}
	return names
}

// rewritten finds agents with outcomes of an earlier version of their program.
func rewritten(cells []*cell, b Beside) (where []string) {
	for _, model := range modelsOf(cells) {
		programs := b.Programs[model]
		if len(programs) == 0 {
			continue
		}
		outcomes := make(map[assay.RunID]int)
		for _, c := range ofModel(cells, model) {
			for run, n := range c.runs {
				outcomes[run] += n
			}
		}
		latest := programs[len(programs)-1]
		earlier := 0
		var text string
		for i, p := range programs[:len(programs)-1] {
			if len(p.changed(latest)) > 0 {
				earlier += outcomes[p.Run]
			}
			next := programs[i+1]
			if files := p.changed(next); len(files) > 0 {
				text = fmt.Sprintf("%s changed between run %s and run %s",
					strings.Join(files, ", "), p.Run, next.Run)
			}
		}
		if earlier > 0 {
			where = append(where, fmt.Sprintf("%s: %s by an earlier version of its program (%s)",
				model, made(earlier), text))
		}
	}
	return where
}

func made(n int) string {
	if n == 1 {
		return "1 attempt was made"
	}
	return fmt.Sprintf("%d attempts were made", n)
}
