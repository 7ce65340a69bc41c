package report

import (
	"strings"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A Population counts the tasks with outcomes and their different sequences of required tools.
// Tasks of one sequence are alike.
type Population struct {
	Tasks     int `json:"tasks"`
	Sequences int `json:"sequences"`
	// Cluster is stat.ByTask if intervals and tests are about further tasks of these sequences, and
	// stat.BySequence if they are about tasks of further sequences.
	Cluster string `json:"cluster"`
}

// A population numbers sequences of required tools and maps tasks to them.
type population[K comparable] struct {
	numbers map[string]int
	of      map[K]int
	cluster string
}

// add records the sequence of a task that has an outcome. A task without required tools is alike
// to no other.
func (p *population[K]) add(task K, required string) {
	if _, known := p.of[task]; known {
		return
	}
	if p.of == nil {
		p.numbers, p.of = make(map[string]int), make(map[K]int)
	}
	n, known := p.numbers[required]
	if !known || required == "" {
		n = len(p.numbers)
		if required == "" {
			required = strings.Repeat("\n", n+1) // not the name of any other sequence
		}
		p.numbers[required] = n
	}
	p.of[task] = n
}

// describe replaces stat.Auto by the cluster that it stands for.
func (p *population[K]) describe() Population {
	out := Population{len(p.of), len(p.numbers), p.cluster}
	if p.cluster != stat.ByTask && p.cluster != stat.BySequence {
		out.Cluster = stat.Cluster(out.Tasks, out.Sequences)
	}
	p.cluster = out.Cluster
	return out
}

// groups returns the groups of tasks, or adds up the groups of tasks with the same sequence if the
// sequences count as independent.
func (p *population[K]) groups(tasks []K, of func(K) stat.Group) []stat.Group {
	groups := make([]stat.Group, 0, len(tasks))
	places := make(map[int]int) // of sequences
	for _, t := range tasks {
		i := len(groups)
		if p.bySequence() {
			s := p.of[t]
			if known, ok := places[s]; ok {
				i = known
			}
			places[s] = i
		}
		if i == len(groups) {
			groups = append(groups, stat.Group{})
		}
		g := of(t)
		groups[i].Full += g.Full
		groups[i].N += g.N
	}
	return groups
}

func (p *population[K]) bySequence() bool { return p != nil && p.cluster == stat.BySequence }
