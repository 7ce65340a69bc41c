package legacy

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// A reader walks a file and collects its leaves and its findings.
type reader struct {
	db *Database
	// models maps lower-case names to the models found so far.
	models map[string]string
	leaves []leaf
	err    error
}

// A leaf has the counts of an aggregate, which is given by its index.
type leaf struct {
	aggregate int
	counts    map[string]float64
}

// A place is the reader's position in the file.
type place struct {
	path string
	Aggregate
	// blocked lists the reasons why leaves below are not usable.
	blocked []string
}

// at returns the place of a member.
func (p place) at(key string) place {
	p.path = join(p.path, key)
	p.blocked = slices.Clip(p.blocked)
	return p
}

func (r *reader) read(root *node) error {
	r.models = make(map[string]string)
	r.duplicates(place{}, root)
	r.each(place{}, root, "models", r.model)
	r.overlaps()
	r.summary(place{}.at("summary"), root.get("summary"))
	r.groups(root)
	sortFindings(r.db.Findings)
	return r.err
}

func (r *reader) find(p place, kind, stored, derived, done, format string, args ...any) {
	r.db.Findings = append(r.db.Findings, Finding{
		Kind: kind, Path: p.path, Model: p.Model,
		Stored: stored, Derived: derived, Message: fmt.Sprintf(format, args...), Done: done,
	})
}

// each calls f for the members of parent's object with the given name. If a key
// occurs more than once, it reports that and reads all values.
func (r *reader) each(p place, parent *node, name string, f func(p place, key string, n *node)) {
	if parent.get(name) == nil {
		r.find(p, missingField, "", "", leftOut, "%s is missing", name)
		return
	}
	p = p.at(name)
	for _, m := range parent.members {
		if m.key == name {
			r.eachMember(p, m, f)
		}
	}
}

func (r *reader) eachMember(p place, of jsonMember, f func(p place, key string, n *node)) {
	if of.value.kind != object {
		r.find(p, malformed, of.value.describe(), "", leftOut, "%s is not an object", of.key)
		return
	}
	r.duplicates(p, of.value)
	for _, m := range of.value.members {
		p := p.at(m.key)
		if m.value.kind != object {
			r.find(p, malformed, m.value.describe(), "", leftOut,
				"the value of this key of %s is not an object", of.key)
			continue
		}
		r.duplicates(p, m.value)
		f(p, m.key, m.value)
	}
}

func (r *reader) duplicates(p place, n *node) {
	seen := make(map[string]int, len(n.members))
	for _, m := range n.members {
		if seen[m.key]++; seen[m.key] == 2 {
			r.find(p.at(m.key), duplicateKey, "", "",
				"all leaves below are read, but only the last of duplicate fields",
				"duplicate key %q; most readers see only the last one", short(m.key))
		}
	}
}

// modelFields are the fields of a model.
var modelFields = []string{
	"model_name", "first_test_time", "last_test_time",
	"total_tests", "overall_stats", "by_prompt_type",
}

func (r *reader) model(p place, name string, n *node) {
	p.Model = name
	if testName.MatchString(name) {
		r.find(p, testModel, "", "", isolated,
			"%q is from a test of the program, not from a model", short(name))
		p.blocked = append(p.blocked, "the model is from a test of the program")
	} else if other := probablyIs(name, r.models); other != "" {
		r.find(p, modelName, short(name), other, apart,
			"this is probably %s with a different spelling or deployment", other)
	}
	if lower := strings.ToLower(name); r.models[lower] == "" {
		r.models[lower] = name
	}
	if stored := n.get("model_name"); stored != nil && stored.string() != name {
		r.find(p.at("model_name"), modelName, stored.describe(), short(name), apart,
			"model_name differs from the key of the model")
	}
	r.unknown(p, n, modelFields)
	first := len(r.leaves)
	r.each(p, n, "by_prompt_type", r.prompt)
	below := r.sum(r.leaves[first:])
	if total := n.get("total_tests"); total != nil {
		r.compare(p.at("total_tests"), modelTotal, total, below["total"],
			"the model's leaves have %s tests", decimals(below["total"]))
	} else {
		r.find(p, missingField, "", decimals(below["total"]), derived, "total_tests is missing")
	}
	r.overall(p, n.get("overall_stats"), below)
}

func (r *reader) prompt(p place, name string, n *node) {
	p.Variant = name
	switch {
	case slices.Contains(prompts, name):
	case name == "flawed":
		r.find(p, plainFlawed, name, "", isolated,
			"the file does not say which of the %d flaws the plans had", len(assay.Flaws))
		p.blocked = append(p.blocked, "the flaw is unknown")
	default:
		p = r.strange(p, unknownPrompt, "prompt type", name, prompts)
	}
	first := len(r.leaves)
	r.each(p, n, "by_tool_success_rate", r.rate)
	if s := n.get("summary"); s != nil {
		r.promptSummary(p.at("summary"), s, r.sum(r.leaves[first:]))
	}
}

