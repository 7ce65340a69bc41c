package report

import "github.com/assay-eval/assay"

// A Flip is a pair of trials that are equal except for the compared factors. Exactly one of
// them fully succeeded.
type Flip struct {
	Condition string        `json:"condition"`
	Task      assay.TaskID  `json:"task"`
	A         assay.TrialID `json:"a"`
	B         assay.TrialID `json:"b"`
	LevelA    assay.Level   `json:"level_a"`
	LevelB    assay.Level   `json:"level_b"`
	CauseA    assay.Cause   `json:"cause_a"`
	CauseB    assay.Cause   `json:"cause_b"`
	// AttemptA and AttemptB are the numbers of attempts that a later outcome superseded, otherwise 0.
	AttemptA int `json:"attempt_a,omitempty"`
	AttemptB int `json:"attempt_b,omitempty"`
}

// maxFlips limits the flips that are listed.
const maxFlips = 1000

// flips counts the changes in pairs of trials.
func (c *Comparison) flips(condition string, x, y []*settled) {
	for i, a := range x {
		b := y[i]
		if a.id == b.id && a.run == b.run && a.round == b.round {
			c.Shared++
			continue
		}
		from, to := isFull(a.level), isFull(b.level)
		if from == to {
			continue
		}
		c.Better += int(to)
		c.Worse += int(from)
		if len(c.Flips) < maxFlips {
			c.Flips = append(c.Flips,
				Flip{
					condition, a.task, a.id, b.id, a.level, b.level, a.cause, b.cause, a.attempt, b.attempt,
				})
		}
	}
}
