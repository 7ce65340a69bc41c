package assay

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// TrialID identifies a trial by its content: 128 bits of SHA-256, in hex.
type TrialID string

// A Cell is one combination of an experiment's factors.
type Cell struct {
	Model   string `json:"model"`
	Variant string `json:"variant"`
	// Severity is empty unless the variant has a flaw.
	Severity   string `json:"severity"`
	Difficulty string `json:"difficulty"`
	TaskType   string `json:"task_type"`
	// Reliability is the probability in [0,1] that a well-formed call works.
	Reliability float64 `json:"reliability"`
	// Faults is the mix of the faults of tools, as spelled by [FaultMix.String]. If it is empty,
	// all are [FaultBefore].
	Faults string `json:"fault_mix"`
	// Interface is one of [Interfaces]. It is empty for the tools' own.
	Interface string `json:"interface"`
	// Phrasing names the words in which the task is put. It is empty for [Plain].
	Phrasing string `json:"phrasing"`
}

// A Setting holds the other conditions of a trial: the rules of its world, and how the model
// meets them.
type Setting struct {
	World    string `json:"world"`
	Protocol string `json:"protocol"`
	Tools    string `json:"tools"`
	Turns    int    `json:"turn_limit"`
	// Calls limits the calls of tools in an episode, alone or with others in one reply. 0 means
	// no limit.
	Calls    int      `json:"call_limit"`
	Sampling Sampling `json:"sampling"`
	// Tokens and USD limit an episode's tokens and dollars. 0 means no limit.
	Tokens int     `json:"token_limit"`
	USD    float64 `json:"cost_limit"`
	// SeveralCalls defines the treatment of the calls after the first in a reply. If it is empty,
	// they are executed in order; see also [RefuseSeveral].
	SeveralCalls string `json:"several_calls"`
	// Persistence and Burst, in [0,1), make random failures last and cluster; docs/worlds.md
	// has the formula. 0 turns them off.
	Persistence float64 `json:"persistence"`
	Burst       float64 `json:"burst"`
	// Loops are the loop rules, as spelled by [LoopRules.String]. If it is empty, the world's
	// own rules apply.
	Loops string `json:"loops"`
	// AgentModel is the model that serves a foreign agent. It is empty unless the cell's model is
	// one. AgentTimeout is the time that the agent may take itself, as in "10m0s".
	AgentModel   string `json:"agent_model"`
	AgentTimeout string `json:"agent_timeout"`
	// UserModel is the model that speaks as the user of an environment. It is empty unless the
	// experiment names one.
	UserModel string `json:"user_model"`
	// AsksConfidence means that the model is asked, after the end of the episode, how likely it has
	// succeeded.
	AsksConfidence bool `json:"asks_confidence"`
	// ModelFaults are the rates of the planted faults of a foreign agent's model, as spelled by
	// [ModelFaultRates.String].
	ModelFaults string `json:"model_faults"`
}

// RefuseSeveral is a value of [Setting.SeveralCalls]: all calls but the first are refused.
const RefuseSeveral = "refuse"

// A Trial is one planned, seeded execution of a task in a cell.
type Trial struct {
	ID TrialID `json:"trial"`
	Cell
	Task TaskID `json:"task"`
	// TaskDigest identifies the task as planned: by its [Task.Digest], in the words of the phrasing,
	// and, if its library has tools other than the built-in ones, by those tools.
	TaskDigest string `json:"task_digest"`
	Repeat     int    `json:"repeat"`
	// Replay counts the earlier trials that had the same luck. What a model draws itself is new: see
	// [Trial.ModelSeed].
	Replay int `json:"replay"`
	// Seed decides all luck in the trial. It is below 2^53, so that every JSON reader
	// represents it exactly. It does not depend on the model, the variant, the reliability,
	// the mix of faults or the interface, so that these are compared with the same luck.
	Seed uint64 `json:"seed"`
	Setting
	Fork
}

