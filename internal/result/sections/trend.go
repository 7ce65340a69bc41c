package sections

import (
	"fmt"
	"time"

	"github.com/assay-eval/assay/internal/result/document"
	"github.com/assay-eval/assay/internal/result/report"
)

// A Revision is a model's row on the first screen, among those of the model's other revisions.
type Revision struct {
	report.Standing
	// Revision is what the experiment calls it, and Experiment is where it ran first, at Began.
	Revision, Experiment string
	Began                time.Time
	// Condition is that of the success, and Library the digest of its tasks.
	Condition, Library string
}

// Trend shows full success by revision, in the given order.
func Trend(id, title string, revisions []Revision) document.Section {
	var rows []object
	var names []string
	var dots []document.Dot
	table := tableOf([]document.Column{
		{Head: "first run", Names: true},
		{Head: "revision", Names: true},
		{Head: "experiment", Names: true},
		{Head: "full success"},
		{Head: "trials"},
		{Head: "condition", Names: true},
		{Head: "library", Names: true},
	}, revisions, func(r Revision) []document.Cell {
		return []document.Cell{
			text(r.Began.UTC().Format("2006-01-02 15:04")), text(r.Revision), text(r.Experiment),
			rateOf(r.Success, r.Ranked), whole(r.Ranked), text(r.Condition), text(shortHash(r.Library)),
		}
	})
	for i, r := range revisions {
		name := fmt.Sprintf("%d: %s", i+1, r.Revision)
		low, high := r.Success.Interval.Low, r.Success.Interval.High
		names = append(names, name)
		rows = append(rows, object{
			"model": name, "measure": "full success", "value": r.Success.Rate, "low": low, "high": high, "n": r.Ranked,
		})
		dots = append(dots, document.Dot{Label: name, Value: r.Success.Rate, Low: low, High: high})
	}
	picture := chart("profile", "Full success by revision, with 95 % intervals.", rows, object{
		"models": names, "measures": []string{"full success"}, "step": 24,
	})
	picture.Dots = dots
	return document.Section{ID: id, Title: title, Chart: picture, Table: table}
}
