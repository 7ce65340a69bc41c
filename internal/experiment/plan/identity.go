package plan

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// checkIdentities checks that each model's results will be filed under its own name: no two models
// name one deployment of an endpoint, and no name contradicts its deployment unless the file names
// the model that the deployment serves.
func (p *Providers) checkIdentities() error {
	type deployment struct{ url, name string }
	filed := make(map[deployment]string) // under which model
	for _, provider := range slices.Sorted(maps.Keys(p.Providers)) {
		e := p.Providers[provider]
		for _, model := range slices.Sorted(maps.Keys(e.Models)) {
			s := e.Models[model]
			place := "$.providers." + strconv.Quote(provider) + ".models"
			if s.Alias != "" {
				if err := p.checkAlias(e, model, place); err != nil {
					return err
				}
				continue
			}
			for _, name := range s.names(model) {
				d := deployment{strings.TrimSuffix(e.BaseURL, "/"), name}
				other, taken := filed[d]
				filed[d] = model
				if taken && other != model {
					return p.doc.AtKey(place, model, fmt.Sprintf(
						"models %s and %s are the same deployment, %s", other, model, name),
						sameHint(e, model, other))
				}
				if why := assay.Contradiction(model, name); why != "" && len(s.Serves) == 0 {
					return p.doc.AtKey(place, model, fmt.Sprintf(
						"model %s contradicts its deployment %s: %s", model, name, why),
						"correct one of them; if the deployment has a misleading name, write "+
							"serves: [NAME] with the model's name in its responses")
				}
			}
		}
	}
	return nil
}

func sameHint(e Endpoint, model, other string) string {
	hint := "its results would be filed under two names; correct deployments"
	if _, ok := e.Models[other]; ok {
		hint += fmt.Sprintf(", or write %s: {alias: %s} if both names are meant", model, other)
	}
	return hint
}

// checkAlias checks a model that is another name for a model of the same provider.
func (p *Providers) checkAlias(e Endpoint, model, place string) error {
	alias := e.Models[model].Alias
	of, ok := e.Models[alias]
	field := place + "." + strconv.Quote(model)
	switch {
	case !ok:
		return p.doc.At(field+".alias", fmt.Sprintf("this provider does not serve model %s", alias),
			assay.NameHint(alias, slices.Collect(maps.Keys(e.Models))))
	case of.Alias != "":
		return p.doc.At(field+".alias", alias+" is an alias too", "write alias: "+of.Alias)
	}
	for _, other := range p.Providers {
		if s, listed := other.Models[model]; listed && s.Alias != alias {
			return p.doc.At(field+".alias", fmt.Sprintf("another provider lists model %s "+
				"without this alias", model), "use another name")
		}
	}
	for name := range p.doc.Fields(field) {
		if name != "alias" {
			return p.doc.At(field+"."+name, fmt.Sprintf("%s has no effect beside alias", name),
				fmt.Sprintf("remove it, because %s shares everything with %s", model, alias))
		}
	}
	return nil
}

// names returns the deployments of a model.
func (s Serve) names(model string) []string {
	if len(s.Deployments) == 0 {
		return []string{model}
	}
	return s.Deployments
}

// Resolve returns the model that a name is an alias of, or the name itself.
func (p *Providers) Resolve(model string) string {
	for _, name := range slices.Sorted(maps.Keys(p.Providers)) {
		if alias := p.Providers[name].Models[model].Alias; alias != "" {
			return alias
		}
	}
	return model
}
