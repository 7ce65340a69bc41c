package query

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/agent/episode"
	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/score"
)

// A Repeat compares a published experiment with the same one as this program plans it.
type Repeat struct {
	Experiment string `json:"experiment"`
	Trials     int    `json:"trials"`
	// Same is true if the trials are the original's: their tasks, conditions, limits and luck are equal.
	Same bool `json:"same_trials"`
	// Known is false if the report is older than digests of trials, so that Same follows from the rest.
	Known       bool         `json:"trials_known"`
	Differences []Difference `json:"differences"`
}

// A Difference is a setting that is not the original's.
type Difference struct {
	Setting   string `json:"setting"`
	Published string `json:"published"`
	Here      string `json:"here"`
	// Means says what follows from it.
	Means string `json:"means"`
}

// meanings say what follows if a setting differs.
var meanings = map[string]string{
	"world":     "tools, luck and verdicts follow other rules",
	"library":   "tasks may differ",
	"tools":     "tools have other descriptions or do other things",
	"limits":    "episodes may end earlier or later",
	"templates": "models are told the same in other words",
	"rules":     "outcomes may be judged differently; `assay store rescore` judges old and new ones alike",
	"trials":    "these are other trials: compare rates, not single trials",
	"planned":   "there are more or fewer trials",
}

// Repeated compares what was published with the plan of its experiment here.
func Repeated(p *plan.Published, j *job.Job) Repeat {
	r := Repeat{Experiment: j.Experiment.Name, Trials: len(j.IDs()), Same: true, Differences: []Difference{}}
	differ := func(setting, published, here string) {
		if published != "" && published != here {
			r.Differences = append(r.Differences, Difference{
				setting, published, here, cmp.Or(meanings[setting], "trials have other conditions"),
			})
		}
	}
	for _, f := range Settings(j) {
		switch f.Name {
		case "templates":
			differ("templates", others(p.Templates, episode.TemplatesHash), episode.TemplatesHash)
		case "trials":
			r.Known = p.Settings["trials"] != ""
			r.Same = r.Known && p.Settings["trials"] == f.Value
			differ("trials", p.Settings["trials"], f.Value)
		default:
			differ(f.Name, p.Settings[f.Name], f.Value)
		}
	}
	rules := score.Version(j.Experiment.World)
	differ("rules", others(p.Rules, rules), rules)
	if p.Planned > 0 {
		differ("planned", fmt.Sprint(p.Planned), fmt.Sprint(r.Trials))
	}
	if !r.Known {
		r.Same = len(r.Differences) == 0
	}
	return r
}

// others returns the names in a list unless they are only the one here.
func others(all []string, here string) string {
	known := slices.DeleteFunc(slices.Clone(all), func(s string) bool { return s == "" })
	if len(known) == 1 && known[0] == here {
		return ""
	}
	return strings.Join(known, ", ")
}