func (r *reader) rate(p place, key string, n *node) {
	value, meant, ok := parseRate(key)
	p.Rate, p.Reliability = key, value
	switch {
	case !ok:
		likely := ""
		if meant > 0 {
			likely = rateKey(meant)
		}
		r.find(p, phantomRate, short(key), likely, isolated,
			"no suite has the rate %q, and the actual rate was not stored", short(key))
		p.blocked = append(p.blocked, "no suite has this rate")
	case key != rateKey(value):
		r.find(p, phantomRate, short(key), rateKey(value), "read as "+rateKey(value),
			"the rate has an unusual spelling")
	}
	r.each(p, n, "by_difficulty", func(p place, name string, n *node) {
		p.Difficulty = name
		if !slices.Contains(difficulties, name) {
			p = r.strange(p, unknownLevel, "difficulty", name, difficulties)
		}
		r.each(p, n, "by_task_type", func(p place, name string, n *node) {
			p.TaskType = name
			if !slices.Contains(taskTypes, name) {
				p = r.strange(p, unknownType, "task type", name, taskTypes)
			}
			r.leaf(p, n)
		})
	})
}

// strange reports an unknown name and blocks its leaves.
func (r *reader) strange(p place, kind, what, name string, known []string) place {
	message := fmt.Sprintf("the original has no %s %q", what, short(name))
	hint := assay.NearestName(name, known)
	if hint != "" {
		message += "; it probably means " + hint
	}
	r.find(p, kind, short(name), hint, isolated, "%s", message)
	p.blocked = append(p.blocked, "the original does not have this "+what)
	return p
}

// unknown reports fields that the format does not have.
func (r *reader) unknown(p place, n *node, known []string) {
	var names []string
	for _, m := range n.members {
		if !slices.Contains(known, m.key) {
			names = append(names, short(m.key))
		}
	}
	if len(names) > 0 {
		r.find(p, unknownField, short(strings.Join(names, " ")), "", "ignored",
			"the format does not have these fields")
	}
}

// overlaps makes all leaves of a cell unusable if there are several, because it
// is unknown whether they share tests.
func (r *reader) overlaps() {
	type cell struct {
		model, variant, difficulty, taskType string
		rate                                 float64
	}
	first := make(map[cell]int)
	for i := range r.db.Aggregates {
		a := &r.db.Aggregates[i]
		if a.Reliability == 0 {
			continue
		}
		c := cell{a.Model, a.Variant, a.Difficulty, a.TaskType, a.Reliability}
		j, found := first[c]
		if !found {
			first[c] = i
			continue
		}
		other := &r.db.Aggregates[j]
		r.find(place{path: a.Path, Aggregate: *a}, overlap,
			totals(a.Stored), totals(other.Stored), notUsable,
			"%s is a leaf of the same cell; it is unknown whether they share tests",
			short(other.Path))
		other.block("the file has several leaves of this cell")
		a.block("the file has several leaves of this cell")
	}
}

// block makes a leaf unusable and adds a reason.
func (a *Aggregate) block(reason string) {
	a.Usable = false
	if !strings.Contains(a.Reason, reason) {
		a.Reason = strings.TrimPrefix(a.Reason+"; "+reason, "; ")
	}
}

func totals(c Counts) string {
	return fmt.Sprintf("total %d, success %d, failed %d", c.Total, c.Success, c.Failed)
}

// sum returns the sums of the stored counts of leaves.
func (r *reader) sum(leaves []leaf) map[string]float64 {
	total := make(map[string]float64)
	for _, l := range leaves {
		for name, v := range l.counts {
			total[name] += v
		}
	}
	return total
}

// compare reports a stored number that differs from the sum over leaves.
func (r *reader) compare(
	p place, kind string, stored *node, want float64, format string, args ...any,
) {
	if v, bad := numberOf(stored); bad != "" || v != want {
		r.find(p, kind, stored.describe(), decimals(want), derived, format, args...)
	}
}

