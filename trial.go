package assay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
)

// TrialID identifies a trial by its content: 128 bits of SHA-256, in hex.
type TrialID string

// A Cell is one combination of an experiment's factors.
type Cell struct {
	Model   string `json:"model"`
	Variant string `json:"variant"`
	// Severity is empty where the variant has none.
	Severity   string `json:"severity"`
	Difficulty string `json:"difficulty"`
	TaskType   string `json:"task_type"`
	// Reliability is the probability, in [0,1], that a well-formed call works.
	Reliability float64 `json:"reliability"`
}

// A Setting holds what else decides a trial's outcome: the rules of its world
// and the way in which the model meets them.
type Setting struct {
	World    string   `json:"world"`
	Protocol string   `json:"protocol"`
	Tools    string   `json:"tools"`
	Turns    int      `json:"turn_limit"`
	Sampling Sampling `json:"sampling"`
}

// A Trial is one planned, seeded execution of a task in a cell.
type Trial struct {
	ID TrialID `json:"trial"`
	Cell
	Task TaskID `json:"task"`
	// TaskDigest is the [Task.Digest] of the task as planned.
	TaskDigest string `json:"task_digest"`
	Repeat     int    `json:"repeat"`
	// Seed decides all luck of the trial. It is below 2^53, so every reader
	// of JSON holds it exactly. It does not depend on the model, the variant
	// or the reliability: these are compared on the same luck.
	Seed uint64 `json:"seed"`
	Setting
}

// NewTrial returns the trial with its seed and its identity, which are
// functions of the arguments alone. Repeat counts from 1.
func NewTrial(cell Cell, task TaskRef, set Setting, seed int64, repeat int) Trial {
	t := Trial{
		Cell:       cell,
		Task:       task.ID,
		TaskDigest: task.Digest,
		Repeat:     repeat,
		Setting:    set,
	}
	t.Seed = trialSeed(seed, set.World, task.ID, repeat)
	t.ID = t.identity()
	return t
}

func trialSeed(seed int64, world string, task TaskID, repeat int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "assay seed 1\x00%d\x00%s\x00%s\x00%d", seed, world, task, repeat))
	return binary.BigEndian.Uint64(sum[:8]) >> 11
}

// identity hashes the fields that say what is measured. Whatever is added to
// it later has to leave the text of today's trials unchanged, or every store
// of every user would owe its trials again.
func (t Trial) identity() TrialID {
	b := fmt.Appendf(nil, "assay trial 1\nmodel %q\nvariant %q\nseverity %q\ndifficulty %q\ntype %q\nreliability %s\n",
		t.Model, t.Variant, t.Severity, t.Difficulty, t.TaskType, FormatReliability(t.Reliability))
	b = fmt.Appendf(b, "task %q %s\nrepeat %d\nseed %d\nworld %q\nprotocol %q\ntools %q\nturns %d\n",
		t.Task, t.TaskDigest, t.Repeat, t.Seed, t.World, t.Protocol, t.Tools, t.Turns)
	if t.Sampling != (Sampling{}) {
		s, err := json.Marshal(t.Sampling)
		if err != nil {
			panic("assay: sampling: " + err.Error())
		}
		b = append(append(append(b, "sampling "...), s...), '\n')
	}
	sum := sha256.Sum256(b)
	return TrialID(hex.EncodeToString(sum[:16]))
}

// FormatReliability is the one spelling of a reliability: the shortest decimal
// that reads back as the same number.
func FormatReliability(r float64) string { return strconv.FormatFloat(r, 'f', -1, 64) }
