package evallog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/assay-eval/assay"
)

// scorer is the name of our verdicts in Inspect.
const scorer = "assay"

// byTask are the options of a standard error that is clustered by a field of the samples' metadata.
var byTask = object{"cluster": "task"}

// formatVersion is Inspect's version of the log format.
const formatVersion = 2

// object is a JSON object with unknown fields, usually an empty one.
type object map[string]any

// header is Inspect's EvalLog without samples and reductions.
type header struct {
	Version int         `json:"version"`
	Status  string      `json:"status"`
	Eval    evalSpec    `json:"eval"`
	Plan    evalPlan    `json:"plan"`
	Results evalResults `json:"results"`
	Stats   evalStats   `json:"stats"`
	Error   *evalError  `json:"error,omitempty"`
}

// start is the part of the header that Inspect writes before there are samples.
type start struct {
	Version int      `json:"version"`
	Eval    evalSpec `json:"eval"`
	Plan    evalPlan `json:"plan"`
}

type evalSpec struct {
	ID          string            `json:"eval_id"`
	Run         string            `json:"run_id"`
	Created     string            `json:"created"`
	Task        string            `json:"task"`
	TaskID      string            `json:"task_id"`
	TaskVersion string            `json:"task_version"`
	TaskAttribs object            `json:"task_attribs"`
	TaskArgs    object            `json:"task_args"`
	Dataset     evalDataset       `json:"dataset"`
	Model       string            `json:"model"`
	ModelConfig generateConfig    `json:"model_generate_config"`
	ModelArgs   object            `json:"model_args"`
	Config      evalConfig        `json:"config"`
	Packages    map[string]string `json:"packages"`
	Metadata    evalMetadata      `json:"metadata"`
	Scorers     []evalScorer      `json:"scorers"`
}

type evalDataset struct {
	Name     string   `json:"name,omitempty"`
	Samples  int      `json:"samples"`
	IDs      []string `json:"sample_ids"`
	Shuffled bool     `json:"shuffled"`
}

type evalConfig struct {
	Epochs      int  `json:"epochs"`
	FailOnError bool `json:"fail_on_error"`
}

// evalMetadata holds further facts about all attempts. Lists have one element
// per different value.
type evalMetadata struct {
	Experiment string   `json:"experiment"`
	Snapshot   string   `json:"snapshot"`
	Filter     any      `json:"filter,omitempty"`
	Planned    int      `json:"planned,omitempty"`
	Runs       []string `json:"runs"`
	Programs   []string `json:"programs"`
	Worlds     []string `json:"worlds"`
	Templates  []string `json:"templates"`
	Rules      []string `json:"score_versions"`
}

type evalScorer struct {
	Name    string       `json:"name"`
	Options object       `json:"options"`
	Metrics []metricName `json:"metrics"`
}

type metricName struct {
	Name    string `json:"name"`
	Options object `json:"options"`
}

type evalPlan struct {
	Name   string         `json:"name"`
	Steps  []evalStep     `json:"steps"`
	Config generateConfig `json:"config"`
}

// generateConfig is Inspect's GenerateConfig.
type generateConfig struct {
	Temperature *float64        `json:"temperature,omitempty"`
	TopP        *float64        `json:"top_p,omitempty"`
	MaxTokens   *int            `json:"max_tokens,omitempty"`
	Seed        *int64          `json:"seed,omitempty"`
	Effort      string          `json:"reasoning_effort,omitempty"`
	Thinking    *int            `json:"reasoning_tokens,omitempty"`
	Body        json.RawMessage `json:"extra_body,omitempty"`
	Headers     json.RawMessage `json:"extra_headers,omitempty"`
}

func newConfig(s assay.Sampling) generateConfig {
	c := generateConfig{
		Temperature: s.Temperature, TopP: s.TopP, MaxTokens: s.MaxTokens, Seed: s.Seed,
		Thinking: s.Thinking, Body: json.RawMessage(s.Extra), Headers: json.RawMessage(s.Headers),
	}
	// Inspect refuses logs with other efforts. The attempt has them all.
	if slices.Contains([]string{"minimal", "low", "medium", "high"}, s.Effort) {
		c.Effort = s.Effort
	}
	return c
}

// toolChoice returns Inspect's word for a tool choice.
func toolChoice(s assay.Sampling) string {
	if s.ToolChoice == "required" {
		return "any"
	}
	return cmp.Or(s.ToolChoice, "auto")
}

type evalStep struct {
	Solver string `json:"solver"`
	Params object `json:"params"`
}

type evalResults struct {
	Total     int         `json:"total_samples"`
	Completed int         `json:"completed_samples"`
	Scores    []evalScore `json:"scores"`
}

type evalScore struct {
	Name     string                `json:"name"`
	Scorer   string                `json:"scorer"`
	Scored   int                   `json:"scored_samples"`
	Unscored int                   `json:"unscored_samples"`
	Params   object                `json:"params"`
	Metrics  map[string]evalMetric `json:"metrics"`
}

type evalMetric struct {
	Name   string  `json:"name"`
	Value  float64 `json:"value"`
	Params object  `json:"params"`
}

