package report

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
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

// A Look is one of several at the data of a gate while they grow. Pass and Fail are the levels of
// the tests at this look; see [stat.Spend].
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
	fail := stat.Split(stat.FailLevel, fractions)
	looks := make([]Look, n)
	for i := range looks {
		looks[i] = Look{Number: i + 1, Of: n, Pass: pass[i], Fail: fail[i]}
	}
	return looks
}

// The questions that a verdict can answer.
const (
	These   = "these"   // the tasks that were tried, which are all that matter
	Similar = "similar" // more tasks like these
)

// Questions lists the questions that a verdict can answer.
var Questions = []string{These, Similar}

// A Suite is the library of an experiment.
type Suite struct {
	Own   bool // the user's, not the built-in one
	Tasks int
}

// maxOwn is the number of tasks up to which a library is taken to be all that its owner wants to
// know about. Whoever has more has usually drawn them from something larger.
const maxOwn = 50

// Question returns the default question of a verdict about tasks of the suite.
func (s Suite) Question() string {
	if s.Own && s.Tasks <= maxOwn {
		return These
	}
	return Similar
}

// Terms are the terms on which a gate decides about a candidate.
type Terms struct {
	// Tasks is one of [Questions]. It was Chosen, or else it is the usual one.
	Tasks  string
	Chosen bool
	Margin float64 // share of 1
	Look   Look
	Demands
}

// A Gate decides whether a candidate, side B, may replace a baseline, side A, and whether it meets
// [Demands]. Differences are B minus A, in shares of 1.
type Gate struct {
	Verdict Verdict `json:"verdict"`
	// Reason is why there is no verdict although the tests have one. It is empty otherwise.
	Reason string `json:"reason,omitempty"`
	// Tasks names the answer that decides, and Chosen whether the user did so.
	Tasks  string `json:"tasks"`
	Chosen bool   `json:"tasks_chosen"`
	// These and Similar are nil without a baseline, as is Comparison.
	These     *Answer       `json:"these,omitempty"`
	Similar   *Answer       `json:"similar,omitempty"`
	Look      Look          `json:"look"`
	AtLeast   *RateDemand   `json:"at_least,omitempty"`
	Always    []TaskDemand  `json:"always,omitempty"`
	Faults    []FaultDemand `json:"faults,omitempty"`
	Candidate Side          `json:"candidate"`
	// Power predicts the verdict on more data like these; see [Gate.AddPower].
	Power *stat.GatePower `json:"power,omitempty"`
	// Changed lists the tasks with other rates than before, the largest loss first.
	Changed []Change `json:"changed_tasks,omitempty"`
	*Comparison

	rule stat.GateRule
}

// An Answer is the verdict of a comparison with a baseline.
type Answer struct {
	Verdict Verdict             `json:"verdict"`
	Test    stat.Noninferiority `json:"test"`
	// Least is the smallest loss that so many tasks, sequences or pairs can rule out, and Needed how
	// many of them rule out the margin, if nothing is lost. Both are 0 if there are enough.
	Least  float64 `json:"least_loss,omitempty"`
	Needed int     `json:"units_needed,omitempty"`
	// CannotLose is true if the baseline succeeds too rarely to lose the margin. Then there is no
	// pass.
	CannotLose bool `json:"baseline_cannot_lose,omitempty"`
}

// answer judges a test at a look.
func (l Look) answer(n stat.Noninferiority) *Answer {
	a := &Answer{Verdict: Inconclusive, Test: n, CannotLose: !n.CanLose()}
	switch {
	case n.Passes(l.Pass):
		a.Verdict = Pass
	case n.Fails(l.Fail):
		a.Verdict = Fail
	}
	if least := n.Least(l.Pass); a.Verdict == Inconclusive && least > n.Margin {
		a.Least, a.Needed = least, stat.UnitsNeeded(n.Margin, l.Pass)
	}
	return a
}

// Rule returns the rule of the answer that decides.
func (t Terms) Rule() stat.GateRule {
	return stat.GateRule{
		These: t.Tasks == These, Margin: t.Margin, Pass: t.Look.Pass, Fail: t.Look.Fail,
	}
}

// Answer returns the answer that decides, or nil without a baseline.
func (g *Gate) Answer() *Answer {
	if g.Tasks == These {
		return g.These
	}
	return g.Similar
}

// MaxPending is the largest share of pending trials at which there is a verdict. The pending
// trials may be the slowest ones, so they are not a sample.
const MaxPending = .05

// Incomplete returns the reason why there is no verdict about a side, or "" if enough of its trials
// have an outcome.
func (s Side) Incomplete() string {
	if float64(s.Pending) <= MaxPending*float64(s.Planned) {
		return ""
	}
	return fmt.Sprintf("%d of the %d planned trials of %s have no outcome yet", s.Pending, s.Planned,
		s.Name)
}

// Incomplete returns the reason why there is no verdict about a comparison, or "".
func (c *Comparison) Incomplete() string { return cmp.Or(c.B.Incomplete(), c.A.Incomplete()) }

