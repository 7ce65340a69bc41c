package evallog

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// sampleTally collects the figures of all samples.
type sampleTally struct {
	items map[string]*sampleItem
	ids   []string // of items, in order
	// total counts the trials written, and scored the trials with an outcome.
	total, scored int
	epochs        int
	usage         modelUsage
	begun, ended  time.Time
	fault         string // the latest fault
	// Values that occurred in attempts.
	worlds, templates, rules, programs, runs set
	samplings                                []assay.Sampling // at most two different ones
}

// set is a set of texts. list leaves out the empty text.
type set map[string]bool

func (s set) list() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(s)),
		func(text string) bool { return text == "" })
}

func newTally() sampleTally {
	return sampleTally{
		items: make(map[string]*sampleItem), epochs: 1,
		worlds: set{}, templates: set{}, rules: set{}, programs: set{}, runs: set{},
	}
}

// count adds an attempt, whether or not it becomes a sample.
func (t *sampleTally) count(a *assay.Attempt) {
	t.usage.add(newUsage(a.Spend))
	if !a.StartedAt.IsZero() && (t.begun.IsZero() || a.StartedAt.Before(t.begun)) {
		t.begun = a.StartedAt
	}
	if a.FinishedAt.After(t.ended) {
		t.ended = a.FinishedAt
	}
	if !a.Settles() {
		t.fault = faultText(a)
	}
	t.worlds[a.World] = true
	t.templates[a.Templates] = true
	t.rules[a.ScoreVersion] = true
	t.programs[a.Program] = true
	t.runs[string(a.Run)] = true
	same := func(s assay.Sampling) bool { return reflect.DeepEqual(s, a.Sampling) }
	if len(t.samplings) < 2 && !slices.ContainsFunc(t.samplings, same) {
		t.samplings = append(t.samplings, a.Sampling)
	}
}

// sampling returns the sampling parameters of all attempts, or no parameters if they differ,
// because Inspect has only one set per log.
func (t *sampleTally) sampling() assay.Sampling {
	if len(t.samplings) != 1 {
		return assay.Sampling{}
	}
	return t.samplings[0]
}

// item returns the item to which the attempt's trial belongs.
func (t *sampleTally) item(a *assay.Attempt) (*sampleItem, error) {
	id, err := itemID(a)
	if err != nil {
		return nil, err
	}
	it := t.items[id]
	if it == nil {
		it = &sampleItem{id: id, task: a.Task, of: t}
		t.items[id] = it
		t.ids = append(t.ids, id)
	}
	return it, nil
}

// A sampleItem is a sample in Inspect's sense: a task in a cell under a setting. Its
// trials are the epochs.
type sampleItem struct {
	id     string
	task   assay.TaskID
	of     *sampleTally
	epochs []int // epochs in use
	n      int   // number of outcomes
	value  float64
	full   int
}

// epoch returns the epoch for a repeat and marks it as used. It is the repeat's
// number, or the next free one if another trial of the item has that, for
// example because the experiment's seed changed.
func (it *sampleItem) epoch(repeat int) int {
	e := max(1, repeat)
	for slices.Contains(it.epochs, e) {
		e++
	}
	it.epochs = append(it.epochs, e)
	it.of.epochs = max(it.of.epochs, e)
	return e
}

func (it *sampleItem) score(l assay.Level) {
	it.n++
	it.value += values[l].number
	if l == assay.FullSuccess {
		it.full++
	}
}

// mean returns the item's value.
func (it *sampleItem) mean() float64 { return it.value / float64(it.n) }

// values maps our levels to Inspect's scores and to the numbers that its
// metrics use.
var values = map[assay.Level]struct {
	letter string
	number float64
}{
	assay.FullSuccess:    {"C", 1},
	assay.PartialSuccess: {"P", 0.5},
	assay.Failure:        {"I", 0},
}

// itemID returns the name of an attempt's item. It contains the task and the
// cell in readable form and a digest of everything that trials share if they
// differ only in model and repeat. The logs of two models therefore have the
// same names. It is safe in a path.
func itemID(a *assay.Attempt) (string, error) {
	cell := a.Cell
	cell.Model = ""
	text, err := json.Marshal(struct {
		assay.Cell
		Task   assay.TaskID
		Digest string
		assay.Setting
		// Fields that are newer than the names of items leave them as they are.
		AsksConfidence bool   `json:"asks_confidence,omitempty"`
		ModelFaults    string `json:"model_faults,omitempty"`
		Interface      string `json:"interface,omitempty"`
		Phrasing       string `json:"phrasing,omitempty"`
	}{cell, a.Task, a.TaskDigest, a.Setting, a.AsksConfidence, a.ModelFaults, a.Interface, a.Phrasing})
	if err != nil {
		return "", err
	}
	parts := []string{safe(string(a.Task))}
	for _, p := range []string{a.Difficulty, a.Variant, a.Severity} {
		if p != "" {
			parts = append(parts, safe(p))
		}
	}
	parts = append(parts, "r"+assay.FormatReliability(a.Reliability), digest(string(text))[:6])
	return strings.Join(parts, "."), nil
}

// safe replaces characters with a meaning in paths, URLs or shells.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9',
			r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, s)
}

// digest returns an identity of texts that is as long as Inspect's.
func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:11])
}

// metrics returns Inspect's metrics over the n items with a value: the mean,
// its standard error, and the share of full success.
func (t *sampleTally) metrics() (n int, all doc) {
	var sum, full float64
	for it := range t.scoredItems() {
		n++
		sum += it.mean()
		full += float64(it.full) / float64(it.n)
	}
	mean := sum / float64(n)
	metric := func(name string, value float64, params doc) [2]any {
		return [2]any{name, doc{{"name", name}, {"value", value}, {"params", params}}}
	}
	return n, doc{
		metric("accuracy", mean, doc{}),
		metric("full_success", full/float64(n), doc{}),
		metric("stderr", t.stderr(mean, n), byTask),
	}
}

// stderr returns the standard error of the mean of n items, clustered by task:
// a task's items in several cells are alike. It is Inspect's formula, which is the formula of
// Miller, "Adding Error Bars to Evals" (2024), appendix A, arXiv:2411.00640, with the usual
// correction for few clusters. It is 0 for a single task.
func (t *sampleTally) stderr(mean float64, n int) float64 {
	deviations := make(map[assay.TaskID]float64)
	var tasks []assay.TaskID // in order, because sums of floats depend on it
	for it := range t.scoredItems() {
		if _, ok := deviations[it.task]; !ok {
			tasks = append(tasks, it.task)
		}
		deviations[it.task] += it.mean() - mean
	}
	if len(tasks) < 2 {
		return 0
	}
	squares := 0.0
	for _, task := range tasks {
		squares += deviations[task] * deviations[task]
	}
	clusters := float64(len(tasks))
	return math.Sqrt(squares*clusters/(clusters-1)) / float64(n)
}

// scoredItems yields the items that have an outcome, in order.
func (t *sampleTally) scoredItems() iter.Seq[*sampleItem] {
	return func(yield func(*sampleItem) bool) {
		for _, id := range t.ids {
			if it := t.items[id]; it.n > 0 && !yield(it) {
				return
			}
		}
	}
}