// A Fork says where a trial leaves the attempt whose beginning it shares. The zero value is that of a
// trial with a beginning of its own.
type Fork struct {
	// Of is that attempt and the number of a call, from 1, as in "0123456789abcdef0123456789abcdef/1:7".
	// The reply with the call is the last one that both share.
	Of string `json:"fork_of"`
	// Fault is the kind of fault that the call met there, and Spared means that it meets none here.
	Fault  ToolFault `json:"fork_fault"`
	Spared bool      `json:"fork_spared"`
}

// A ForkPoint is a call that met a fault.
type ForkPoint struct {
	Trial   TrialID   `json:"trial"`
	Attempt int       `json:"attempt"`
	Call    int       `json:"call"` // from 1
	Fault   ToolFault `json:"fault"`
	// Step is the first step of the plan that the call was right for, from 1, of Steps. It is 0 if it was
	// right for none.
	Step  int `json:"step,omitempty"`
	Steps int `json:"steps,omitempty"`
}

func (p ForkPoint) String() string { return fmt.Sprintf("%s/%d:%d", p.Trial, p.Attempt, p.Call) }

// Point returns where the trial leaves which attempt.
func (f Fork) Point() (p ForkPoint, err error) {
	p.Fault = f.Fault
	trial, place, _ := strings.Cut(f.Of, "/")
	p.Trial = TrialID(trial)
	if _, err = fmt.Sscanf(place, "%d:%d", &p.Attempt, &p.Call); err == nil && p.String() != f.Of {
		err = fmt.Errorf("its place is %s", p)
	}
	if err != nil {
		err = fmt.Errorf("fork of %q: %w", f.Of, err)
	}
	return p, err
}

// SparedCall returns the number of the call, from 1, that meets no fault whatever luck says, or 0.
func (f Fork) SparedCall() int {
	if p, err := f.Point(); f.Spared && err == nil {
		return p.Call
	}
	return 0
}

// Forked returns the n-th trial, from 1, that begins as an attempt at t did until a call, which meets its
// fault again or is spared it. What the model draws itself is new, and the same for both.
func (t Trial) Forked(at ForkPoint, spared bool, n int) Trial {
	t.Fork = Fork{Of: at.String(), Fault: at.Fault, Spared: spared}
	return t.Replayed(t.Replay + n)
}

// NewTrial returns the trial with its seed and its ID, which depend on the arguments alone.
// Repeats are counted from 1.
func NewTrial(cell Cell, task TaskRef, set Setting, seed int64, repeat int) Trial {
	t := Trial{
		Cell:       cell,
		Task:       task.ID,
		TaskDigest: task.Digest,
		Repeat:     repeat,
		Setting:    set,
	}
	if t.Reliability == 0 {
		t.Reliability = 0 // and not -0, which a store would not give back
	}
	t.Seed = trialSeed(seed, set.World, task.ID, repeat)
	t.ID = t.identity()
	return t
}

// Replayed returns the n-th trial that plays the same once more, luck included. The 0th is the trial
// itself.
func (t Trial) Replayed(n int) Trial {
	t.Replay = n
	t.ID = t.identity()
	return t
}

// ModelSeed is what simulated models draw their own randomness from: the seed, unless the trial is a
// replay.
func (t *Trial) ModelSeed() uint64 {
	if t.Replay == 0 {
		return t.Seed
	}
	return hash53(fmt.Appendf(nil, "assay replay 1\x00%d\x00%d", t.Seed, t.Replay))
}

// CheckID returns an error if the trial's ID does not match its content.
func (t *Trial) CheckID() error {
	if is := t.identity(); is != t.ID {
		return fmt.Errorf("its content makes it trial %s", is)
	}
	return nil
}

func trialSeed(seed int64, world string, task TaskID, repeat int) uint64 {
	b := append(make([]byte, 0, 128), "assay seed 1\x00"...)
	b = append(strconv.AppendInt(b, seed, 10), 0)
	b = append(append(b, world...), 0)
	b = append(append(b, task...), 0)
	b = strconv.AppendInt(b, int64(repeat), 10)
	return hash53(b)
}