// decimals formats a sum of counts.
func decimals(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// overallNames maps the fields of overall_stats to the fields of leaves.
var overallNames = map[string]string{
	"total_success": "success", "total_partial": "partial",
	"total_full": "full_success", "total_failure": "failed",
}

func (r *reader) overall(p place, stats *node, below map[string]float64) {
	switch {
	case below["total"] == 0:
	case stats == nil:
		r.find(p, missingField, "", "", derived, "overall_stats is missing")
	case len(stats.members) == 0:
		r.find(p.at("overall_stats"), overallStats, stats.describe(), "", derived,
			"overall_stats is empty, but the model has %s tests", decimals(below["total"]))
	default:
		r.differing(p.at("overall_stats"), overallStats, stats, below, overallNames)
	}
}

func (r *reader) promptSummary(p place, summary *node, below map[string]float64) {
	names := make(map[string]string)
	for _, f := range countFields {
		names[f] = f
	}
	r.differing(p, promptSummary, summary, below, names)
}

// differing reports all fields of an object that differ from the sums over
// leaves in one finding. names maps fields to the fields of leaves.
func (r *reader) differing(
	p place, kind string, n *node, below map[string]float64, names map[string]string,
) {
	var stored, want []string
	for _, field := range slices.Sorted(maps.Keys(names)) {
		v := n.get(field)
		if v == nil {
			continue
		}
		sum := below[names[field]]
		if got, bad := numberOf(v); bad != "" || got != sum {
			stored = append(stored, field+" "+v.describe())
			want = append(want, field+" "+decimals(sum))
		}
	}
	if len(stored) > 0 {
		r.find(p, kind, strings.Join(stored, ", "), strings.Join(want, ", "), derived,
			"%d fields differ from the sums over the leaves", len(stored))
	}
}

// summaryNames maps the fields of the file's summary to the fields of leaves.
var summaryNames = []struct{ field, of string }{
	{"total_tests", "total"},
	{"total_success", "success"},
	{"total_partial", "partial"},
	{"total_failure", "failed"},
}

func (r *reader) summary(p place, n *node) {
	if n == nil {
		r.find(place{}, missingField, "", "", derived, "summary is missing")
		return
	}
	if n.kind != object {
		r.find(p, malformed, n.describe(), "", derived, "summary is not an object")
		return
	}
	r.duplicates(p, n)
	below, once := r.sum(r.leaves), 0
	for i := range r.db.Aggregates {
		c, _ := r.db.Aggregates[i].Counts()
		once += c.Total
	}
	for _, s := range summaryNames {
		if v := n.get(s.field); v != nil {
			r.compare(p.at(s.field), summaryMismatch, v, below[s.of],
				"%s differs from the sum over the %d leaves; %d tests remain if each counts once",
				s.field, len(r.leaves), once)
		} else {
			r.find(p, missingField, "", decimals(below[s.of]), derived, "%s is missing", s.field)
		}
	}
	if v := n.get("overall_success_rate"); v != nil {
		want := ratio{count: "success", by: "total"}.of(below)
		if got, bad := numberOf(v); bad != "" || !near(got, want) {
			r.find(p.at("overall_success_rate"), summaryMismatch, v.describe(), decimals(want),
				derived, "the rate does not follow from the leaves")
		}
	}
	r.modelsTested(p, n.get("models_tested"))
}

func (r *reader) modelsTested(p place, n *node) {
	if n == nil {
		return
	}
	p = p.at("models_tested")
	if n.kind != array {
		r.find(p, malformed, n.describe(), "", derived, "models_tested is not an array")
		return
	}
	var named, tested []string
	for _, m := range n.members {
		named = append(named, m.value.string())
	}
	for _, a := range r.db.Aggregates {
		tested = append(tested, a.Model)
	}
	slices.Sort(named)
	slices.Sort(tested)
	named, tested = slices.Compact(named), slices.Compact(tested)
	if !slices.Equal(named, tested) {
		r.find(p, summaryMismatch, short(strings.Join(named, " ")),
			short(strings.Join(tested, " ")), derived,
			"it lists %d models, but %d have leaves", len(named), len(tested))
	}
}

// groups compares the test groups with the leaves. Groups have no rate.
func (r *reader) groups(root *node) {
	if root.get("test_groups") == nil {
		return
	}
	type group struct{ model, variant, difficulty, taskType string }
	below := make(map[group]float64)
	for _, l := range r.leaves {
		a := &r.db.Aggregates[l.aggregate]
		below[group{a.Model, a.Variant, a.Difficulty, a.TaskType}] += l.counts["total"]
	}
	r.each(place{}, root, "test_groups", func(p place, _ string, n *node) {
		p.Model = n.get("model").string()
		if testName.MatchString(p.Model) {
			r.find(p, testModel, "", "", leftOut,
				"the group is from a test of the program, not from a model")
			return
		}
		want := below[group{
			p.Model, n.get("prompt_type").string(),
			n.get("difficulty").string(), n.get("task_type").string(),
		}]
		total := n.get("statistics").get("total")
		if v, bad := numberOf(total); bad != "" || v != want {
			r.find(p, testGroupMistake, total.describe(), decimals(want), derived,
				"the leaves have %s tests of the group", decimals(want))
		}
	})
}
