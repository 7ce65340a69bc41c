// Package publish writes results for the collections in which others gather results of many evaluations:
// Every Eval Ever (https://github.com/evaleval/every_eval_ever), and the evaluation results on the Hugging
// Face Hub (https://huggingface.co/docs/hub/eval-results).
//
// It defines how our figures and records map to theirs. Each figure is a measure of package report, and none
// is computed here. A fault is in no score and no row. What is not known about a model is left out, or
// unknown. It does not select attempts, open files or know the store.
package publish

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/report"
)

// An Experiment is what all results of an experiment share.
type Experiment struct {
	Name, World string
	// Library is the name of the tasks' library, and Digest that of its content. Builtin libraries are those of
	// Assay.
	Library, Digest string
	Builtin         bool
	// Cluster is the unit that intervals count as independent.
	Cluster string
	// Snapshot names the state of the store, and Where the conditions that selected trials.
	Snapshot string
	Where    []string
	Program  string // the version of the program that exports
}

// A Model names who is evaluated.
type Model struct {
	// Name is the model's name in reports. Base is the name of the model that answers: without the label of a
	// level, and behind an agent that of the agent's model.
	Name, Base string
	// Agent is the name of the foreign agent, or empty.
	Agent string
	// Programs has the files of the agent's program with their digests, by run.
	Programs map[assay.RunID]map[string]string
	plan.PublicName
}

// id returns the model's identity in public collections, DEVELOPER/NAME if the developer is known.
func (m *Model) id() string {
	id := cmp.Or(m.Hub, m.Base)
	if m.Developer != "" && !strings.Contains(id, "/") {
		id = m.Developer + "/" + id
	}
	return id
}

// answers returns the name of the model that answers, with the label of its level.
func (m *Model) answers() string {
	if m.Agent != "" {
		return m.Base
	}
	return m.Name
}

// developer returns the developer in the model's identity, or unknown.
func (m *Model) developer() string {
	developer, _, known := strings.Cut(m.id(), "/")
	if !known {
		return unknown
	}
	return developer
}

const unknown = "unknown"

// Results are the results of a model in an experiment.
type Results struct {
	experiment Experiment
	model      Model
	rows       []report.GridRow // those with an outcome
	all        []report.GridRow

	content hash.Hash // of the attempts
	setting assay.Setting
	facts   map[string]map[string]bool // of the attempts, by their names
	latest  time.Time                  // when the last outcome was reached
	samples detail
}

// detail describes the file with the samples.
type detail struct {
	rows int
	sum  string
}

// New returns the results of a model, without its attempts. Rows are those of [report.Analysis.Rows], also of
// other models.
func New(x Experiment, m Model, rows []report.GridRow) *Results {
	r := &Results{experiment: x, model: m, content: sha256.New(), facts: make(map[string]map[string]bool)}
	for _, row := range rows {
		if row.Model != m.Name {
			continue
		}
		r.all = append(r.all, row)
		if row.Get(report.Full).Known {
			r.rows = append(r.rows, row)
		}
	}
	return r
}

// Empty reports whether the model has no outcome.
func (r *Results) Empty() bool { return len(r.rows) == 0 }

// Unknown reports whether nobody says who made the model.
func (r *Results) Unknown() bool { return r.model.developer() == unknown }

// Add notes an attempt of the model. All attempts have to be added before anything is written.
func (r *Results) Add(a *assay.Attempt) error {
	text, err := export.JSON(*a)
	if err != nil {
		return err
	}
	r.content.Write(append(text, '\n'))
	if !a.Settles() {
		return nil
	}
	r.setting = a.Setting // trials of a model in an experiment have the same one
	if a.FinishedAt.After(r.latest) {
		r.latest = a.FinishedAt.UTC()
	}
	provider, _, _ := strings.Cut(a.Lane, "/")
	for name, values := range map[string][]string{
		"provider": {provider}, "program": {a.Program}, "templates": {a.Templates},
		"score_version": {a.ScoreVersion}, "sandbox": {string(a.Sandbox)},
		"served_model": a.Served(), "deviations": assay.Names(a.Deviations),
	} {
		for _, v := range values {
			r.note(name, v)
		}
	}
	for file, sum := range r.model.Programs[a.Run] {
		r.note(programFile+file, sum)
	}
	return nil
}

// programFile begins the names of facts about files of an agent's program.
const programFile = "program "

func (r *Results) note(fact, value string) {
	if value == "" {
		return
	}
	if r.facts[fact] == nil {
		r.facts[fact] = make(map[string]bool)
	}
	r.facts[fact][value] = true
}

// fact returns the different values of a fact, or "" without one.
func (r *Results) fact(name string) string {
	return strings.Join(slices.Sorted(maps.Keys(r.facts[name])), ", ")
}

// digest identifies the attempts and the conditions that selected them, whatever else is in the store.
func (r *Results) digest() string {
	return digest(append([]string{hex.EncodeToString(r.content.Sum(nil))}, r.experiment.Where...)...)
}

func digest(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return hex.EncodeToString(sum[:])
}

// count adds up a count of all rows.
func (r *Results) count(m *report.Measure) (n int) {
	for _, row := range r.all {
		n += row.Int(m)
	}
	return n
}

// condition names the condition of a row, in the order of the factors of reports.
func condition(c assay.Cell) string {
	parts := []string{c.Variant, c.Severity, c.Difficulty, "r" + assay.FormatReliability(c.Reliability), c.Faults}
	if c.Interface != "" {
		parts = append(parts, "interface-"+c.Interface)
	}
	if c.Phrasing != "" {
		parts = append(parts, "phrasing-"+c.Phrasing)
	}
	parts = slices.DeleteFunc(parts, func(p string) bool { return p == "" })
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(" /,:", r) {
			return '-'
		}
		return r
	}, strings.Join(parts, "."))
}

// settings lists the settings of the model's trials by their names, without those that are not set.
func (r *Results) settings() map[string]string {
	s := r.setting
	out := maps.Collect(s.Sampling.Fields())
	for name, value := range map[string]string{
		"protocol": s.Protocol, "tools": s.Tools, "several_calls": s.SeveralCalls, "loops": s.Loops,
		"user_model": s.UserModel, "agent_timeout": s.AgentTimeout, "model_faults": s.ModelFaults,
		"turn_limit": number(float64(s.Turns)), "call_limit": number(float64(s.Calls)),
		"token_limit": number(float64(s.Tokens)), "cost_limit": number(s.USD),
		"persistence": number(s.Persistence), "burst": number(s.Burst), "deviations": r.fact("deviations"),
	} {
		out[name] = value
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// number writes a number, and 0 as nothing.
func number(x float64) string {
	if x == 0 {
		return ""
	}
	return assay.FormatReliability(x)
}
