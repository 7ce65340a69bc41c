package policy

import (
	"slices"

	"github.com/assay-eval/assay"
)

// Work is a task in numbers: the tools that play a part in it are numbered from 0.
type Work struct {
	Tools    []Part
	Required []int // [None] for a tool beyond the first 64
	Matters  Set   // tools whose success is remembered because others depend on them
	// StandsFor has the tools that do the work of another one, with that.
	StandsFor map[int]int
}

// A Part is one tool of the work.
type Part struct {
	Name  string
	Needs Set // its dependencies
	// Lacking counts the dependencies that are not part of the work and so can never succeed.
	Lacking int
}

// NewWork numbers the named tools in order. It skips names that the catalog does not have.
func NewWork(catalog *assay.Catalog, required, names []string) Work {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok := catalog.Tool(name)
		return !ok
	})
	names = names[:min(len(names), maxTools)]

	var w Work
	for _, name := range names {
		tool, _ := catalog.Tool(name)
		t := Part{Name: name}
		if of := slices.Index(names, tool.StandsFor); of >= 0 {
			if w.StandsFor == nil {
				w.StandsFor = make(map[int]int)
			}
			w.StandsFor[len(w.Tools)] = of
		}
		for _, d := range tool.Dependencies {
			if i := slices.Index(names, d); i >= 0 {
				t.Needs |= Only(i)
			} else {
				t.Lacking++
			}
		}
		w.Tools = append(w.Tools, t)
		w.Matters |= t.Needs
	}
	for _, name := range required {
		w.Required = append(w.Required, w.Number(name))
	}
	return w
}

// Next returns the required tool that has to succeed next, or a special number if all have.
func (w *Work) Next(s State) int {
	if int(s.Done) == len(w.Required) {
		return finished
	}
	return w.Required[s.Done]
}

// isNext reports whether a tool does what has to be done next.
func (w *Work) isNext(s State, tool int) bool {
	if of, stands := w.StandsFor[tool]; stands {
		tool = of
	}
	return tool == w.Next(s)
}

// Number returns a tool's number, or [None] if the tool is not part of the work.
func (w *Work) Number(name string) int {
	return slices.IndexFunc(w.Tools, func(t Part) bool { return t.Name == name })
}

func (w *Work) name(tool int) string {
	if tool == None {
		return ""
	}
	return w.Tools[tool].Name
}