type evalStats struct {
	Started   string                `json:"started_at"`
	Completed string                `json:"completed_at"`
	Usage     map[string]modelUsage `json:"model_usage"`
	RoleUsage object                `json:"role_usage"`
}

// evalError is Inspect's EvalError and EvalRetryError. The viewer shows the
// traceback, so it contains the message.
type evalError struct {
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	ANSI      string `json:"traceback_ansi"`
}

func newError(text string) *evalError { return &evalError{text, text, text} }

// reduction is Inspect's EvalSampleReductions.
type reduction struct {
	Scorer  string         `json:"scorer"`
	Samples []reducedScore `json:"samples"`
}

type reducedScore struct {
	Value  float64 `json:"value"`
	Sample string  `json:"sample_id"`
}

// taskID and the other identities of a log depend only on the results in it.
func (m *Meta) taskID() string { return digest("task", m.Experiment, m.Model) }

// evalID identifies the selection and the state of the store that it comes
// from.
func (m *Meta) evalID() string {
	identity := []string{"eval", m.Experiment, m.Model, m.Snapshot}
	if m.Filter != nil { // a different selection is a different evaluation
		identity = append(identity, fmt.Sprintf("%q", m.Filter))
	}
	return digest(identity...)
}

func (l *log) header() header {
	h := header{
		Version: formatVersion,
		Eval:    l.spec(),
		Plan: evalPlan{
			Name: "plan", Steps: []evalStep{{Solver: "assay", Params: object{}}},
			Config: newConfig(l.sampling()),
		},
		Results: evalResults{
			Total: max(l.total, l.meta.Planned), Completed: l.scored, Scores: []evalScore{},
		},
		Stats: evalStats{
			Started: stamp(l.begun), Completed: stamp(l.ended),
			Usage: map[string]modelUsage{}, RoleUsage: object{},
		},
	}
	h.Status, h.Error = l.status()
	if l.usage != (modelUsage{}) {
		h.Stats.Usage[l.meta.Model] = l.usage
	}
	if n, metrics := l.metrics(); n > 0 {
		h.Results.Scores = []evalScore{{
			Name: scorer, Scorer: scorer, Scored: n, Params: object{}, Metrics: metrics,
		}}
	}
	return h
}

// status returns success if every planned trial has a sample, even one with an
// error. It returns error if no trial has a score.
func (l *log) status() (string, *evalError) {
	switch {
	case l.total > 0 && l.scored == 0:
		// With a filter or pending trials, this does not mean that every trial
		// fails.
		which := "no trial of this log has an outcome; the latest fault is "
		if l.meta.Planned > 0 && l.total >= l.meta.Planned {
			which = "every trial ended in a fault, the latest in "
		}
		return "error", newError(which + l.fault)
	case l.total < l.meta.Planned:
		return "cancelled", nil
	}
	return "success", nil
}

func (l *log) spec() evalSpec {
	m := &l.meta
	packages := map[string]string{}
	if m.Program != "" {
		packages["assay"] = m.Program
	}
	version := "0"
	if rules := l.rules.list(); len(rules) > 0 {
		version = fmt.Sprint(rules)
		if len(rules) == 1 {
			version = rules[0]
		}
	}
	return evalSpec{
		ID:          m.evalID(),
		Run:         digest("run", m.Experiment, m.Snapshot),
		Created:     stamp(m.Created.Truncate(time.Second)),
		Task:        m.Experiment,
		TaskID:      m.taskID(),
		TaskVersion: version,
		TaskAttribs: object{}, TaskArgs: object{},
		Dataset: evalDataset{
			Name: m.Experiment, Samples: len(l.ids), IDs: append([]string{}, l.ids...),
		},
		Model: m.Model, ModelConfig: newConfig(l.sampling()), ModelArgs: object{},
		Config:   evalConfig{Epochs: l.epochs},
		Packages: packages,
		Metadata: evalMetadata{
			Experiment: m.Experiment, Snapshot: m.Snapshot, Filter: m.Filter, Planned: m.Planned,
			Runs: l.runs.list(), Programs: l.programs.list(), Worlds: l.worlds.list(),
			Templates: l.templates.list(), Rules: l.rules.list(),
		},
		Scorers: []evalScorer{{
			Name: scorer, Options: object{},
			Metrics: []metricName{
				{"inspect_ai/accuracy", object{}},
				{"inspect_ai/stderr", byTask},
			},
		}},
	}
}

// reductions returns the values of the items that have one.
func (l *log) reductions() []reduction {
	r := reduction{Scorer: scorer, Samples: []reducedScore{}}
	for it := range l.scoredItems() {
		r.Samples = append(r.Samples, reducedScore{it.mean(), it.id})
	}
	return []reduction{r}
}

// stamp formats a time as Inspect does, so that every version of Python can
// read it. The zero time gives "".
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	layout := "2006-01-02T15:04:05-07:00"
	if t.Nanosecond() != 0 {
		layout = "2006-01-02T15:04:05.000000-07:00"
	}
	return t.UTC().Format(layout)
}
