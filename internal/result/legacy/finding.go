package legacy

import (
	"slices"
	"strings"
)

// A Finding is one contradiction in a file, or one thing that nobody should
// read without knowing of it.
type Finding struct {
	Kind string `json:"kind"`
	// Path holds the keys from the top of the file, with / between them; in a
	// key, / is written ~1 and ~ is written ~0, as in a JSON pointer. It is
	// empty for the file itself, and stops before what is missing.
	Path string `json:"path"`
	// Model is empty where the finding is about no model.
	Model string `json:"model"`
	// Stored is what the file says, and Derived what follows from its leaves or
	// what was probably meant; empty where nothing does.
	Stored  string `json:"stored"`
	Derived string `json:"derived"`
	Message string `json:"message"`
	// Done is what became of it.
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
	totalMismatch    = "total_mismatch"
	successMismatch  = "success_mismatch"
	errorsMismatch   = "errors_mismatch"
	rateMismatch     = "rate_mismatch"
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

// meanings lists the kinds in the order of findings and of tables.
var meanings = []struct{ kind, text string }{
	{testModel, "a model that only tests of the program used"},
	{modelName, "a model that looks like another name of one in the file or of the original's table"},
	{unknownPrompt, "a prompt type that the original does not have"},
	{plainFlawed, "results of all flaws in one, under the name flawed"},
	{phantomRate, "a rate that no suite of the original has"},
	{unknownLevel, "a difficulty that the original does not have"},
	{unknownType, "a task type that the original does not have"},
	{doubledCounts, "all tests of a leaf counted twice"},
	{partlyDoubled, "some tests of a leaf counted twice"},
	{totalMismatch, "total is not success + failed"},
	{successMismatch, "success is not full + partial success"},
	{errorsMismatch, "errors do not add up to what is no full success"},
	{rateMismatch, "rates that do not follow from the leaf's counts"},
	{missingField, "fields that are missing"},
	{nullField, "fields that are null"},
	{notANumber, "fields that hold no finite number, or no count"},
	{negativeNumber, "fields below zero"},
	{renamedField, "fields under an older name"},
	{unknownField, "fields that the format does not have"},
	{malformed, "values of the wrong kind"},
	{duplicateKey, "keys that an object has twice"},
	{overlap, "several leaves of the same cell"},
	{modelTotal, "a model's total against its leaves"},
	{promptSummary, "a prompt type's summary against its leaves"},
	{overallStats, "a model's overall_stats against its leaves"},
	{summaryMismatch, "the file's summary against its leaves"},
	{testGroupMistake, "a test group against the leaves"},
}

// What became of findings.
const (
	isolated  = "kept apart: its leaves are not usable"
	notUsable = "kept as stored, not usable"
	asStored  = "kept as stored"
	corrected = "corrected beside the stored counts"
	derived   = "not used: sums are taken over leaves"
	apart     = "kept apart: names are never merged"
	leftOut   = "left out"
)

// A KindCount says how many findings of a kind there are.
type KindCount struct {
	Kind     string    `json:"kind"`
	Meaning  string    `json:"meaning"`
	Count    int       `json:"count"`
	Examples []Finding `json:"examples"` // the first few
}

// Summary counts the findings by kind, for printing, with up to so many examples
// of each.
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

// sortFindings sorts by kind, and keeps the order of the file within.
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
