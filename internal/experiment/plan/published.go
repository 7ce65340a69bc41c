package plan

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Published is what a report in JSON says about how its experiment can be repeated.
type Published struct {
	File       string
	Experiment *Experiment
	// Settings has what identifies the original's trials, by name.
	Settings map[string]string
	Planned  int
	// Templates and Rules are those of the original's outcomes.
	Templates, Rules []string
}

// IsPublished reports whether a file of that name is read as a report.
func IsPublished(path string) bool { return filepath.Ext(path) == ".json" }

// LoadPublished reads the experiment of a report in JSON, as reports are written. The library
// and the providers file are those that the report names or, if they are not on this machine, those of the
// same name beside the report.
func LoadPublished(path string) (*Published, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var r struct {
		Reproduction []struct{ Name, Value string } `json:"reproduction"`
		Planned      int                            `json:"planned"`
		Templates    []string                       `json:"templates"`
		Rules        []string                       `json:"score_versions"`
	}
	wrong := func(why string) error {
		return assay.WithHint(&Error{File: path, Message: why}, assay.HintReport)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, wrong(fmt.Sprintf("it is no report in JSON: %v", err))
	}
	p := &Published{
		File: path, Settings: make(map[string]string), Planned: r.Planned, Templates: r.Templates, Rules: r.Rules,
	}
	for _, f := range r.Reproduction {
		p.Settings[f.Name] = f.Value
	}
	spec := p.Settings["specification"]
	if spec == "" {
		return nil, wrong("it has no experiment's specification")
	}
	e := &Experiment{published: true}
	if err := json.Unmarshal([]byte(spec), e); err != nil {
		return nil, wrong(fmt.Sprintf("the specification in it cannot be read: %v", err))
	}
	p.Experiment = e
	e.listed = slices.Clone(e.Models)
	e.Providers = beside(path, e.Providers)
	if e.Library != BuiltinLibrary {
		library := beside(path, e.Library)
		if library == "" {
			return nil, &Error{
				File: path, Message: fmt.Sprintf("its library %s is not on this machine", filepath.Base(e.Library)),
				Hint: fmt.Sprintf("put the library, which has the digest %s, beside %s", digestOf(p.Settings["library"]), path),
			}
		}
		e.Library = library
	}
	return p, e.check()
}

// digestOf returns the digest in a report's line about a library.
func digestOf(library string) string {
	_, digest, _ := strings.Cut(library, "digest ")
	return digest
}

// beside returns the path of a file that another file names, or of its namesake beside that one, or "" if
// there is neither.
func beside(file, name string) string {
	for _, place := range []string{name, filepath.Join(filepath.Dir(file), filepath.Base(name))} {
		if info, err := os.Stat(place); name != "" && err == nil && !info.IsDir() {
			return relative(".", place)
		}
	}
	return ""
}
