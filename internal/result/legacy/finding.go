package legacy

import (
	"slices"
	"strings"
)

// A Finding is a contradiction in a file, or something else that readers should
// know.
type Finding struct {
	Kind string `json:"kind"`
	// Path has the keys from the top of the file, separated by /. As in a
	// JSON pointer, / is written ~1 and ~ is written ~0 in a key. The path
	// is empty for the file itself, and ends before a missing key.
	Path string `json:"path"`
	// Model is empty if the finding is not about a model.
	Model string `json:"model"`
	// Stored is the value in the file. Derived is the value that follows from
	// its leaves or that was probably meant. Either may be empty.
	Stored  string `json:"stored"`
	Derived string `json:"derived"`
	Message string `json:"message"`
	// Done describes how the finding was handled.
	Done string `json:"done"`
}

// The kinds of finding.
const (
	testModel        = "test_model"
	modelName        = "model_name"
	unknownPrompt    = "unknown_prompt"
	plainFlawed      = "plain_flawed"
	phantomRate      = "phantom_rate"
	unknownLevel     = "unknown_difficulty"
	unknownType      = "unknown_task_type"
	doubledCounts    = "doubled_counts"
	partlyDoubled    = "partly_doubled_counts"
	perhapsDoubled   = "perhaps_doubled_counts"
	totalMismatch    = "total_mismatch"
	successMismatch  = "success_mismatch"
	errorsMismatch   = "errors_mismatch"
	rateMismatch     = "rate_mismatch"
	coverageBelow    = "coverage_below_full"
	missingField     = "missing_field"
	nullField        = "null_field"
	notANumber       = "not_a_number"
	negativeNumber   = "negative_number"
	renamedField     = "renamed_field"
	unknownField     = "unknown_field"
	malformed        = "malformed"
	duplicateKey     = "duplicate_key"
	overlap          = "overlapping_leaves"
	modelTotal       = "model_total"
	promptSummary    = "prompt_summary"
	overallStats     = "overall_stats"
	summaryMismatch  = "summary"
	testGroupMistake = "test_group"
)

// meanings lists the kinds in the order of findings and tables.
var meanings = []struct{ kind, text string }{
	{testModel, "a model used only in tests of the program"},
	{
		modelName,
		"a model that looks like another name of one in the file or in the original's table",
	},
	{unknownPrompt, "a prompt type that the original does not have"},
	{plainFlawed, "results of all flaws together, under the name flawed"},
	{phantomRate, "a rate that no suite of the original has"},
	{unknownLevel, "a difficulty that the original does not have"},
	{unknownType, "a task type that the original does not have"},
	{doubledCounts, "all tests of a leaf counted twice"},
	{partlyDoubled, "some tests of a leaf counted twice"},
	{
		perhapsDoubled,
		"a leaf whose own fields cannot tell whether tests were counted twice",
	},
	{totalMismatch, "total is not success + failed"},
	{successMismatch, "success is not full + partial success"},
	{errorsMismatch, "errors do not add up to the tests without full success"},
	{rateMismatch, "rates that do not follow from the leaf's counts"},
	{
		coverageBelow,
		"a mean coverage below the share of full successes, so some of them lack required tools",
	},
	{missingField, "missing fields"},
	{nullField, "fields that are null"},
	{notANumber, "fields without a finite number or a valid count"},
	{negativeNumber, "fields below zero"},
	{renamedField, "fields with an older name"},
	{unknownField, "fields that the format does not have"},
	{malformed, "values of a wrong type"},
	{duplicateKey, "duplicate keys in an object"},
	{overlap, "several leaves of the same cell"},
	{modelTotal, "a model's total differs from its leaves"},
	{promptSummary, "a prompt type's summary differs from its leaves"},
	{overallStats, "a model's overall_stats differ from its leaves"},
	{summaryMismatch, "the file's summary differs from its leaves"},
	{testGroupMistake, "a test group differs from the leaves"},
}

// How findings were handled.
const (
	isolated  = "kept separately; its leaves are not usable"
	notUsable = "kept as stored; not usable"
	asStored  = "kept as stored"
	corrected = "corrected next to the stored counts"
	assumed   = "assumed to be counted twice, next to the stored counts"
	derived   = "not used; sums are computed from the leaves"
	apart     = "kept separate; names are never merged"
	leftOut   = "left out"
)

// A KindCount is the number of findings of a kind.
type KindCount struct {
	Kind     string    `json:"kind"`
	Meaning  string    `json:"meaning"`
	Count    int       `json:"count"`
	Examples []Finding `json:"examples"` // the first few
}

// Summary counts the findings by kind, with at most the given number of
// examples for each.
func (d *Database) Summary(examples int) []KindCount {
	counts := []KindCount{}
	for _, m := range meanings {
		c := KindCount{Kind: m.kind, Meaning: m.text, Examples: []Finding{}}
		for _, f := range d.Findings {
			if f.Kind != m.kind {
				continue
			}
			if c.Count++; c.Count <= examples {
				c.Examples = append(c.Examples, f)
			}
		}
		if c.Count > 0 {
			counts = append(counts, c)
		}
	}
	return counts
}

// sortFindings sorts findings by kind and keeps the order of the file within a
// kind.
func sortFindings(findings []Finding) {
	rank := make(map[string]int, len(meanings))
	for i, m := range meanings {
		rank[m.kind] = i
	}
	slices.SortStableFunc(findings, func(a, b Finding) int { return rank[a.Kind] - rank[b.Kind] })
}

// join appends a key to a path.
func join(path, key string) string {
	key = strings.ReplaceAll(strings.ReplaceAll(key, "~", "~0"), "/", "~1")
	if path == "" {
		return key
	}
	return path + "/" + key
}
