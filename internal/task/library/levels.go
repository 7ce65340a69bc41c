package library

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Own reports whether users wrote the tools of the library: as a script, or behind a server.
func (l *Library) Own() bool { return l.catalog.Own() }

// Levels returns the types of the library's tasks, and the variants that users wrote for them.
func (l *Library) Levels(ctx context.Context) (types, variants []string, err error) {
	known := make(map[string]bool)
	err = each(ctx, l.db, func(scan func(...any) error) error {
		var typ string
		var body []byte
		if err := scan(&typ, &body); err != nil {
			return err
		}
		if !slices.Contains(types, typ) {
			types = append(types, typ)
		}
		var t struct{ Variants map[string]assay.Reference }
		if err := json.Unmarshal(body, &t); err != nil {
			return err
		}
		for name := range t.Variants {
			known[name] = true
		}
		return nil
	}, `SELECT type, body FROM tasks ORDER BY type, id`)
	return types, slices.Sorted(maps.Keys(known)), err
}

// Any returns a task at any difficulty, or the first task if the ID is empty.
func (l *Library) Any(ctx context.Context, id assay.TaskID) (assay.Task, error) {
	difficulty := ""
	err := each(ctx, l.db, func(scan func(...any) error) error {
		return scan(&id, &difficulty)
	}, `SELECT id, difficulty FROM tasks WHERE id = ? OR ? = '' ORDER BY rowid LIMIT 1`,
		string(id), string(id))
	if err != nil {
		return assay.Task{}, err
	}
	return l.Task(ctx, id, difficulty)
}

// Answer returns the answer that the reference plan of the task with a description gives, or "" if
// no plan gives one. Tasks with the same description share their answers, because a conversation does
// not tell them apart.
func (l *Library) Answer(description string) string {
	return strings.Join(l.answers()[strings.TrimSpace(description)], "\n")
}

// readAnswers leaves out what it cannot read, which whoever draws the task reports.
func (l *Library) readAnswers() map[string][]string {
	answers := make(map[string][]string)
	if !l.Own() {
		return answers
	}
	tasks, _ := l.all(context.Background())
	for _, t := range tasks {
		text := strings.TrimSpace(t.Description)
		if r := t.Reference; r != nil && r.Answer != "" && !slices.Contains(answers[text], r.Answer) {
			answers[text] = append(answers[text], r.Answer)
		}
	}
	for _, all := range answers {
		slices.Sort(all)
	}
	return answers
}
