package library

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/assay-eval/assay"
)

// GeneratorVersion names what [Generate] yields and [Tools] returns. It
// changes with any of their words, so that a library made earlier is not
// taken for today's.
const GeneratorVersion = "2"

// TasksPerType is how many built-in tasks each task type has.
// MaxTasksPerType is how many [GenerateN] tells apart, with IDs that sort as
// numbers do and a calendar of ten years.
const (
	TasksPerType    = 126
	MaxTasksPerType = 999
)

// Generate yields the built-in tasks: what [GenerateN] yields for
// [TasksPerType], always the same ones.
func Generate() iter.Seq[assay.Task] { return generate(TasksPerType) }

// GenerateN yields n tasks of each type, type by type in the order of
// [assay.TaskTypes]. Each comes in all five [assay.Difficulties] and once in
// each of [assay.Mixtures], so that 40 times n are yielded. In its five
// wordings the k-th task of a type is the same for every n; how a mixture
// words it depends on n too.
func GenerateN(n int) (iter.Seq[assay.Task], error) {
	if n < 1 || n > MaxTasksPerType {
		return nil, fmt.Errorf("generate %d tasks of each type: no such number can be made\nhint: choose one from 1 to %d", n, MaxTasksPerType)
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

// builtinTask returns number k, from 0, of a task type, and its descriptions
// by difficulty.
func builtinTask(catalog *assay.Catalog, ord int, typ string, k int) (assay.Task, map[string]string) {
	d := newDraft(catalog, scenarios()[k%len(scenarios())], month(ord, k/len(scenarios())), chain(typ, k))
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

// chain returns the verbs of number k of a task type. Each turn through the
// scenarios meets other ones.
func chain(typ string, k int) []string {
	turn := k / len(scenarios())
	return strings.Fields(chains()[typ][(k+5*turn)%len(chains()[typ])])
}

// month is when the tasks of a turn through the scenarios play. No two turns of
// all types share one, so that no two tasks share scenario and month. Each
// type has a quarter of a year in turn.
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
	if err != nil { // the generator makes nothing that JSON cannot hold
		panic("library: " + err.Error())
	}
	return b
}
