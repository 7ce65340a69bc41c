// Package legacy reads and writes version 3.0 of the aggregate database of the 2025 original,
// master_database.json.
//
// It owns the format and the correction of counts. It does not open files.
//
// Data from these files remain another system's aggregates and never become trials. The package
// does not move anything between leaves or models, and merges no names. If a leaf's counts
// contradict each other in a way that its own fields explain, it gets corrected counts next to the
// stored ones. Otherwise it is kept as stored and marked as not usable. Totals and summaries of the
// file are not read, because they follow from its leaves.
package legacy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// Version is the only version of the format that is supported.
const Version = "3.0"

// A Database is the content of a master_database.json.
type Database struct {
	// Source is the SHA-256 of the file, in hex.
	Source  string `json:"source_sha256"`
	Version string `json:"version"`
	// CreatedAt and LastUpdated are as stored, without a time zone.
	CreatedAt   string `json:"created_at"`
	LastUpdated string `json:"last_updated"`
	// Aggregates are in the order of the file.
	Aggregates []Aggregate `json:"aggregates"`
}

// An Aggregate is a leaf: the tests of one model with one prompt, rate,
// difficulty and task type, as counts and averages.
type Aggregate struct {
	Model      string `json:"model"`
	Variant    string `json:"variant"`
	Difficulty string `json:"difficulty"`
	TaskType   string `json:"task_type"`
	// Rate is the key of the rate, and Reliability its value, or 0 if the key
	// is not a number in [0,1].
	Rate        string  `json:"rate"`
	Reliability float64 `json:"reliability"`

	// Stored are the counts of the leaf. Those that it does not have are 0.
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
	// Leaf is the JSON of the leaf, without its white space.
	Leaf json.RawMessage `json:"leaf,omitempty"`
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
// Python's NaN and Infinity, and only Version. Its errors begin with the name of the file; they have
// the line, the column and an excerpt if the file is not JSON.
func Read(name string, r io.Reader) (*Database, error) {
	db, err := read(name, r)
	var place *yamldoc.Error
	switch {
	case errors.As(err, &place): // an error of this type would be about an experiment
		return nil, errors.New(place.Error())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return db, nil
}

func read(name string, r io.Reader) (*Database, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("the file has more than %d MiB, far more than "+
			"a master_database.json can have", maxBytes>>20)
	}
	sum := sha256.Sum256(data)
	if data, err = checked(name, data); err != nil {
		return nil, err
	}
	top, err := topOf(data)
	if err != nil {
		return nil, err
	}
	db := &Database{
		Source: hex.EncodeToString(sum[:]), Version: Version,
		CreatedAt: text(top["created_at"]), LastUpdated: text(top["last_updated"]),
		Aggregates: []Aggregate{},
	}
	err = eachLeaf(data, levels, nil, func(keys []string, leaf json.RawMessage) {
		a := Aggregate{
			Model: keys[0], Variant: keys[1], Rate: keys[2], Difficulty: keys[3], TaskType: keys[4],
			Leaf: compact(leaf),
		}
		a.judge()
		db.Aggregates = append(db.Aggregates, a)
	})
	db.blockOverlaps()
	return db, err
}

// levels are the objects that lead to a leaf. Each has the keys of a factor.
var levels = []string{
	"models", "by_prompt_type", "by_tool_success_rate", "by_difficulty", "by_task_type",
}

// eachLeaf calls f for each leaf below an object that has the first of the levels, with the keys
// that lead to it. A level that an object lacks has no leaves.
func eachLeaf(
	object json.RawMessage, levels, keys []string, f func([]string, json.RawMessage),
) error {
	if len(levels) == 0 {
		f(keys, object)
		return nil
	}
	path := "models"
	for _, key := range keys {
		path += "/" + short(key)
	}
	return eachMember(object, path, func(name string, below json.RawMessage) error {
		if name != levels[0] {
			return nil
		}
		return eachMember(below, path, func(key string, value json.RawMessage) error {
			return eachLeaf(value, levels[1:], slices.Concat(keys, []string{key}), f)
		})
	})
}

// topOf returns the members of the file, which has to have the version and the models.
func topOf(data []byte) (top map[string]json.RawMessage, err error) {
	const hint = "\nhint: check that this is the master_database.json of the 2025 original"
	if err := json.Unmarshal(data, &top); err != nil || top == nil {
		return nil, fmt.Errorf("the file does not contain an object%s", hint)
	}
	switch version := string(top["version"]); {
	case version == "":
		return nil, fmt.Errorf("the file has no version, want %q%s", Version, hint)
	case version != `"`+Version+`"`:
		return nil, fmt.Errorf("unsupported version %s, want %q", short(version), Version)
	case top["models"] == nil:
		return nil, fmt.Errorf("the file has no models%s", hint)
	}
	return top, nil
}

// text returns the content of a JSON text, and "" for other values.
func text(value json.RawMessage) (s string) {
	if json.Unmarshal(value, &s) != nil {
		return ""
	}
	return s
}

// blockOverlaps makes all leaves of a cell unusable if there are several, because it is unknown
// whether they share tests.
func (d *Database) blockOverlaps() {
	type cell struct {
		model, variant, difficulty, taskType string
		reliability                          float64
	}
	leaves := make(map[cell][]*Aggregate)
	for i := range d.Aggregates {
		a := &d.Aggregates[i]
		c := cell{a.Model, a.Variant, a.Difficulty, a.TaskType, a.Reliability}
		leaves[c] = append(leaves[c], a)
	}
	for c, same := range leaves {
		for _, a := range same {
			if len(same) > 1 && c.reliability > 0 {
				a.block("the file has several leaves of this cell")
			}
		}
	}
}

// block makes a leaf unusable and adds a reason.
func (a *Aggregate) block(reason string) {
	a.Usable = false
	if a.Reason != "" {
		reason = a.Reason + "; " + reason
	}
	a.Reason = reason
}
