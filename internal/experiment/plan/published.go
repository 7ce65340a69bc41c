package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Published is what a report in JSON says about how its experiment can be repeated.
type Published struct {
	Experiment *Experiment
	// Settings has what identifies the original's trials, by name.
	Settings map[string]string
	Planned  int
	// Templates and Rules are those of the original's outcomes.
	Templates, Rules []string
}

// isPublished reports whether a file of that name is read as a report.
func isPublished(path string) bool { return filepath.Ext(path) == ".json" }

// LoadPublished reads the experiment of a report in JSON, as reports are written. The library and the providers
// file are those beside the report that have the names in it; an absolute path of a library also counts.
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
		Where        []string                       `json:"where"`
	}
	wrong := func(why string) error {
		return assay.WithHint(&Error{File: path, Message: why}, assay.HintReport)
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, wrong("it is no report in JSON: " + jsonMistake(err))
	}
	p := &Published{
		Settings: make(map[string]string), Planned: r.Planned, Templates: r.Templates, Rules: r.Rules,
	}
	if len(r.Where) > 0 {
		return nil, &Error{
			File: path, Message: "it is the report of a part of an experiment: " + strings.Join(r.Where, " and "),
			Hint: "take the report of the whole experiment; on a site, it is in the experiment's folder",
		}
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
		return nil, wrong("the specification in it cannot be read: " + jsonMistake(err))
	}
	if sum := sha256.Sum256([]byte(spec)); p.Settings["its SHA-256"] != hex.EncodeToString(sum[:]) {
		return nil, wrong("its specification does not have the SHA-256 that it states, so somebody has changed one of them")
	}
	p.Experiment = e
	e.listed = slices.Clone(e.Models)
	if e.Providers != "" { // never that of another machine or folder
		e.Providers = beside(path, filepath.Base(e.Providers))
	}
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
	sampling := e.Sampling // check takes it from what a file says
	err = e.check()
	e.Sampling = sampling
	return p, err
}

// digestOf returns the digest in a report's line about a library.
func digestOf(library string) string {
	_, digest, _ := strings.Cut(library, "digest ")
	return digest
}

// beside returns the path of the file beside another one that has the name of a third, or the path of that one,
// or "" if there is neither. Reports of earlier versions have whole paths.
func beside(file, name string) string {
	for _, place := range []string{filepath.Join(filepath.Dir(file), filepath.Base(name)), name} {
		if info, err := os.Stat(place); name != "" && err == nil && !info.IsDir() {
			return relative(".", place)
		}
	}
	return ""
}

// jsonMistake says what is wrong with JSON, without the names of Go's types.
func jsonMistake(err error) string {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at := wrong.Field
		if at == "" {
			at = "the whole"
		}
		return fmt.Sprintf("%s cannot be a JSON %s", at, wrong.Value)
	}
	return err.Error()
}
