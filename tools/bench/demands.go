package main

import (
	"context"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/policy"
)

// demands is measurement 8c: what the tasks of a fresh library demand. The shape of all libraries
// is the same, so one is enough.
func (b *bench) demands(context.Context) ([]row, error) {
	l, err := freshLesson("1", b.size(126, 12))
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, typ := range assay.TaskTypes {
		calls, references, wrong, n := 0.0, 0.0, 0.0, 0.0
		for _, task := range l.tasks[assay.Difficulties[0]] {
			if task.Type != typ {
				continue
			}
			n++
			plan := policy.Sequence(l.catalog, task.Required)
			calls += float64(len(plan))
			for _, feed := range policy.Feeds(l.catalog, plan) {
				if feed != policy.NoFeed {
					references++
				}
			}
			for _, name := range task.Required {
				wrong += float64(l.rivals(name))
			}
		}
		rows = append(rows, newRow(typ+": calls of the plan", count, calls/n),
			newRow(typ+": results that calls have to refer to", count, references/n),
			newRow(typ+": wrong tools that take or make the same records", count, wrong/n))
	}
	for _, difficulty := range assay.Difficulties {
		named, steps := 0.0, 0.0
		for _, task := range l.tasks[difficulty] {
			stems := bm25.Words(task.Description)
			for _, name := range task.Required {
				steps++
				tool, _ := l.catalog.Tool(name)
				if slices.Contains(stems, bm25.Words(tool.Operation)[0]) {
					named++
				}
			}
		}
		rows = append(rows, newRow(difficulty+": steps that the text names", share, named/steps))
	}
	return rows, nil
}

// rivals counts the other tools that take the same kind of records as a tool, or make it.
func (l *lesson) rivals(name string) (n int) {
	tool, _ := l.catalog.Tool(name)
	for _, other := range l.catalog.All() {
		if other.Name != name && (sameData(&tool, &other) || sameResult(&tool, &other)) {
			n++
		}
	}
	return n
}

func sameData(a, b *assay.Tool) bool {
	return a.Parameters[0].Description == b.Parameters[0].Description && policy.TakesData(*a)
}

// sameResult compares the first words of the descriptions of results, up to the comma.
func sameResult(a, b *assay.Tool) bool {
	makes := func(t *assay.Tool) string {
		i := slices.IndexFunc(t.Returns, func(r assay.Return) bool { return r.Name == "data" })
		if i < 0 {
			return t.Name // it makes nothing
		}
		return bm25.Words(t.Returns[i].Description)[0] + bm25.Words(t.Returns[i].Description)[1]
	}
	return makes(a) == makes(b)
}
