package plan

import (
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Suites lists the built-in suites, which are experiments without models.
var Suites = []string{"models", "scale", "flawed", "reliability", "prompts", "all", "faults", "profile"}

//go:embed suites/*.yaml
var suiteFiles embed.FS

// SuiteFile returns the file of a suite, to read or to start an experiment
// from. It returns nil if the suite does not exist.
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
// sets them.
func Suite(name string) (*Experiment, error) {
	b := SuiteFile(name)
	if b == nil {
		message := fmt.Sprintf("unknown suite %q", name)
		return nil, &Error{File: "suites", Message: message, Hint: assay.NameHint(name, Suites)}
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

// SuiteSummary returns the first sentence of the comment at the top of a suite's file.
func SuiteSummary(name string) string {
	var words []string
	for line := range strings.Lines(string(SuiteFile(name))) {
		text, ok := strings.CutPrefix(strings.TrimSpace(line), "#")
		if !ok {
			break
		}
		words = append(words, strings.Fields(text)...)
	}
	text := strings.Join(words, " ")
	if first, _, ok := strings.Cut(text, ". "); ok {
		return first + "."
	}
	return text
}
