package plan

import (
	"embed"
	"fmt"
	"slices"

	"github.com/assay-eval/assay"
)

// Suites lists the built-in suites: experiments that name no model.
var Suites = []string{"models", "scale", "flawed", "reliability", "prompts", "all"}

//go:embed suites/*.yaml
var suiteFiles embed.FS

// SuiteFile returns the file of a suite, to read and to begin an own one with;
// nil if there is no suite of this name.
func SuiteFile(name string) []byte {
	if !slices.Contains(Suites, name) {
		return nil
	}
	b, err := suiteFiles.ReadFile("suites/" + name + ".yaml")
	if err != nil {
		panic("plan: suite: " + err.Error())
	}
	return b
}

// Suite returns a built-in suite. It has no models until [Experiment.SetModels]
// names them.
func Suite(name string) (*Experiment, error) {
	b := SuiteFile(name)
	if b == nil {
		return nil, &Error{File: "suites", Message: fmt.Sprintf("no suite is named %q", name), Hint: assay.NameHint(name, Suites)}
	}
	doc, err := parseDocument(name+".yaml", b)
	if err == nil {
		var e *Experiment
		if e, err = read(doc); err == nil {
			return e, nil
		}
	}
	panic("plan: suite: " + err.Error())
}
