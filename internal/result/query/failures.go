package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/score"
)

// Failures groups the outcomes of a selection that are not full successes by their cause.
type Failures struct {
	Experiment string `json:"experiment"`
	// Done counts the outcomes, and Failed the ones that are not full successes. Unexplained counts
	// the ones without a transcript, or whose task is not in the store.
	Done        int `json:"done"`
	Failed      int `json:"failed"`
	Unexplained int `json:"unexplained"`
	// Models lists the models with failures, by name.
	Models []string `json:"models"`
	// Causes are sorted by the number of failures, the largest first.
	Causes []FailureCause `json:"causes"`
	// Faults counts the attempts without an outcome.
	Faults report.Faulted `json:"faults"`
}

// A FailureCause counts the failures with one cause.
type FailureCause struct {
	Cause  assay.Cause        `json:"cause"`
	Failed int                `json:"failed"`
	Models map[string]int     `json:"models"`
	Stops  map[assay.Stop]int `json:"stopped"`
	// Example is a failure of the model and the condition that have most of them.
	Example FailureExample `json:"example"`
}

// A FailureExample is one failure with its reason.
type FailureExample struct {
	assay.Cell
	Trial assay.TrialID `json:"trial"`
	score.Reason
}

// FindFailures judges the selected attempts again and finds the causes of their failures. It calls
// show with the number of attempts that were read.
func FindFailures(ctx context.Context, s *Selection, show func(done int)) (*Failures, error) {
	latest := make(map[assay.TrialID]*FailureExample) // nil for a success
	f := &Failures{Experiment: s.Experiment, Models: []string{}, Causes: []FailureCause{}}
	last, err := latestRun(ctx, s.db, s.Experiment)
	if err != nil {
		return nil, err
	}
	var faults report.FaultTally
	libraries := NewLibraries(s.db)
	read := 0
	whole := *s // causes need the texts
	whole.veil = nil
	for stored, err := range whole.Transcripts(ctx) {
		if err != nil {
			return nil, errors.Join(err, libraries.Close())
		}
		show(read)
		read++
		a := &stored.Attempt
		shown := s.veil.attempt(*a)
		faults.Add(&shown, last)
		if !a.Settles() {
			continue
		}
		latest[a.ID] = nil // a later round counts instead of an earlier one
		if a.Level == assay.FullSuccess {
			continue
		}
		example := &FailureExample{Cell: a.Cell, Trial: a.ID}
		task, judge, err := libraries.Task(ctx, a)
		if err == nil && stored.Transcript != nil {
			example.Reason = judge.Explain(&a.Trial, task, stored.Transcript).Reason
			if s.Hides(a) {
				example.Because, example.Right = hide(example.Because), hide(example.Right)
			}
		}
		latest[a.ID] = example
	}
	f.count(latest)
	f.Faults = faults.Sum()
	return f, libraries.Close()
}

// latestRun returns the latest run of an experiment, or "".
func latestRun(ctx context.Context, db *store.DB, experiment string) (assay.RunID, error) {
	runs, err := db.Runs(ctx, experiment)
	if err != nil || len(runs) == 0 {
		return "", err
	}
	return runs[len(runs)-1].ID, nil
}

func (f *Failures) count(latest map[assay.TrialID]*FailureExample) {
	by := make(map[assay.Cause][]*FailureExample)
	for _, e := range latest {
		f.Done++
		if e == nil {
			continue
		}
		f.Failed++
		if e.Cause == "" { // or today's rules call it a success
			f.Unexplained++
			continue
		}
		by[e.Cause] = append(by[e.Cause], e)
		if !slices.Contains(f.Models, e.Model) {
			f.Models = append(f.Models, e.Model)
		}
	}
	slices.Sort(f.Models)
	for cause, all := range by {
		c := FailureCause{
			Cause: cause, Failed: len(all), Models: make(map[string]int),
			Stops: make(map[assay.Stop]int), Example: typical(all),
		}
		for _, e := range all {
			c.Models[e.Model]++
			c.Stops[e.Stop]++
		}
		f.Causes = append(f.Causes, c)
	}
	slices.SortFunc(f.Causes, func(a, b FailureCause) int {
		return cmp.Or(cmp.Compare(b.Failed, a.Failed), cmp.Compare(a.Cause, b.Cause))
	})
}

