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

// The kinds of finding with their meanings, in the order of findings and tables.
var (
	kinds []KindCount

	testModel = newKind("test_model", "a model used only in tests of the program")
	modelName = newKind("model_name",
		"a model that looks like another name of one in the file or in the original's table")
	unknownPrompt  = newKind("unknown_prompt", "a prompt type that the original does not have")
	plainFlawed    = newKind("plain_flawed", "results of all flaws together, under the name flawed")
	phantomRate    = newKind("phantom_rate", "a rate that no suite of the original has")
	unknownLevel   = newKind("unknown_difficulty", "a difficulty that the original does not have")
	unknownType    = newKind("unknown_task_type", "a task type that the original does not have")
	doubledCounts  = newKind("doubled_counts", "all tests of a leaf counted twice")
	partlyDoubled  = newKind("partly_doubled_counts", "some tests of a leaf counted twice")
	perhapsDoubled = newKind("perhaps_doubled_counts",
		"a leaf whose own fields cannot tell whether tests were counted twice")
	totalMismatch   = newKind("total_mismatch", "total is not success + failed")
	successMismatch = newKind("success_mismatch", "success is not full + partial success")
	errorsMismatch  = newKind("errors_mismatch",
		"errors do not add up to the tests without full success")
	rateMismatch  = newKind("rate_mismatch", "rates that do not follow from the leaf's counts")
	coverageBelow = newKind("coverage_below_full",
		"a mean coverage below the share of full successes, so some of them lack required tools")
	missingField     = newKind("missing_field", "missing fields")
	nullField        = newKind("null_field", "fields that are null")
	notANumber       = newKind("not_a_number", "fields without a finite number or a valid count")
	negativeNumber   = newKind("negative_number", "fields below zero")
	renamedField     = newKind("renamed_field", "fields with an older name")
	unknownField     = newKind("unknown_field", "fields that the format does not have")
	malformed        = newKind("malformed", "values of a wrong type")
	duplicateKey     = newKind("duplicate_key", "duplicate keys in an object")
	overlap          = newKind("overlapping_leaves", "several leaves of the same cell")
	modelTotal       = newKind("model_total", "a model's total differs from its leaves")
	promptSummary    = newKind("prompt_summary", "a prompt type's summary differs from its leaves")
	overallStats     = newKind("overall_stats", "a model's overall_stats differ from its leaves")
	summaryMismatch  = newKind("summary", "the file's summary differs from its leaves")
	testGroupMistake = newKind("test_group", "a test group differs from the leaves")
)

func newKind(name, meaning string) string {
	kinds = append(kinds, KindCount{Kind: name, Meaning: meaning})
	return name
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
	for _, c := range kinds {
		c.Examples = []Finding{}
		for _, f := range d.Findings {
			if f.Kind != c.Kind {
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

// sortFindings sorts findings by kind and keeps the order of the file within a kind.
func sortFindings(findings []Finding) {
	rank := make(map[string]int, len(kinds))
	for i, k := range kinds {
		rank[k.Kind] = i
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
