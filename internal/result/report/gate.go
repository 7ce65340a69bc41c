package report

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay/internal/result/stat"
)

// A Verdict is the answer of a gate.
type Verdict string

// The verdicts.
const (
	Pass         Verdict = "pass"         // the candidate is shown to be worse by less than the margin
	Fail         Verdict = "fail"         // the candidate is shown to be worse
	Inconclusive Verdict = "inconclusive" // neither is shown
)

// A Look is one of several at the data of a gate while they grow. Pass and Fail are the levels of the
// tests at this look; see [stat.Spend].
type Look struct {
	Number int     `json:"number"` // from 1
	Of     int     `json:"of"`
	Pass   float64 `json:"pass_level"`
	Fail   float64 `json:"fail_level"`
}

// Looks returns n looks at data that grow in equal steps.
func Looks(n int) []Look {
	fractions := make([]float64, n)
	for i := range fractions {
		fractions[i] = float64(i+1) / float64(n)
	}
	pass := stat.Spend(stat.PassLevel, fractions)
	fail := stat.Spend(stat.FailLevel, fractions)
	looks := make([]Look, n)
	for i := range looks {
		looks[i] = Look{Number: i + 1, Of: n, Pass: pass[i], Fail: fail[i]}
	}
	return looks
}

// A Gate decides whether a candidate, side B, may replace a baseline, side A. Differences are B
// minus A, in shares of 1.
type Gate struct {
	Verdict Verdict `json:"verdict"`
	// Reason is why there is no verdict although the test has one. It is empty otherwise.
	Reason string              `json:"reason,omitempty"`
	Test   stat.Noninferiority `json:"test"`
	Look   Look                `json:"look"`
	// Planned and Pending count the candidate's trials. They are 0 if it is not an experiment.
	Planned int `json:"planned"`
	Pending int `json:"pending"`
	*Comparison
}

// MostPending is the largest share of pending trials at which a gate has a verdict. What is pending
// may be what takes longest, so it is not a sample.
const MostPending = .05

// Gate tests the candidate of a comparison against a margin. The candidate is side B.
func (c *Comparison) Gate(margin float64, look Look, planned, pending int) *Gate {
	g := &Gate{
		Verdict: Inconclusive, Comparison: c, Look: look, Planned: planned, Pending: pending,
	}
	g.Test = stat.Noninferior(c.all.tasks, c.all.bySequence, margin)
	switch {
	case float64(pending) > MostPending*float64(planned):
		g.Reason = fmt.Sprintf("%d of the %d planned trials of %s have no outcome yet",
			pending, planned, c.B.Name)
	case g.Test.Passes(look.Pass):
		g.Verdict = Pass
	case g.Test.Fails(look.Fail):
		g.Verdict = Fail
	}
	return g
}

// What a gate refuses to compare unless it is asked to.
const (
	Prompts = "prompts" // templates of prompts
	Judges  = "judges"  // rules of verdicts
	Worlds  = "worlds"
	Tasks   = "tasks" // texts of tasks with the same name
)

// Unlikenesses lists what a gate can be asked to allow.
var Unlikenesses = []string{Prompts, Judges, Worlds, Tasks}

// ErrUnlike means that two sides differ in something that makes a verdict meaningless.
var ErrUnlike = errors.New("the sides cannot be compared as they are")

// CheckAlike returns an [ErrUnlike] if the sides have different prompts, judges, worlds or tasks
// that are not allowed to differ.
func (c *Comparison) CheckAlike(allowed []string) error {
	var wrong, names []string
	check := func(name, text string, differ bool) {
		if differ && !slices.Contains(allowed, name) {
			wrong, names = append(wrong, text), append(names, name)
		}
	}
	differ := func(name, what string, a, b []string) {
		check(name, fmt.Sprintf("different %s: %s has %s, and %s has %s", what,
			c.A.Name, strings.Join(a, ", "), c.B.Name, strings.Join(b, ", ")), !slices.Equal(a, b))
	}
	differ(Prompts, "templates of prompts", c.A.Prompts, c.B.Prompts)
	differ(Judges, "rules of verdicts", c.A.Judges, c.B.Judges)
	differ(Worlds, "worlds", c.A.Levels["world"], c.B.Levels["world"])
	check(Tasks, fmt.Sprintf("%d tasks with the same name and different texts", c.Unlike),
		c.Unlike > 0)
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s\nhint: run both sides with one version of Assay and one library, or "+
		"add --allow %s and read the verdict with that in mind",
		ErrUnlike, strings.Join(wrong, "; "), strings.Join(names, ","))
}
