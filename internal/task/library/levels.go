package library

import (
	"context"
	"encoding/json"
	"hash/fnv"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// Own reports whether users wrote the tools of the library: as a script, or behind a server.
func (l *Library) Own() bool { return l.catalog.Own() }

// Levels are the types of a library's tasks, the variants and phrasings that users wrote for them, and
// the models that judge them, by name.
type Levels struct {
	Types, Variants, Phrasings []string
	Judges                     []JudgeUse
}

// A JudgeUse counts the tasks that a model judges, and those of them without another condition.
type JudgeUse struct {
	Model string `json:"model"`
	Tasks int    `json:"tasks"`
	Alone int    `json:"alone"`
}

// Levels returns what the tasks of the library have.
func (l *Library) Levels(ctx context.Context) (all Levels, err error) {
	known, words, judges := make(map[string]bool), make(map[string]bool), make(map[string]JudgeUse)
	err = each(ctx, l.db, func(scan func(...any) error) error {
		var typ string
		var body []byte
		if err := scan(&typ, &body); err != nil {
			return err
		}
		if !slices.Contains(all.Types, typ) {
			all.Types = append(all.Types, typ)
		}
		var t struct {
			Variants  map[string]assay.Reference
			Phrasings map[string]string
			Judge     *assay.Judge
		}
		if err := json.Unmarshal(body, &t); err != nil {
			return err
		}
		for name := range t.Variants {
			known[name] = true
		}
		for name := range t.Phrasings {
			words[name] = true
		}
		if t.Judge != nil && t.Judge.Model != "" {
			u := judges[t.Judge.Model]
			u.Model, u.Tasks = t.Judge.Model, u.Tasks+1
			if t.Judge.Alone() {
				u.Alone++
			}
			judges[u.Model] = u
		}
		return nil
	}, `SELECT type, body FROM tasks ORDER BY type, id`)
	for _, model := range slices.Sorted(maps.Keys(judges)) {
		all.Judges = append(all.Judges, judges[model])
	}
	all.Variants, all.Phrasings = slices.Sorted(maps.Keys(known)), slices.Sorted(maps.Keys(words))
	return all, err
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

// Described returns the task with a description, at the difficulty that has it. The description may be in
// the words of any phrasing; the task has its plain one. It returns false if no task has it. If several
// tasks do, it returns one of them, always the same.
func (l *Library) Described(description string) (t assay.Task, ok bool) {
	text := strings.TrimSpace(description)
	row, plain := l.described()[textHash(text)]
	if !plain {
		if row, ok = l.rephrased()[textHash(text)]; !ok {
			return t, false
		}
	}
	var body []byte
	err := l.db.QueryRow(`SELECT body FROM tasks WHERE rowid = ?`, row).Scan(&body)
	if err != nil || json.Unmarshal(body, &t) != nil {
		return assay.Task{}, false
	}
	if plain && strings.TrimSpace(t.Description) != text {
		return assay.Task{}, false
	}
	t.Phrasings = nil
	return t, true
}

// readDescribed takes 16 bytes for each task at each difficulty. It leaves out what it cannot read,
// which whoever draws the task reports.
func (l *Library) readDescribed() map[uint64]int64 {
	rows := make(map[uint64]int64)
	_ = each(context.Background(), l.db, func(scan func(...any) error) error {
		var row int64
		var body []byte
		if err := scan(&row, &body); err != nil {
			return err
		}
		var t struct {
			Description string `json:"description"`
		}
		hash := uint64(0)
		if json.Unmarshal(body, &t) == nil {
			hash = textHash(strings.TrimSpace(t.Description))
		}
		if _, known := rows[hash]; !known {
			rows[hash] = row
		}
		return nil
	}, `SELECT rowid, body FROM tasks ORDER BY rowid`)
	return rows
}

// readRephrased is like readDescribed for the other phrasings of each task.
func (l *Library) readRephrased() map[uint64]int64 {
	rows := make(map[uint64]int64)
	_ = each(context.Background(), l.db, func(scan func(...any) error) error {
		var row int64
		var body []byte
		if err := scan(&row, &body); err != nil {
			return err
		}
		var t assay.Task
		if json.Unmarshal(body, &t) != nil {
			return nil
		}
		for _, text := range l.allTexts(&t) {
			if hash := textHash(strings.TrimSpace(text)); rows[hash] == 0 {
				rows[hash] = row
			}
		}
		return nil
	}, `SELECT rowid, body FROM tasks ORDER BY id, rowid`) // all texts of a task are made at once
	return rows
}

func textHash(text string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(text))
	return h.Sum64()
}
