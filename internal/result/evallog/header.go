package evallog

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// scorer is the name of our verdicts in Inspect.
const scorer = "assay"

// byTask are the options of a standard error that is clustered by a field of the samples' metadata.
var byTask = doc{{"cluster", "task"}}

// formatVersion is Inspect's version of the log format.
const formatVersion = 2

// A doc is a JSON object of Inspect.
type doc = export.Object

// newConfig returns Inspect's GenerateConfig.
func newConfig(s assay.Sampling) doc {
	effort := s.Effort
	// Inspect refuses logs with other efforts. The attempt has them all.
	if !slices.Contains([]string{"minimal", "low", "medium", "high"}, effort) {
		effort = ""
	}
	return doc{
		{"temperature", export.OrOmit(s.Temperature)},
		{"top_p", export.OrOmit(s.TopP)},
		{"max_tokens", export.OrOmit(s.MaxTokens)},
		{"seed", export.OrOmit(s.Seed)},
		{"reasoning_effort", export.OrOmit(effort)},
		{"reasoning_tokens", export.OrOmit(s.Thinking)},
		{"extra_body", export.OrOmit(json.RawMessage(s.Extra))},
		{"extra_headers", export.OrOmit(json.RawMessage(s.Headers))},
	}
}

// toolChoice returns Inspect's word for a tool choice.
func toolChoice(s assay.Sampling) string {
	if s.ToolChoice == "required" {
		return "any"
	}
	return cmp.Or(s.ToolChoice, "auto")
}

// evalError is Inspect's EvalError and EvalRetryError. The viewer shows the
// traceback, so it contains the message.
type evalError struct {
	Message   string `json:"message"`
	Traceback string `json:"traceback"`
	ANSI      string `json:"traceback_ansi"`
}

// newError returns nil for an empty text.
func newError(text string) *evalError {
	if text == "" {
		return nil
	}
	return &evalError{text, text, text}
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

// start returns the part of the header that Inspect writes before there are samples.
func (l *openLog) start() doc {
	return doc{
		{"version", formatVersion},
		{"eval", l.spec()},
		{"plan", doc{
			{"name", "plan"},
			{"steps", []doc{{{"solver", "assay"}, {"params", doc{}}}}},
			{"config", newConfig(l.sampling())},
		}},
	}
}

// header returns Inspect's EvalLog without samples and reductions.
func (l *openLog) header() doc {
	scores, usage := []doc{}, doc{}
	if n, metrics := l.metrics(); n > 0 {
		scores = []doc{{
			{"name", scorer},
			{"scorer", scorer},
			{"scored_samples", n},
			{"unscored_samples", 0},
			{"params", doc{}},
			{"metrics", metrics},
		}}
	}
	if l.usage != (modelUsage{}) {
		usage = doc{{l.meta.Model, l.usage}}
	}
	status, failure := l.status()
	start := l.start()
	return slices.Concat(doc{start[0], {"status", status}}, start[1:], doc{
		{"results", doc{
			{"total_samples", max(l.total, l.meta.Planned)},
			{"completed_samples", l.scored},
			{"scores", scores},
		}},
		{"stats", doc{
			{"started_at", stamp(l.begun)},
			{"completed_at", stamp(l.ended)},
			{"model_usage", usage},
			{"role_usage", doc{}},
		}},
		{"error", export.OrOmit(failure)},
	})
}

// status returns success if every planned trial has a sample, even one with an
// error. It returns error if no trial has a score.
func (l *openLog) status() (string, *evalError) {
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

func (l *openLog) spec() doc {
	m := &l.meta
	version, rules := "0", l.rules.list()
	if len(rules) > 0 {
		version = fmt.Sprint(rules)
	}
	if len(rules) == 1 {
		version = rules[0]
	}
	packages := doc{{"assay", export.OrOmit(m.Program)}}
	return doc{
		{"eval_id", m.evalID()},
		{"run_id", digest("run", m.Experiment, m.Snapshot)},
		{"created", stamp(m.Created.Truncate(time.Second))},
		{"task", m.Experiment},
		{"task_id", m.taskID()},
		{"task_version", version},
		{"task_attribs", doc{}},
		{"task_args", doc{}},
		{"dataset", doc{
			{"name", export.OrOmit(m.Experiment)},
			{"samples", len(l.ids)},
			{"sample_ids", append([]string{}, l.ids...)},
			{"shuffled", false},
		}},
		{"model", m.Model},
		{"model_generate_config", newConfig(l.sampling())},
		{"model_args", doc{}},
		{"config", doc{{"epochs", l.epochs}, {"fail_on_error", false}}},
		{"packages", packages},
		// Further facts about all attempts. Lists have one element per different value.
		{"metadata", doc{
			{"experiment", m.Experiment},
			{"snapshot", m.Snapshot},
			{"filter", export.OrOmit(m.Filter)},
			{"planned", export.OrOmit(m.Planned)},
			{"runs", l.runs.list()},
			{"programs", l.programs.list()},
			{"worlds", l.worlds.list()},
			{"templates", l.templates.list()},
			{"score_versions", rules},
		}},
		{"scorers", []doc{{
			{"name", scorer},
			{"options", doc{}},
			{"metrics", []doc{
				{{"name", "inspect_ai/accuracy"}, {"options", doc{}}},
				{{"name", "inspect_ai/stderr"}, {"options", byTask}},
			}},
		}}},
	}
}

// reductions returns the values of the items that have one, as Inspect's EvalSampleReductions.
func (l *openLog) reductions() []doc {
	samples := []doc{}
	for it := range l.scoredItems() {
		samples = append(samples, doc{{"value", it.mean()}, {"sample_id", it.id}})
	}
	return []doc{{{"scorer", scorer}, {"samples", samples}}}
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
