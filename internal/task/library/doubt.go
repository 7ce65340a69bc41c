package library

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// doubts finds doubtful parts of the kept tasks of an import, although each of them could run.
type doubts struct {
	catalog *assay.Catalog
	// wordings are the different descriptions, in the order of the file, and place has their
	// indexes by digest.
	wordings []sharedWording
	place    map[[16]byte]int
	// solvable is the option of that name, and known has its answers by required tools.
	solvable func(catalog *assay.Catalog, required []string) bool
	known    map[string]bool
}

// A sharedWording is a description, and two of its tasks with their required tools.
type sharedWording struct {
	first, second, other string // labels of tasks; other requires other tools than first
	tasks                int
	required, others     []string // the tools of first and other
}

func newDoubts(im *importer) *doubts {
	return &doubts{
		catalog: im.catalog, place: make(map[[16]byte]int),
		solvable: im.opts.Solvable, known: make(map[string]bool),
	}
}

// add records a kept task.
func (d *doubts) add(t *assay.Task) {
	sum := sha256.Sum256([]byte(t.Description))
	key := [16]byte(sum[:])
	i, known := d.place[key]
	if !known {
		d.place[key] = len(d.wordings)
		d.wordings = append(d.wordings,
			sharedWording{first: string(t.ID), tasks: 1, required: t.Required})
		return
	}
	w := &d.wordings[i]
	if w.tasks++; w.tasks == 2 {
		w.second = string(t.ID)
	}
	if w.other == "" && !slices.Equal(t.Required, w.required) {
		w.other, w.others = string(t.ID), t.Required
	}
}

// report adds the findings about descriptions that several tasks have.
func (d *doubts) report(r *Report) {
	for i := range d.wordings {
		w := &d.wordings[i]
		if w.tasks > 1 {
			r.addTasks(RepeatedDescription, w.tasks, w.first, func() string {
				return w.second + " has the same description"
			})
		}
		if w.other != "" {
			r.addTasks(SeveralTruths, w.tasks, w.first, func() string {
				return fmt.Sprintf("requires %s, but %s requires %s",
					strings.Join(w.required, ", "), w.other, strings.Join(w.others, ", "))
			})
		}
	}
}

// solves reports whether some policy can fully solve a task.
func (d *doubts) solves(t *assay.Task) bool {
	if d.solvable == nil {
		return true
	}
	key := strings.Join(t.Required, " ")
	possible, known := d.known[key]
	if !known {
		possible = d.solvable(d.catalog, t.Required)
		d.known[key] = possible
	}
	return possible
}

// contradiction returns how other fields of a task contradict its difficulty_level, or "".
func contradiction(level string, fields map[string]json.RawMessage) string {
	for _, name := range []string{"difficulty", "complexity"} {
		var other string
		if json.Unmarshal(fields[name], &other) == nil && level != "" && other != level &&
			slices.Contains(difficulties, other) {
			return fmt.Sprintf("difficulty_level is %s, but %s is %s; difficulty_level is used",
				level, name, other)
		}
	}
	return ""
}
