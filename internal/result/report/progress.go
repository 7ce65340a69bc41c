package report

import (
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/stat"
)

// A Progress has the intervals of a report while outcomes come in. The zero Progress is empty.
type Progress struct {
	from   population[assay.TaskID]
	models map[string]map[assay.TaskID]stat.Group
}

// Add adds outcomes of a model at a task with its required tools.
func (p *Progress) Add(model string, of assay.TaskID, required []string, some stat.Group) {
	p.from.add(of, strings.Join(required, " "))
	if p.models == nil {
		p.models = make(map[string]map[assay.TaskID]stat.Group)
	}
	if p.models[model] == nil {
		p.models[model] = make(map[assay.TaskID]stat.Group)
	}
	at := p.models[model][of]
	p.models[model][of] = stat.Group{Full: at.Full + some.Full, N: at.N + some.N}
}

// Rate returns the rate of full success of models together.
func (p *Progress) Rate(models ...string) stat.Rate {
	all := make(map[assay.TaskID]stat.Group)
	for _, m := range models {
		for of, g := range p.models[m] {
			all[of] = stat.Group{Full: all[of].Full + g.Full, N: all[of].N + g.N}
		}
	}
	p.from.cluster = stat.Auto
	p.from.describe()
	groups := p.from.groups(slices.Sorted(maps.Keys(all)), func(of assay.TaskID) stat.Group {
		return all[of]
	})
	return stat.Clustered(groups, 1-level05)
}
