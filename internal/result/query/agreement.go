package query

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/stat"
	"github.com/assay-eval/assay/internal/store"
)

// Labels are what people said of trials.
type Labels struct {
	name string
	text []byte
	of   []label
}

type label struct {
	line   int
	trial  string // or the beginning of its ID
	passed bool
}

// labelWords are the spellings of labels.
var labelWords = map[string]bool{
	"pass": true, "fail": false, "yes": true, "no": false, "true": true, "false": false, "1": true, "0": false,
}

// ReadLabels reads a CSV file with the columns trial and label. Others are ignored, and so are rows without a
// label.
func ReadLabels(path string) (*Labels, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	l := &Labels{name: path, text: text}
	wrong := func(line int, message, hint string) error {
		return &LabelsError{fmt.Sprintf("%s:%d: %s\nhint: %s", path, line, message, hint)}
	}
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(text, []byte("\uFEFF"))))
	r.FieldsPerRecord = -1
	head, err := r.Read()
	trial, verdict := slices.Index(head, "trial"), slices.Index(head, "label")
	if err != nil || trial < 0 || verdict < 0 {
		return nil, wrong(1, "the first line does not name the columns trial and label",
			"`assay judge draw 50 --output labels.csv` writes a file to fill in")
	}
	said := make(map[string]label)
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) && len(l.of) == 0 {
			return nil, wrong(1, "no trial has a label", "write pass or fail into the column label")
		}
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		line, _ := r.FieldPos(0)
		if err != nil {
			return nil, wrong(cmp.Or(line, 1), err.Error(), "write commas within quotation marks")
		}
		if len(row) <= max(trial, verdict) || strings.TrimSpace(row[verdict]) == "" {
			continue
		}
		passed, ok := labelWords[strings.ToLower(strings.TrimSpace(row[verdict]))]
		if !ok {
			return nil, wrong(line, fmt.Sprintf("%q is no label", row[verdict]), "write pass or fail")
		}
		one := label{line, strings.TrimSpace(row[trial]), passed}
		if before, twice := said[one.trial]; twice && before.passed != passed {
			return nil, wrong(line, fmt.Sprintf("trial %s has another label in line %d", one.trial, before.line),
				"let the people who label agree on one")
		} else if !twice {
			said[one.trial] = one
			l.of = append(l.of, one)
		}
	}
}

// A LabelsError reports a mistake in a file of labels.
type LabelsError struct{ message string }

func (e *LabelsError) Error() string { return e.message }

// find returns what people said of a trial, or nil. It notes that the label was used.
func (l *Labels) find(id assay.TrialID, used map[int]bool) *bool {
	for i := range l.of {
		if len(l.of[i].trial) >= 4 && strings.HasPrefix(string(id), l.of[i].trial) {
			used[i] = true
			return &l.of[i].passed
		}
	}
	return nil
}

// A JudgeAgreement says how well a judge agrees with people.
type JudgeAgreement struct {
	// Judge is a model, and Prompt the version of the words with which it was asked.
	Judge  string `json:"judge"`
	Prompt string `json:"prompt"`
	stat.Agreement
	ByTask []TaskAgreement `json:"by_task"`
	// Models has the rates of those whose trials it judged, each corrected by the labels of its own trials.
	Models []ModelAgreement `json:"by_model"`
}

// A TaskAgreement counts the labelled trials at a task, and those on which judge and people agree.
type TaskAgreement struct {
	Task     assay.TaskID `json:"task"`
	Labelled int          `json:"labelled"`
	Agreed   int          `json:"agreed"`
}

// A ModelAgreement is the agreement on the trials of a model.
type ModelAgreement struct {
	Model string `json:"model"`
	stat.Agreement
}

// judged yields the outcomes that a model has judged.
func judged(ctx context.Context, db *store.DB, where export.Where) func(func(*assay.Attempt, error) bool) {
	return func(yield func(*assay.Attempt, error) bool) {
		for a, err := range db.Attempts(ctx, store.Filter{OnlySettled: true}) {
			if err == nil && (a.Superseded || a.Verdict == "" || !where.Has(&a)) {
				continue
			}
			if !yield(&a, err) {
				return
			}
		}
	}
}

