package policy

import (
	"slices"

	"github.com/assay-eval/assay"
)

// NoFeed is the feed of a step that works on the task's inputs or without data.
const NoFeed = -1

// Feed returns the index of the earlier step whose result a tool works on, or [NoFeed]. earlier are
// the tools of the earlier steps. A tool that takes data works on the latest of two kinds of steps:
// the steps of other tools that pass data on, and of its dependencies that give a result.
func Feed(catalog *assay.Catalog, name string, earlier []string) int {
	tool, _ := catalog.Tool(name)
	if !TakesData(tool) {
		return NoFeed
	}
	for i, e := range slices.Backward(earlier) {
		from, _ := catalog.Tool(e)
		if e != name && (passesData(from) ||
			givesResult(from) && slices.Contains(tool.Dependencies, e)) {
			return i
		}
	}
	return NoFeed
}

// Feeds returns the [Feed] of each step of a plan.
func Feeds(catalog *assay.Catalog, plan []string) []int {
	feeds := make([]int, len(plan))
	for i, name := range plan {
		feeds[i] = Feed(catalog, name, plan[:i])
	}
	return feeds
}

// Places returns the indexes of the required tools in their [Sequence].
func Places(sequence, required []string) []int {
	var places []int
	at := 0
	for _, name := range required {
		at += slices.Index(sequence[at:], name) + 1
		places = append(places, at-1)
	}
	return places
}

// TakesData reports whether a tool has a parameter for the data that it works on.
func TakesData(t assay.Tool) bool { return slices.ContainsFunc(t.Parameters, IsData) }

// IsData reports whether a parameter is for the data that a tool works on. In a world with
// references, the parameter takes only these.
func IsData(p assay.Parameter) bool { return p.Name == "data" && p.Type == "object" }

// passesData reports whether a tool returns the data that the next step works on.
func passesData(t assay.Tool) bool {
	return slices.ContainsFunc(t.Returns, func(r assay.Return) bool {
		return r.Type == "object" && (r.Name == "data" || r.Name == "transformed_data")
	})
}

// givesResult reports whether a tool returns anything that could be worked on.
func givesResult(t assay.Tool) bool {
	return slices.ContainsFunc(t.Returns, func(r assay.Return) bool {
		return r.Type == "object" && r.Name != "metadata"
	})
}