func hash53(b []byte) uint64 {
	sum := sha256.Sum256(b)
	return binary.BigEndian.Uint64(sum[:8]) >> 11
}

// identity hashes the fields that define the trial, each on a separate line. A field that is added
// later must leave the text of today's trials unchanged. Otherwise every user's store would run its
// trials again. It does not use fmt, because a large plan calls it a million times.
func (t Trial) identity() TrialID {
	b := append(make([]byte, 0, 512), "assay trial 1"...)
	text := func(name, value string) {
		b = append(append(append(b, '\n'), name...), ' ')
		b = strconv.AppendQuote(b, value)
	}
	number := func(name string, value uint64) {
		b = append(append(append(b, '\n'), name...), ' ')
		b = strconv.AppendUint(b, value, 10)
	}
	text("model", t.Model)
	text("variant", t.Variant)
	text("severity", t.Severity)
	text("difficulty", t.Difficulty)
	text("type", t.TaskType)
	b = append(append(b, "\nreliability "...), FormatReliability(t.Reliability)...)
	text("task", string(t.Task))
	b = append(append(b, ' '), t.TaskDigest...)
	b = append(b, "\nrepeat "...)
	b = strconv.AppendInt(b, int64(t.Repeat), 10)
	number("seed", t.Seed)
	text("world", t.World)
	text("protocol", t.Protocol)
	text("tools", t.Tools)
	b = append(b, "\nturns "...)
	b = strconv.AppendInt(b, int64(t.Turns), 10)
	b = append(b, '\n')
	if t.Sampling != (Sampling{}) {
		s, err := json.Marshal(t.Sampling)
		if err != nil {
			panic("assay: sampling: " + err.Error())
		}
		b = append(append(append(b, "sampling "...), s...), '\n')
	}
	if t.Replay > 0 {
		b = append(strconv.AppendInt(append(b, "replay "...), int64(t.Replay), 10), '\n')
	}
	if t.Fork != (Fork{}) {
		b = fmt.Appendf(b, "fork %q %q %t\n", t.Of, t.Fault, t.Spared)
	}
	if t.Calls > 0 {
		b = append(strconv.AppendInt(append(b, "calls "...), int64(t.Calls), 10), '\n')
	}
	if t.Tokens > 0 {
		b = append(strconv.AppendInt(append(b, "tokens "...), int64(t.Tokens), 10), '\n')
	}
	if t.USD > 0 {
		b = append(strconv.AppendFloat(append(b, "usd "...), t.USD, 'f', -1, 64), '\n')
	}
	for _, f := range []struct{ name, value string }{
		{"several", t.SeveralCalls},
		{"loops", t.Loops},
		{"faults", t.Faults},
		{"served by", t.AgentModel},
		{"agent timeout", t.AgentTimeout},
		{"user", t.UserModel},
		{"model faults", t.ModelFaults},
		{"interface", t.Interface},
		{"phrasing", t.Phrasing},
	} {
		if f.value != "" {
			b = append(strconv.AppendQuote(append(append(b, f.name...), ' '), f.value), '\n')
		}
	}
	if t.AsksConfidence {
		b = append(b, "confidence ask\n"...)
	}
	for _, f := range []struct {
		name  string
		value float64
	}{{"persistence", t.Persistence}, {"burst", t.Burst}} {
		if f.value > 0 {
			b = append(append(b, f.name...), ' ')
			b = append(strconv.AppendFloat(b, f.value, 'f', -1, 64), '\n')
		}
	}
	sum := sha256.Sum256(b)
	return TrialID(hex.EncodeToString(sum[:16]))
}

// FormatReliability spells a reliability as the shortest decimal that parses to the same number.
func FormatReliability(r float64) string { return strconv.FormatFloat(r, 'f', -1, 64) }