// Agreement compares the judges of a store with people, judge by judge, and returns the labels whose trials no
// model has judged.
func Agreement(ctx context.Context, db *store.DB, labels *Labels, where export.Where) (all []JudgeAgreement, unused []string, err error) {
	type key struct{ judge, prompt string }
	type model struct {
		key
		name string
	}
	judgements, models := make(map[key][]stat.Judgement), make(map[model][]stat.Judgement)
	tasks := make(map[key]map[assay.TaskID]TaskAgreement)
	used := make(map[int]bool)
	for a, err := range judged(ctx, db, where) {
		if err != nil {
			return nil, nil, err
		}
		k := key{a.JudgedBy, a.JudgePrompt}
		j := stat.Judgement{Task: string(a.Task), Passed: a.Verdict == assay.Pass, Person: labels.find(a.ID, used)}
		judgements[k] = append(judgements[k], j)
		m := model{k, a.Model}
		models[m] = append(models[m], j)
		if j.Person == nil {
			continue
		}
		if tasks[k] == nil {
			tasks[k] = make(map[assay.TaskID]TaskAgreement)
		}
		t := tasks[k][a.Task]
		t.Task = a.Task
		if t.Labelled++; *j.Person == j.Passed {
			t.Agreed++
		}
		tasks[k][a.Task] = t
	}
	for i, l := range labels.of {
		if !used[i] {
			unused = append(unused, l.trial)
		}
	}
	const level = .95
	for k, js := range judgements {
		one := JudgeAgreement{Judge: k.judge, Prompt: k.prompt, Agreement: stat.Agree(js, level), ByTask: []TaskAgreement{}}
		for _, id := range slices.Sorted(maps.Keys(tasks[k])) {
			one.ByTask = append(one.ByTask, tasks[k][id])
		}
		for m, js := range models {
			if m.key == k {
				one.Models = append(one.Models, ModelAgreement{m.name, stat.Agree(js, level)})
			}
		}
		slices.SortFunc(one.Models, func(a, b ModelAgreement) int { return cmp.Compare(a.Model, b.Model) })
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b JudgeAgreement) int {
		return cmp.Or(cmp.Compare(a.Judge, b.Judge), cmp.Compare(a.Prompt, b.Prompt))
	})
	return all, unused, nil
}

// Keep stores that a judge was compared with people, so that reports no longer warn of it.
func (a *JudgeAgreement) Keep(ctx context.Context, db *store.DB, labels *Labels, i store.Import) error {
	body, err := json.Marshal(store.Comparison{
		Judge: a.Judge, Prompt: a.Prompt, Labels: a.Labelled, Agreed: a.PassPass + a.FailFail,
	})
	if err != nil {
		return err
	}
	sum := sha256.Sum256(slices.Concat(labels.text, []byte("\x00"), body))
	i.Kind, i.Name, i.SHA256, i.Body = store.JudgeAgreement, labels.name, hex.EncodeToString(sum[:]), body
	if err := db.Import(ctx, i); !errors.Is(err, store.ErrImported) {
		return err
	}
	return nil
}

// Draw returns trials for people to label, at random: half of those that judges passed, and half of those that
// they failed, as far as there are enough. The same seed draws the same of the same trials.
func Draw(ctx context.Context, db *store.DB, where export.Where, n int, seed uint64) ([]assay.Attempt, error) {
	var passed, failed []assay.Attempt
	for a, err := range judged(ctx, db, where) {
		switch {
		case err != nil:
			return nil, err
		case a.Verdict == assay.Pass:
			passed = append(passed, *a)
		default:
			failed = append(failed, *a)
		}
	}
	r := rand.New(rand.NewPCG(seed, 0))
	shuffle := func(all []assay.Attempt) {
		r.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	}
	shuffle(passed)
	shuffle(failed)
	half := min(len(failed), max(n/2, n-len(passed)))
	drawn := slices.Concat(failed[:half], passed[:min(len(passed), n-half)])
	shuffle(drawn) // so that their order does not tell
	return drawn, nil
}
