package job

import (
	"cmp"
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/stat"
)

// Power is the smallest difference between two rows of a part's tables that a test at the 5 %
// level finds with 80 % power. It assumes rates around one half, where that difference is
// largest. Differences are shares of 1.
type Power struct {
	Part string `json:"part"`
	// Tasks, Sequences of tools, and Repeats describe the smallest row: the one with the fewest
	// tasks, and if there are several, with the fewest sequences. A row is a model in one variant,
	// severity, difficulty and reliability.
	Tasks     int `json:"tasks"`
	Sequences int `json:"sequences"`
	Repeats   int `json:"repeats"`
	// Cluster is the unit that the report will take for independent: [stat.ByTask] or
	// [stat.BySequence].
	Cluster string `json:"cluster"`
	// Detectable assumes that the two rows are independent, Paired that both find the
	// same tasks hard.
	Detectable float64 `json:"detectable"`
	Paired     float64 `json:"detectable_paired"`
	// Power and PairedPower have the shares of runs that find some differences.
	Power       stat.Power `json:"power"`
	PairedPower stat.Power `json:"power_paired"`
}

// RepeatCorrelation is the assumed correlation between two repeats of a task, and between two tasks
// of one cluster. The true value is unknown before a run.
const RepeatCorrelation = .5

func (j *Job) power(of sequences) (all []Power) {
	factors := j.Experiment.EachFactors()
	cluster := stat.Cluster(len(of.tasks), len(of.problems))
	for i, part := range j.Plan.Parts() {
		tasks, sizes := j.smallestRow(part, of)
		if tasks == 0 {
			continue
		}
		p := Power{
			Part: part.Name, Tasks: tasks, Sequences: len(sizes),
			Repeats: max(1, factors[i].Repeats), Cluster: cluster,
		}
		if cluster == stat.ByTask {
			sizes = slices.Repeat([]int{1}, p.Tasks)
		}
		p.Detectable = stat.Detectable(sizes, p.Repeats, RepeatCorrelation, 0)
		p.Paired = stat.Detectable(sizes, p.Repeats, RepeatCorrelation, RepeatCorrelation)
		p.Power = stat.PowerOf(sizes, p.Repeats, RepeatCorrelation, 0)
		p.PairedPower = stat.PowerOf(sizes, p.Repeats, RepeatCorrelation, RepeatCorrelation)
		all = append(all, p)
	}
	return all
}

// smallestRow returns the number of tasks in the smallest row of a part, and in each of its
// sequences.
func (j *Job) smallestRow(part plan.Part, of sequences) (tasks int, sizes []int) {
	rows := make(map[assay.Cell][]assay.TaskRef)
	for _, m := range part.Models {
		for cell, tasks := range j.Plan.Tasks(m) {
			if part.Has(cell) {
				cell.TaskType = ""
				rows[cell] = append(rows[cell], tasks...)
			}
		}
	}
	for _, row := range rows {
		its := of.sizes(row)
		if tasks == 0 || cmp.Or(cmp.Compare(len(row), tasks), cmp.Compare(len(its), len(sizes)),
			slices.Compare(sizes, its)) < 0 {
			tasks, sizes = len(row), its
		}
	}
	return tasks, sizes
}
