package legacy

import (
	"encoding/json"
	"io"
	"iter"
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// WriteV3 writes a master_database.json of version 3.0 from attempts and
// returns the number of trials in it. If attempts cannot be read or give a [MixedError], it writes
// no output.
//
// The first outcome of a trial counts, in the order of attempts. Faults and
// later outcomes do not count, and repeats are separate tests. Prompt types are
// the variants, and the rate is the reliability rounded to four places.
//
// In the world pilot, the level is the batch runner's, which the original
// recorded; in other worlds it is the attempt's own. An outcome that is full by
// its own level but not by the batch runner's has no error category and counts
// under other_errors, like an error category that the original does not have.
// Success always includes full and partial success.
//
// avg_execution_time is working time in seconds. avg_tool_calls counts
// successful calls. The four scores come from the pilot world, and are 0 in others. Assistance
// counts corrections of the model's format. Times are in UTC in the original's form, without a
// zone; created_at and last_updated are the start of the first attempt that counts and the end of
// the last one. All summaries and totals are sums over the leaves. The same attempts give the same
// bytes.
func WriteV3(w io.Writer, attempts iter.Seq2[assay.Attempt, error]) (trials int, err error) {
	leaves, all, err := gather(attempts)
	if err != nil {
		return 0, err
	}
	models, names := modelsDoc(leaves)
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return all.total(), e.Encode(doc{
		{"version", Version},
		{"created_at", stamp(all.first)},
		{"last_updated", stamp(all.last)},
		{"test_groups", groupsDoc(leaves)},
		{"models", models},
		{"summary", slices.Concat(
			all.fields("total_tests=total", "total_success=success", "total_partial=partial",
				"total_failure=failed"),
			doc{{"models_tested", names}, {"last_test_time", stamp(all.last)}},
			all.fields("overall_success_rate=success_rate"),
		)},
	})
}

// runs splits sorted leaves into groups with the same part of the key, and
// calls f for each group with its sum.
func runs(
	leaves []*tallied, of func(key) string, f func(name string, part []*tallied, sum leafTally),
) {
	for len(leaves) > 0 {
		name, n := of(leaves[0].key), 0
		var sum leafTally
		for n < len(leaves) && of(leaves[n].key) == name {
			sum.merge(leaves[n].leafTally)
			n++
		}
		f(name, leaves[:n], sum)
		leaves = leaves[n:]
	}
}

func modelsDoc(leaves []*tallied) (models doc, names []string) {
	names = []string{} // not null
	runs(leaves,
		func(k key) string { return k.model }, func(name string, part []*tallied, sum leafTally) {
			names = append(names, name)
			models = append(models, [2]any{name, doc{
				{"model_name", name},
				{"first_test_time", stamp(sum.first)},
				{"last_test_time", stamp(sum.last)},
				{"total_tests", sum.total()},
				{"overall_stats", sum.fields("total_success=success", "total_partial=partial",
					"total_full=full_success", "total_failure=failed", "success_rate",
					"weighted_success_score", "avg_execution_time", "avg_turns", "tool_coverage_rate")},
				{"by_prompt_type", promptsDoc(part)},
			}})
		})
	return models, names
}

func promptsDoc(leaves []*tallied) (prompts doc) {
	runs(leaves,
		func(k key) string { return k.variant }, func(name string, part []*tallied, sum leafTally) {
			prompts = append(prompts, [2]any{name, doc{
				{"summary", sum.fields(leafFields...)}, {"by_tool_success_rate", ratesDoc(part)},
			}})
		})
	return prompts
}

func ratesDoc(leaves []*tallied) (rates doc) {
	runs(leaves, func(k key) string { return k.rate }, func(rate string, part []*tallied, _ leafTally) {
		var difficulties doc
		ofDifficulty := func(name string, part []*tallied, _ leafTally) {
			var types doc
			for _, l := range part {
				types = append(types, [2]any{l.taskType, l.fields(leafFields...)})
			}
			difficulties = append(difficulties, [2]any{name, doc{{"by_task_type", types}}})
		}
		runs(part, func(k key) string { return k.difficulty }, ofDifficulty)
		rates = append(rates, [2]any{rate, doc{{"by_difficulty", difficulties}}})
	})
	return rates
}

// groupsDoc returns a test group for each combination of factors, pooled over
// rates. Their instances, which are single tests, are empty as in the original.
func groupsDoc(leaves []*tallied) (groups doc) {
	pooled := make(map[key]*leafTally)
	var order []key
	for _, l := range leaves {
		k := l.key
		k.rate = ""
		if pooled[k] == nil {
			pooled[k] = new(leafTally)
			order = append(order, k)
		}
		pooled[k].merge(l.leafTally)
	}
	used := make(map[string]bool)
	for _, k := range order {
		id := k.group()
		for used[id] { // names may contain the separator
			id += "_"
		}
		used[id] = true
		groups = append(groups, [2]any{id, groupDoc(k, pooled[k])})
	}
	return groups
}

func groupDoc(k key, t *leafTally) doc {
	var flaw any
	if name, flawed := assay.FlawOf(k.variant); flawed {
		flaw = string(name)
	}
	return doc{
		{"model", k.model},
		{"task_type", k.taskType},
		{"prompt_type", k.variant},
		{"difficulty", k.difficulty},
		{"is_flawed", flaw != nil},
		{"flaw_type", flaw},
		{"statistics", t.fields("total", "success", "partial_success", "failure=failed", "success_rate",
			"avg_execution_time")},
		{"instances", []string{}},
	}
}

type doc = export.Object

// stamp formats a time like the original. It returns "" for the zero time.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000")
}
