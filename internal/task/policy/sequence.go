package policy

import (
	"slices"

	"github.com/assay-eval/assay"
)

// Sequence returns the shortest sequence of calls that runs the required tools in order if every
// call succeeds. Before each required tool it inserts, depth first, the dependencies that have
// not occurred yet. A dependency that is itself required later occurs twice.
func Sequence(catalog *assay.Catalog, required []string) []string {
	var seq []string
	var add func(name string, path []string)
	add = func(name string, path []string) {
		tool, _ := catalog.Tool(name)
		for _, d := range tool.Dependencies {
			if !slices.Contains(seq, d) && !slices.Contains(path, d) {
				add(d, append(path, d))
			}
		}
		seq = append(seq, name)
	}
	for _, name := range required {
		add(name, []string{name})
	}
	return seq
}

// Missing returns the tools that the required tools depend on, directly or indirectly, without
// the required tools themselves. They are sorted by name.
func Missing(catalog *assay.Catalog, required []string) []string {
	var missing []string
	todo := slices.Clone(required)
	for len(todo) > 0 {
		tool, _ := catalog.Tool(todo[0])
		todo = todo[1:]
		for _, d := range tool.Dependencies {
			if !slices.Contains(required, d) && !slices.Contains(missing, d) {
				missing = append(missing, d)
				todo = append(todo, d)
			}
		}
	}
	slices.Sort(missing)
	return missing
}

// Distinct returns the names in order, each only once.
func Distinct(names []string) []string {
	var kept []string
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}
