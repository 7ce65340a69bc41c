// Package legacy reads and writes the files of the 2025 original: its
// aggregate database master_database.json in version 3.0, and its CSV of 50
// columns.
//
// It owns the formats, the checks of what they hold, and the arithmetic that
// corrects counts. It opens no files and knows no store.
//
// What is read stays what it is: aggregates of another system. It never becomes
// trials, and nothing is moved between leaves or between models, neither to
// make totals agree nor to fill a gap: a test that is not in a leaf was not
// stored there. Names are not merged either; where two look like one model, a
// [Finding] suggests it. A leaf whose counts contradict each other in a way
// that its own fields explain gets corrected counts beside the stored ones, and
// any other is kept as stored and marked as not usable.
//
// What is written is derived from attempts. Read finds nothing to say about it,
// unless names or reliabilities are not the original's.
package legacy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Version is the version of the format, the only one that is read.
const Version = "3.0"

// A Database is a master_database.json with what was found in it. Its JSON is
// stable: it reads back as an equal Database.
type Database struct {
	// Source is the SHA-256 of the file, in hex.
	Source  string `json:"source_sha256"`
	Version string `json:"version"`
	// CreatedAt and LastUpdated are as stored, without a zone.
	CreatedAt   string      `json:"created_at"`
	LastUpdated string      `json:"last_updated"`
	Aggregates  []Aggregate `json:"aggregates"`
	Findings    []Finding   `json:"findings"`
}

// An Aggregate is a leaf: the tests of one model with one prompt, rate,
// difficulty and task type, as counts and averages.
type Aggregate struct {
	// Path is where the leaf stands in the file, see [Finding].
	Path       string `json:"path"`
	Model      string `json:"model"`
	Variant    string `json:"variant"`
	Difficulty string `json:"difficulty"`
	TaskType   string `json:"task_type"`
	// Rate is the key of the rate, and Reliability its value; 0 where the key
	// is no number in [0,1].
	Rate        string  `json:"rate"`
	Reliability float64 `json:"reliability"`

	Stored Counts `json:"stored"`
	// Corrected is set where the stored counts are wrong and the leaf's own
	// fields tell the right ones.
	Corrected *Counts `json:"corrected"`
	// Rule names how the counts to use follow from the stored ones; empty where
	// they do not.
	Rule Rule `json:"rule"`
	// Usable says that Counts may be compared and pooled. Besides a rule that
	// takes a cell that the original has, and one leaf of it. Reason says in
	// words why, or why not.
	Usable bool   `json:"usable"`
	Reason string `json:"reason"`

	// Errors are the stored counts by category of error, in the names of
	// package score.
	Errors     map[string]int     `json:"errors"`
	Rates      map[string]float64 `json:"stored_rates"`
	Averages   Averages           `json:"averages"`
	Assistance Assistance         `json:"assistance"`
	// Missing are the fields of the format that the leaf does not hold, or not
	// as one proper number; they are 0 above. The original left out a counter until
	// its first increment.
	Missing []string `json:"missing,omitempty"`
}

// Counts are numbers of tests. Success is full and partial success together,
// and Errors are the tests that were given a category of error: by the format's
// rules, all that are no full success.
type Counts struct {
	Total   int `json:"total"`
	Success int `json:"success"`
	Full    int `json:"full_success"`
	Partial int `json:"partial_success"`
	Failed  int `json:"failed"`
	Errors  int `json:"total_errors"`
}

// Add adds o to c, which is the only right way to pool leaves.
func (c *Counts) Add(o Counts) {
	c.Total += o.Total
	c.Success += o.Success
	c.Full += o.Full
	c.Partial += o.Partial
	c.Failed += o.Failed
	c.Errors += o.Errors
}

// Averages are means over the tests of a leaf, as stored.
type Averages struct {
	Seconds   float64 `json:"execution_time_s"`
	Turns     float64 `json:"turns"`
	ToolCalls float64 `json:"tool_calls"` // successful ones
	Coverage  float64 `json:"coverage"`
	Workflow  float64 `json:"workflow_score"`
	Phase2    float64 `json:"phase2_score"`
	Quality   float64 `json:"quality_score"`
	Final     float64 `json:"final_score"`
}

// Assistance counts the tests in which the model's format was corrected.
type Assistance struct {
	Tests   int `json:"tests"`
	Turns   int `json:"turns"`
	Success int `json:"success"`
	Failure int `json:"failure"`
}

// Counts returns the counts to use, and false where there are none.
func (a *Aggregate) Counts() (Counts, bool) {
	switch {
	case !a.Usable:
		return Counts{}, false
	case a.Corrected != nil:
		return *a.Corrected, true
	}
	return a.Stored, true
}

// maxBytes is the largest file that is read. Real ones have one megabyte.
const maxBytes = 32 << 20

// Read reads a master_database.json. It is strict about JSON, but for the bare
// NaN and Infinity of Python, and about the version; errors tell line, column
// and an excerpt. All that is odd about the contents becomes a [Finding].
func Read(r io.Reader) (*Database, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the file has more than %d MiB, which no master_database.json has", maxBytes>>20)
	}
	root, err := parse(data)
	if err != nil {
		return nil, err
	}
	if err := checkForm(root); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(data)
	db := &Database{
		Source:      hex.EncodeToString(sum[:]),
		Version:     Version,
		CreatedAt:   root.get("created_at").string(),
		LastUpdated: root.get("last_updated").string(),
		Aggregates:  []Aggregate{},
		Findings:    []Finding{},
	}
	if err := (&reader{db: db}).read(root); err != nil {
		return nil, err
	}
	return db, nil
}

func checkForm(root *node) error {
	const hint = "\nhint: is it the master_database.json of the 2025 original?"
	version := root.get("version")
	switch {
	case root.kind != object:
		return fmt.Errorf("the file holds %s, not an object%s", root.describe(), hint)
	case version == nil:
		return fmt.Errorf("the file has no version, and only version %s is read%s", Version, hint)
	case version.kind != text || version.text != Version:
		return fmt.Errorf("the file has version %s, and only version %q is read", version.describe(), Version)
	case root.get("models") == nil:
		return fmt.Errorf("the file has no models%s", hint)
	case root.get("models").kind != object:
		return fmt.Errorf("models is %s, not an object%s", root.get("models").describe(), hint)
	}
	return nil
}
