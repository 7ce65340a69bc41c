package plan

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
)

// A PublicName is how others know a model. Each part may be empty.
type PublicName struct {
	// Developer made the model.
	Developer string `yaml:"developer"`
	// Hub is the repository of its weights on the Hugging Face Hub.
	Hub string `yaml:"hub"`
}

var (
	developerText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
	hubText       = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// PublicNames returns the public names in a providers file, by the names of models. It needs none of the
// environment variables that the file names.
func PublicNames(path string) (map[string]PublicName, error) {
	doc, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	p := &Providers{doc: doc}
	if err := doc.Decode(p); err != nil {
		return nil, err
	}
	return p.publicNames()
}

// publicNames checks the public names, and returns them. Providers may give a model the same one.
func (p *Providers) publicNames() (map[string]PublicName, error) {
	names := make(map[string]PublicName)
	for _, provider := range slices.Sorted(maps.Keys(p.Providers)) {
		models := p.Providers[provider].Models
		for _, model := range slices.Sorted(maps.Keys(models)) {
			place := "$.providers." + strconv.Quote(provider) + ".models." + strconv.Quote(model)
			if err := p.checkPublicName(place, models[model].PublicName); err != nil {
				return nil, err
			}
			name := models[cmp.Or(models[model].Alias, model)].PublicName
			known := cmp.Or(names[model], name)
			if name != known && name != (PublicName{}) {
				return nil, p.doc.At(place, fmt.Sprintf("another provider gives model %s another developer or hub", model),
					"correct one of them")
			}
			if known != (PublicName{}) {
				names[model] = known
			}
		}
	}
	return names, nil
}

func (p *Providers) checkPublicName(place string, name PublicName) error {
	if name.Developer != "" && !developerText.MatchString(name.Developer) {
		return p.doc.At(place+".developer", fmt.Sprintf("%q is not a name of a developer", name.Developer),
			"for example developer: openai")
	}
	if name.Hub != "" && !hubText.MatchString(name.Hub) {
		return p.doc.At(place+".hub", fmt.Sprintf("%q is not a repository of the Hub", name.Hub),
			"for example hub: meta-llama/Llama-3.1-8B-Instruct")
	}
	return nil
}
