package workflow

import (
	"slices"

	"github.com/assay-eval/assay"
)

// work is a task in numbers: the tools that have a part in it are numbered
// from 0.
type work struct {
	tools    []part
	required []int // none for a tool that is beyond the policy
	matters  set   // tools that others depend on
}

// part is one tool of the work.
type part struct {
	name  string
	needs set // its dependencies
	// lacking counts those that are no part of the work, so that they can
	// never be there.
	lacking int
}

// newWork numbers those of the named tools that the catalog has, in order.
func newWork(catalog *assay.Catalog, required, names []string) work {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok := catalog.Tool(name)
		return !ok
	})
	names = names[:min(len(names), maxTools)]
	var w work
	for _, name := range names {
		tool, _ := catalog.Tool(name)
		t := part{name: name}
		for _, d := range tool.Dependencies {
			if i := slices.Index(names, d); i >= 0 {
				t.needs |= only(i)
			} else {
				t.lacking++
			}
		}
		w.tools = append(w.tools, t)
		w.matters |= t.needs
	}
	for _, name := range required {
		w.required = append(w.required, w.number(name))
	}
	return w
}

// next returns the required tool whose turn it is, or finished.
func (w *work) next(s state) int {
	if int(s.done) == len(w.required) {
		return finished
	}
	return w.required[s.done]
}

func (w *work) number(name string) int {
	return slices.IndexFunc(w.tools, func(t part) bool { return t.name == name })
}

func (w *work) name(tool int) string {
	if tool == none {
		return ""
	}
	return w.tools[tool].name
}
