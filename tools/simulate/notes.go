package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
)

// The library of tasks that a model judges: look a note up, and say what it says. It has so many, and
// the first extras are those that experiments with it may ask for.
const (
	notes        = 40
	lastForNotes = 2
	judgeName    = sim.Judge
)

const (
	notesTools = `file: tools.star
tools:
  - name: get_note
    description: Look up a note.
    parameters:
      number: {type: integer}
`
	notesCode = `def get_note(state, number):
    return {"note": number}
`
)

// writeNotes writes the library's files. Every third rubric asks for what nobody says.
func writeNotes(dir string) error {
	var tasks strings.Builder
	tasks.WriteString("name: notes\ntools: tools.yaml\njudge: {model: " + judgeName + "}\ntasks:\n")
	for n := range notes {
		says := "completed"
		if n%3 == 0 {
			says = "nobody says so"
		}
		fmt.Fprintf(&tasks, "  - id: note-%d\n    type: note\n    prompt: Look up note %d.\n    inputs: {number: %d}\n"+
			"    judge: {rubric: 'The last words say \"%s\".'}\n    plan: [{tool: get_note, arguments: {number: %d}}]\n",
			n, n, n, says, n)
	}
	var err error
	for name, text := range map[string]string{"tasks.yaml": tasks.String(), "tools.yaml": notesTools, "tools.star": notesCode} {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	return err
}

// openNotes opens a copy of the library, whose files are not needed afterwards.
func openNotes() (*library.Library, error) {
	dir, err := os.MkdirTemp("", "notes")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := writeNotes(dir); err != nil {
		return nil, err
	}
	return library.OpenNamed(context.Background(), filepath.Join(dir, "tasks.yaml"))
}