// Gate tests the candidate of a comparison, side B, against a margin and the demands; see also
// [Alone]. It returns [ErrNoTask].
func (c *Comparison) Gate(t Terms) (*Gate, error) {
	g := &Gate{Tasks: t.Tasks, Chosen: t.Chosen, Look: t.Look, Candidate: c.B, Reason: c.Incomplete()}
	if c.Whole.Tasks > 0 {
		g.Comparison = c
		g.These = t.Look.answer(c.pairs.These(t.Margin))
		g.Similar = t.Look.answer(c.pairs.Similar(t.Margin))
		g.Changed = c.changes()
		if t.Look.Number < t.Look.Of && c.untried > 0 {
			g.These.Verdict = Inconclusive // they are not yet all of these tasks
		}
	}
	g.rule = t.Rule()
	return g, g.judge(t, c.candidate)
}

// powerDraws is how many gates are simulated to predict a verdict or for a size of a plan.
const powerDraws = 500

// AddPower fills in Power, by simulation, unless nothing can be lost.
func (g *Gate) AddPower() {
	if a := g.Answer(); a != nil && !a.CannotLose {
		g.Power = new(g.pairs.Design().Power(g.rule, powerDraws))
	}
}

// Alone returns a comparison without a baseline, for [Comparison.Gate] with demands. It returns the
// errors of the attempts and [ErrNoTrials].
func Alone(name string, attempts iter.Seq2[assay.Attempt, error]) (*Comparison, error) {
	side, all, err := gather(name, attempts)
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s: %w", name, ErrNoTrials)
	}
	return &Comparison{B: side, candidate: all}, err
}

// judge decides: the verdict is the worst of the answer and the demands. A task that has failed
// although it must not is a failure whatever is still pending.
func (g *Gate) judge(t Terms, candidate []settled) (err error) {
	last := t.Look.Number == t.Look.Of
	if t.AtLeast > 0 && last {
		g.AtLeast = t.rate(g.Tasks, candidate)
	}
	if g.Always, err = t.tasks(candidate); err != nil && last {
		return err // an early look may not have every task
	}
	if last {
		if g.Faults, err = t.caused(); err != nil {
			return err
		}
	}
	verdicts := []Verdict{Pass}
	if a := g.Answer(); a != nil {
		verdicts = append(verdicts, a.Verdict)
	}
	if g.AtLeast != nil {
		verdicts = append(verdicts, g.AtLeast.Verdict)
	}
	for _, d := range g.Faults {
		verdicts = append(verdicts, d.Verdict)
	}
	switch {
	case g.Reason != "":
		verdicts = []Verdict{Inconclusive}
	case !last && !t.none(): // they are about all of the trials
		verdicts = append(verdicts, Inconclusive)
	}
	for _, d := range g.Always {
		verdicts = append(verdicts, d.Verdict)
	}
	g.Verdict = worst(verdicts)
	return nil
}

func worst(all []Verdict) Verdict {
	for _, v := range []Verdict{Fail, Inconclusive} {
		if slices.Contains(all, v) {
			return v
		}
	}
	return Pass
}

// The differences between the sides at which a gate refuses to compare them unless allowed.
const (
	Prompts = "prompts" // templates of prompts
	Judges  = "judges"  // rules of verdicts
	Worlds  = "worlds"
	Tasks   = "tasks"   // texts of tasks with the same name
	Retries = "retries" // outcomes of trials that were chosen by an earlier outcome
)

// Unlikenesses lists the differences that a gate can be asked to allow.
var Unlikenesses = []string{Prompts, Judges, Worlds, Tasks, Retries}

// ErrUnlike means that two sides differ in something that makes a verdict meaningless, or that a side
// lacks first outcomes.
var ErrUnlike = errors.New("there can be no verdict")

// CheckAlike returns an [ErrUnlike] if the sides have different prompts, judges, worlds or tasks
// that are not allowed to differ, or if a side lacks the first outcomes of trials, which may have
// been chosen by them. Without a baseline, only the candidate can lack something.
func (c *Comparison) CheckAlike(allowed []string) error {
	var wrong, names []string
	check := func(name, text string, differ bool) {
		if differ && !slices.Contains(allowed, name) {
			wrong, names = append(wrong, text), append(names, name)
		}
	}
	differ := func(name, what string, a, b []string) {
		check(name, fmt.Sprintf("different %s: %s has %s, and %s has %s", what,
			c.A.Name, cmp.Or(strings.Join(a, ", "), "none"), c.B.Name, cmp.Or(strings.Join(b, ", "), "none")),
			!slices.Equal(a, b))
	}
	if c.baseline != nil {
		differ(Prompts, "templates of prompts", c.A.Prompts, c.B.Prompts)
		differ(Judges, "rules of verdicts", c.A.Judges, c.B.Judges)
		differ(Judges, "models that judge", c.A.Juries, c.B.Juries)
		differ(Worlds, "worlds", c.A.Levels["world"], c.B.Levels["world"])
		check(Tasks, fmt.Sprintf("%d tasks with the same name and different texts", c.Unlike),
			c.Unlike > 0)
	}
	var hints []string
	if len(wrong) > 0 {
		hints = append(hints, "run both sides with one version of Assay and one library")
	}
	unlike := len(wrong)
	for _, s := range []Side{c.A, c.B} {
		check(Retries, fmt.Sprintf("%s lacks the first outcomes of %s, which were worked on again",
			s.Name, assay.Counted(s.Late, "trial")), s.Late > 0)
	}
	if len(wrong) > unlike {
		hints = append(hints, "name a side that has the first outcomes, such as the experiment")
	}
	if len(wrong) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s\nhint: %s, or add --allow %s and read the verdict with that in mind",
		ErrUnlike, strings.Join(wrong, "; "), strings.Join(hints, ", "),
		strings.Join(slices.Compact(names), ","))
}
