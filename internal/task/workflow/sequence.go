package workflow

import (
	"slices"

	"github.com/assay-eval/assay"
)

// Sequence returns the shortest sequence of calls that, when all of them work,
// runs the required tools in order with everything that they build on: before
// each required tool come those of its dependencies that have not come before,
// depth first. A dependency that is required later stands in it twice.
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
