package library

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/assay-eval/assay"
)

// GeneratorVersion identifies the tasks of [Generate] and the tools of [Tools]. It changes whenever
// any of their words change, so that an older cached library is not mistaken for the current one.
const GeneratorVersion = "5"

// TasksPerType is the number of built-in tasks of each type. MaxTasksPerType is the limit of
// [GenerateN]: task IDs have three digits so that they sort like numbers, and the calendar of the
// scenarios spans ten years.
const (
	TasksPerType    = 126
	MaxTasksPerType = 999
)

// Generate yields the built-in tasks, which [GenerateN] yields for [TasksPerType]. They are always
// the same.
func Generate() iter.Seq[assay.Task] { return generate(TasksPerType) }

// GenerateN yields n tasks of each type, type by type in the order of [assay.TaskTypes]. Each task
// occurs at all five [assay.Difficulties] and once in each of [assay.Mixtures], so GenerateN yields
// 40 n tasks in total. At a given difficulty the k-th task of a type is the same for every n, but
// its wording in a mixture depends on n.
func GenerateN(n int) (iter.Seq[assay.Task], error) {
	if n < 1 || n > MaxTasksPerType {
		return nil, fmt.Errorf("cannot generate %d tasks of each type\n"+
			"hint: choose a number from 1 to %d", n, MaxTasksPerType)
	}
	return generate(n), nil
}

func generate(n int) iter.Seq[assay.Task] {
	return func(yield func(assay.Task) bool) {
		catalog := assay.NewCatalog(Tools())
		mixed := make([]map[string][]string, len(assay.Mixtures))
		for i, name := range assay.Mixtures {
			mixed[i] = mixtures[name].wordings(name, n)
		}
		for ord, typ := range assay.TaskTypes {
			for k := range n {
				task, texts := builtinTask(catalog, ord, typ, k)
				for _, task.Difficulty = range assay.Difficulties {
					task.Description = texts[task.Difficulty]
					if !yield(task) {
						return
					}
				}
				for i := range mixed {
					task.Difficulty, task.Wording = assay.Mixtures[i], mixed[i][typ][k]
					task.Description = texts[task.Wording]
					if !yield(task) {
						return
					}
				}
			}
		}
	}
}

// builtinTask returns the task of [builtinDraft] and its descriptions by difficulty.
func builtinTask(
	catalog *assay.Catalog, ord int, typ string, k int,
) (assay.Task, map[string]string) {
	d := builtinDraft(catalog, ord, typ, k)
	texts := make(map[string]string)
	for _, difficulty := range assay.Difficulties {
		texts[difficulty] = d.describe(difficulty, k)
	}
	return assay.Task{
		ID:       assay.TaskID(fmt.Sprintf("%s-%03d", idPrefix(typ), k+1)),
		Type:     typ,
		Inputs:   mustJSON(d.inputs),
		Expected: mustJSON(d.expected()),
		Required: d.tools(),
	}, texts
}

// builtinDraft returns the k-th task of a type, counted from 0, as a draft. Ord is the position of
// the type in [assay.TaskTypes].
func builtinDraft(catalog *assay.Catalog, ord int, typ string, k int) *draft {
	turn, i := k/len(scenarios()), k%len(scenarios())
	return newDraft(catalog, scenarios()[i], month(ord, turn), chain(typ, k))
}

// chain returns the verbs of the k-th task of a type. There are 42 scenarios, and no list of chains
// has a length that divides that, so each turn combines scenarios with other chains.
func chain(typ string, k int) []string {
	all := chains()[typ]
	return strings.Fields(all[k%len(all)])
}

// month returns the month of a turn through the scenarios. Types take turns, each for a quarter of
// a year. Every turn of every type has its own month, so no two tasks share scenario and month.
func month(ord, turn int) int {
	const quarter = 3
	return (turn/quarter*len(assay.TaskTypes)+ord)*quarter + turn%quarter
}

func idPrefix(typ string) string {
	switch typ {
	case "simple_task":
		return "simple"
	case "basic_task":
		return "basic"
	case "data_pipeline":
		return "pipeline"
	case "api_integration":
		return "api"
	case "multi_stage_pipeline":
		return "multi"
	}
	panic("library: no ID prefix for the task type " + typ)
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // cannot happen, because the generator uses only JSON's types
		panic("library: " + err.Error())
	}
	return b
}
