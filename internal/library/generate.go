package library

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/assay-eval/assay"
)

// GeneratorVersion names what [Generate] yields and [Tools] returns. It
// changes with any of their words, so that a library made earlier is not
// taken for today's.
const GeneratorVersion = "1"

// tasksPerType is how many built-in tasks each task type has.
const tasksPerType = 126

// Generate yields the built-in tasks, type by type in the order of
// [assay.TaskTypes] and by ID within a type: always the same ones.
func Generate() iter.Seq[assay.Task] {
	return func(yield func(assay.Task) bool) {
		catalog := assay.NewCatalog(Tools())
		for ord, typ := range assay.TaskTypes {
			for n := range tasksPerType {
				if !yield(builtinTask(catalog, ord, typ, n)) {
					return
				}
			}
		}
	}
}

// builtinTask returns number n, from 0, of a task type. Each turn through the
// scenarios meets other chains, and no two tasks share scenario and month.
func builtinTask(catalog *assay.Catalog, ord int, typ string, n int) assay.Task {
	turn := n / len(scenarios)
	verbs := strings.Fields(chains[typ][(n+5*turn)%len(chains[typ])])
	d := newDraft(scenarios[n%len(scenarios)], ord*tasksPerType/len(scenarios)+turn, verbs)

	var required []string
	for _, st := range d.steps {
		required = append(required, st.tool)
	}
	return assay.Task{
		ID:          assay.TaskID(fmt.Sprintf("%s-%03d", idPrefix(typ), n+1)),
		Type:        typ,
		Difficulty:  "easy",
		Description: d.describe(n),
		Inputs:      mustJSON(d.inputs),
		Expected:    mustJSON(d.expected(returnsOf(catalog, required[len(required)-1]))),
		Required:    required,
	}
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

func returnsOf(catalog *assay.Catalog, tool string) []string {
	t, ok := catalog.Tool(tool)
	if !ok {
		panic("library: no such built-in tool: " + tool)
	}
	names := make([]string, len(t.Returns))
	for i, r := range t.Returns {
		names[i] = r.Name
	}
	return names
}

// describe words the task at the difficulty easy: every step in order, in
// plain words, in at most three sentences. Pick varies the wording.
func (d *draft) describe(pick int) string {
	d.dated, d.located = false, false
	clauses := make([]string, len(d.steps))
	for i, st := range d.steps {
		clauses[i] = d.say(st.easy[roll(len(st.easy), d.slug, d.period, pick, st.tool)])
	}
	if roll(3, d.slug, d.period, pick, "opening") == 0 {
		clauses[0] = "for the " + d.team + ", " + clauses[0]
	}
	return join(clauses, roll(2, d.slug, d.period, pick, "joints") == 0)
}

// join makes sentences of clauses. Between two of them stands always one of
// ". ", "; " and ", then ", so that a reader can take them apart again.
func join(clauses []string, semicolons bool) string {
	comma := ", then "
	if semicolons {
		comma = "; then "
	}
	starts := map[int]string{}
	switch n := len(clauses); {
	case n == 3 && semicolons:
		starts[2] = "Finally, "
	case n == 4:
		starts[2] = "After that, "
	case n > 4:
		starts[(n+1)/3] = "Next, "
		starts[n-1-n/7] = "Finally, "
	}
	var b strings.Builder
	for i, c := range clauses {
		start, ok := starts[i]
		switch {
		case i == 0:
			c = capital(c)
		case ok:
			b.WriteString(". " + start)
		default:
			b.WriteString(comma)
		}
		b.WriteString(c)
	}
	return b.String() + "."
}

func capital(s string) string {
	r, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[size:]
}

func mustJSON(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil { // the generator makes nothing that JSON cannot hold
		panic("library: " + err.Error())
	}
	return b
}
