// Package legacy reads and writes the files of the 2025 original: version 3.0
// of its aggregate database master_database.json, and its CSV with 50 columns.
//
// It owns the formats, the checks of their content, and the correction of
// counts. It does not open files.
//
// Data from these files remain another system's aggregates and never become
// trials. The package does not move anything between leaves or models, not even
// to make totals agree or to fill a gap. It does not merge names either; if two
// names seem to mean the same model, a [Finding] suggests it. If a leaf's
// counts contradict each other in a way that its own fields explain, it gets
// corrected counts next to the stored ones. Otherwise it is kept as stored and
// marked as not usable.
//
// Files that the package writes are derived from attempts. Read has no findings
// about them unless names or reliabilities differ from the original's, or the
// batch runner's rule makes full successes of episodes that lack required tools.
package legacy

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Version is the only version of the format that is supported.
const Version = "3.0"

// A Database is the content of a master_database.json and the findings about
// it. Its JSON is stable: decoding it gives an equal Database.
type Database struct {
	// Source is the SHA-256 of the file, in hex.
	Source  string `json:"source_sha256"`
	Version string `json:"version"`
	// CreatedAt and LastUpdated are as stored, without a time zone.
	CreatedAt   string      `json:"created_at"`
	LastUpdated string      `json:"last_updated"`
	Aggregates  []Aggregate `json:"aggregates"`
	Findings    []Finding   `json:"findings"`
}

// An Aggregate is a leaf: the tests of one model with one prompt, rate,
// difficulty and task type, as counts and averages.
type Aggregate struct {
	// Path is the leaf's path in the file; see [Finding].
	Path       string `json:"path"`
	Model      string `json:"model"`
	Variant    string `json:"variant"`
	Difficulty string `json:"difficulty"`
	TaskType   string `json:"task_type"`
	// Rate is the key of the rate, and Reliability its value, or 0 if the key
	// is not a number in [0,1].
	Rate        string  `json:"rate"`
	Reliability float64 `json:"reliability"`

	Stored Counts `json:"stored"`
	// Corrected is set if the stored counts are wrong and the leaf's own fields
	// give the right ones.
	Corrected *Counts `json:"corrected"`
	// Rule is the way in which the counts to use follow from the stored ones. It is empty
	// if they do not.
	Rule Rule `json:"rule"`
	// Usable reports whether Counts may be compared and pooled. This requires a
	// rule, a cell that the original has, and no other leaf of that cell.
	// Reason explains the decision.
	Usable bool   `json:"usable"`
	Reason string `json:"reason"`

	// Errors are the stored counts by error category, with our names.
	Errors     map[string]int     `json:"errors"`
	Rates      map[string]float64 `json:"stored_rates"`
	Averages   Averages           `json:"averages"`
	Assistance Assistance         `json:"assistance"`
	// Missing lists fields of the format that the leaf does not have, or that
	// are not a valid number. They are 0 above. The original created a counter
	// at its first increment.
	Missing []string `json:"missing,omitempty"`
}

// Counts are numbers of tests. Success includes full and partial success.
// Errors are the tests with an error category, which by the format's rules are
// all tests without full success.
type Counts struct {
	Total   int `json:"total"`
	Success int `json:"success"`
	Full    int `json:"full_success"`
	Partial int `json:"partial_success"`
	Failed  int `json:"failed"`
	Errors  int `json:"total_errors"`
}

// Add adds o to c. This is the only correct way to pool leaves.
func (c *Counts) Add(o Counts) {
	c.Total += o.Total
	c.Success += o.Success
	c.Full += o.Full
	c.Partial += o.Partial
	c.Failed += o.Failed
	c.Errors += o.Errors
}

// Averages are means over the tests of a leaf as stored.
type Averages struct {
	Seconds   float64 `json:"execution_time_s"`
	Turns     float64 `json:"turns"`
	ToolCalls float64 `json:"tool_calls"` // only successful ones
	Coverage  float64 `json:"coverage"`
	Workflow  float64 `json:"workflow_score"`
	Phase2    float64 `json:"phase2_score"`
	Quality   float64 `json:"quality_score"`
	Final     float64 `json:"final_score"`
}

// Assistance counts the tests in which the format of the model's replies was
// corrected.
type Assistance struct {
	Tests   int `json:"tests"`
	Turns   int `json:"turns"`
	Success int `json:"success"`
	Failure int `json:"failure"`
}

// Counts returns the counts to use. It returns false if the leaf is not usable.
func (a *Aggregate) Counts() (Counts, bool) {
	switch {
	case !a.Usable:
		return Counts{}, false
	case a.Corrected != nil:
		return *a.Corrected, true
	}
	return a.Stored, true
}

// maxBytes is the maximum size of a file. Real files have about one megabyte.
const maxBytes = 32 << 20

// Read reads a master_database.json. It accepts only valid JSON, except for
// Python's NaN and Infinity, and only Version. Its errors have the line, the
// column and an excerpt. Problems with the content become findings.
func Read(r io.Reader) (*Database, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the file has more than %d MiB, far more than "+
			"a master_database.json can have", maxBytes>>20)
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
	const hint = "\nhint: check that this is the master_database.json of the 2025 original"
	version := root.get("version")
	switch {
	case root.kind != object:
		return fmt.Errorf("the file contains %s, not an object%s", root.describe(), hint)
	case version == nil:
		return fmt.Errorf("the file has no version, want %q%s", Version, hint)
	case version.kind != text || version.text != Version:
		return fmt.Errorf("unsupported version %s, want %q", version.describe(), Version)
	case root.get("models") == nil:
		return fmt.Errorf("the file has no models%s", hint)
	case root.get("models").kind != object:
		return fmt.Errorf("models is %s, not an object%s", root.get("models").describe(), hint)
	}
	return nil
}
