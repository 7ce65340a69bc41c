package score

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Rule is one question that a verdict asked of an episode, and its answer.
type Rule struct {
	// Verdict is what the rule helps to decide: level or category, in pilot
	// also signs, executor, paper and batch; verdict for the last line.
	Verdict string `json:"verdict"`
	Rule    string `json:"rule"`
	Holds   bool   `json:"holds"`
	// Because gives the figures.
	Because string `json:"because"`
}

// A witness takes down the rules that a judge asks while it judges, so that
// there is no second account of them. A nil witness takes down nothing, and no
// reason is put into words for it.
type witness struct {
	verdict string // what is being decided
	rules   []Rule
}

// decide says which verdict the next rules are for.
func (w *witness) decide(verdict string) {
	if w != nil {
		w.verdict = verdict
	}
}

// ask returns whether the rule holds.
func (w *witness) ask(rule string, holds bool, because func() string) bool {
	if w != nil {
		w.rules = append(w.rules, Rule{w.verdict, rule, holds, because()})
	}
	return holds
}

// need asks for something without which there is no full success.
func (w *witness) need(rule string, holds bool, because func() string) bool {
	return w.ask(rule, holds, func() string {
		if holds {
			return because()
		}
		return because() + " → no full success"
	})
}

// remains returns a category that no further rule asks for.
func (w *witness) remains(category string) string {
	w.ask("none of these", true, func() string { return "what remains is " + category })
	return category
}

// covered tells how many of the required tools succeeded, and which did not.
func covered(o *assay.Outcome) string {
	n := len(o.RequiredTools)
	if n == 0 {
		return "the task requires none"
	}
	k := int(math.Round(o.Coverage * float64(n)))
	text := fmt.Sprintf("%d of %d", k, n)
	var never []string
	for _, t := range distinct(o.RequiredTools) {
		if !slices.Contains(o.ExecutedTools, t) {
			never = append(never, t)
		}
	}
	switch {
	case len(never) > 0:
		text += "; " + strings.Join(never, ", ") + " never did"
	case k < n:
		text += "; what is required twice counts once"
	}
	return text
}

// counted is a number of things in words.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

func made(tr *assay.Transcript) string {
	return counted(len(tr.Calls), "call") + " in " + counted(len(tr.Turns), "turn")
}

func endedBy(ended assay.Ended) string {
	if ended == "" {
		return "the episode has no end"
	}
	return "the episode ended by " + string(ended)
}