// typical returns a failure of the most frequent cell. Of several it returns the one whose ID comes
// first, because the order of attempts is up to chance.
func typical(all []*FailureExample) FailureExample {
	cells := make(map[assay.Cell]int)
	for _, e := range all {
		cells[e.Cell]++
	}
	return *slices.MinFunc(all, func(a, b *FailureExample) int {
		return cmp.Or(cmp.Compare(cells[b.Cell], cells[a.Cell]), cmp.Compare(a.Trial, b.Trial))
	})
}

// maxModels is the number of models that have a column of their own.
const maxModels = 4

// maxCauses is the number of causes with an example.
const maxCauses = 5

// Text returns the causes as text: a table, and an example of each. Show is the command that shows
// a trial. If all is false, it has at most 40 lines or so.
func (f *Failures) Text(show string, all bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d of %d outcomes are not full successes\n", f.Failed, f.Done)
	if len(f.Causes) > 0 {
		f.causes(&b, show, all)
	}
	if f.Unexplained > 0 {
		fmt.Fprintf(&b, "\n%d failures have no cause: their transcripts are not in the store, or today's rules"+
			" judge them otherwise\n", f.Unexplained)
	}
	if text := f.Faults.Text(); text != "" {
		fmt.Fprintf(&b, "\n%s\n", text)
	}
	return b.String()
}

// causes writes the table of causes and an example of each.
func (f *Failures) causes(b *strings.Builder, show string, all bool) {
	models := f.Models
	if len(models) > maxModels && !all {
		models = nil
	}
	t := document.NewTextTable(slices.Concat(
		[]string{"first thing that went wrong", "failures", "share"}, models, []string{"ended by"})...)
	for _, c := range f.Causes {
		row := []string{
			c.Cause.Text(), fmt.Sprint(c.Failed), fmt.Sprintf("%.0f %%", 100*float64(c.Failed)/float64(f.Failed)),
		}
		for _, m := range models {
			row = append(row, fmt.Sprint(c.Models[m]))
		}
		t.Row(append(row, stopsText(c.Stops))...)
	}
	fmt.Fprintf(b, "\n%s\n", t)
	for i, c := range f.Causes {
		if i == maxCauses && !all {
			fmt.Fprintf(b, "\nand %d rarer causes: --details shows them\n", len(f.Causes)-i)
			break
		}
		e := &c.Example
		fmt.Fprintf(b, "\n%s: %s %.8s\n  %s\n  %s\n  right: %s\n",
			c.Cause.Text(), show, e.Trial, cellText(e), e.Because, e.Right)
	}
}

// stopsText names the most frequent end, and its share if there are others.
func stopsText(stops map[assay.Stop]int) string {
	var best assay.Stop
	sum := 0
	for s, n := range stops {
		sum += n
		if n > stops[best] || n == stops[best] && s < best {
			best = s
		}
	}
	if stops[best] == sum {
		return best.Text()
	}
	return fmt.Sprintf("%s (%.0f %%)", best.Text(), 100*float64(stops[best])/float64(sum))
}

// cellText names the condition of a failure and the turn.
func cellText(e *FailureExample) string {
	parts := []string{e.Model, e.Variant, e.Severity, e.Difficulty, e.TaskType}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	text := strings.Join(parts, ", ") + ", reliability " + assay.FormatReliability(e.Reliability)
	if e.Faults != "" {
		text += " with " + e.Faults
	}
	if e.Phrasing != "" {
		text += ", " + e.Phrasing
	}
	if e.Turn > 0 {
		text += fmt.Sprintf(", turn %d", e.Turn)
	}
	return text
}
