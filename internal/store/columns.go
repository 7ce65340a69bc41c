package store

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A column is one field of an attempt or its trial, and the column that stores it. Saving,
// reading, verifying and copying attempts all go by the two tables below, so a new field
// takes one row here, a column in schema.sql, and a row in package export.
type column struct {
	name string
	// detail columns are left out by [DB.Verdicts].
	detail bool
	save   func(*assay.Attempt) (any, error)
	// load sets the field to a value as SQLite returns it.
	load func(*assay.Attempt, any, *interned) error
}

// trialFields are the columns of the table trials after its ID.
var trialFields = []column{
	text("model", func(a *assay.Attempt) *string { return &a.Model }),
	text("variant", func(a *assay.Attempt) *string { return &a.Variant }),
	text("severity", func(a *assay.Attempt) *string { return &a.Severity }),
	text("difficulty", func(a *assay.Attempt) *string { return &a.Difficulty }),
	text("task_type", func(a *assay.Attempt) *string { return &a.TaskType }),
	float("reliability", func(a *assay.Attempt) *float64 { return &a.Reliability }),
	text("task", func(a *assay.Attempt) *assay.TaskID { return &a.Task }),
	text("task_digest", func(a *assay.Attempt) *string { return &a.TaskDigest }),
	integer("repeat", func(a *assay.Attempt) *int { return &a.Repeat }),
	integer("seed", func(a *assay.Attempt) *uint64 { return &a.Seed }),
	text("world", func(a *assay.Attempt) *string { return &a.World }),
	text("protocol", func(a *assay.Attempt) *string { return &a.Protocol }),
	text("tools", func(a *assay.Attempt) *string { return &a.Tools }),
	integer("turn_limit", func(a *assay.Attempt) *int { return &a.Setting.Turns }),
	object("sampling", "{}", func(a *assay.Attempt) (any, bool) {
		return &a.Sampling, a.Sampling != assay.Sampling{}
	}),
	integer("token_limit", func(a *assay.Attempt) *int { return &a.Tokens }),
	float("cost_limit", func(a *assay.Attempt) *float64 { return &a.USD }),
	text("several_calls", func(a *assay.Attempt) *string { return &a.SeveralCalls }),
	float("persistence", func(a *assay.Attempt) *float64 { return &a.Persistence }),
	float("burst", func(a *assay.Attempt) *float64 { return &a.Burst }),
	text("loops", func(a *assay.Attempt) *string { return &a.Loops }),
	integer("call_limit", func(a *assay.Attempt) *int { return &a.Calls }),
	text("fault_mix", func(a *assay.Attempt) *string { return &a.Faults }),
	text("agent_model", func(a *assay.Attempt) *string { return &a.AgentModel }),
	text("agent_timeout", func(a *assay.Attempt) *string { return &a.AgentTimeout }),
	text("user_model", func(a *assay.Attempt) *string { return &a.UserModel }),
}

// attemptFields are the columns of the table attempts after the columns that place the row in its
// store. An attempt's seal covers them in this order: see [identify].
var attemptFields = []column{
	integer("round", func(a *assay.Attempt) *int { return &a.Round }),
	detail(text("program", func(a *assay.Attempt) *string { return &a.Program })),
	text("templates", func(a *assay.Attempt) *string { return &a.Templates }),
	text("lane", func(a *assay.Attempt) *string { return &a.Lane }),
	text("served_model", func(a *assay.Attempt) *string { return &a.ServedModel }),
	text("level", func(a *assay.Attempt) *assay.Level { return &a.Level }),
	text("ended", func(a *assay.Attempt) *assay.Ended { return &a.Ended }),
	text("stop", func(a *assay.Attempt) *assay.Stop { return &a.Stop }),
	text("cause", func(a *assay.Attempt) *assay.Cause { return &a.Cause }),
	text("error_category", func(a *assay.Attempt) *string { return &a.ErrorCategory }),
	integer("turns", func(a *assay.Attempt) *int { return &a.Outcome.Turns }),
	integer("tool_calls", func(a *assay.Attempt) *int { return &a.ToolCalls }),
	list("required_tools", func(a *assay.Attempt) *[]string { return &a.RequiredTools }),
	list("executed_tools", func(a *assay.Attempt) *[]string { return &a.ExecutedTools }),
	float("coverage", func(a *assay.Attempt) *float64 { return &a.Coverage }),
	flag("order_correct", func(a *assay.Attempt) *bool { return &a.OrderCorrect }),
	integer("assisted", func(a *assay.Attempt) *int { return &a.Assisted }),
	float("adherence", func(a *assay.Attempt) *float64 { return &a.Adherence }),
	optional("given_adherence", func(a *assay.Attempt) **float64 { return &a.GivenAdherence }),
	integer("mistakes", func(a *assay.Attempt) *int { return &a.Mistakes }),
	integer("failures", func(a *assay.Attempt) *int { return &a.Failures }),
	integer("recovered", func(a *assay.Attempt) *int { return &a.Recovered }),
	integer("wasted_calls", func(a *assay.Attempt) *int { return &a.Wasted }),
	float("efficiency", func(a *assay.Attempt) *float64 { return &a.Efficiency }),
	integer("extra_calls", func(a *assay.Attempt) *int { return &a.Extra }),
	text("loop", func(a *assay.Attempt) *assay.LoopKind { return &a.Loop }),
	integer("loop_turn", func(a *assay.Attempt) *int { return &a.LoopTurn }),
	float("best_possible", func(a *assay.Attempt) *float64 { return &a.Best }),
	object("pilot", "", func(a *assay.Attempt) (any, bool) { return &a.Pilot, a.Pilot != nil }),
	text("score_version", func(a *assay.Attempt) *string { return &a.ScoreVersion }),
	text("fault", func(a *assay.Attempt) *assay.FaultKind { return &a.FaultKind }),
	detail(text("fault_detail", func(a *assay.Attempt) *string { return &a.FaultDetail })),
	detail(flag("parked", func(a *assay.Attempt) *bool { return &a.Parked })),
	integer("requests", func(a *assay.Attempt) *int { return &a.Requests }),
	detail(object("retried", "{}", func(a *assay.Attempt) (any, bool) {
		return &a.Retried, len(a.Retried) > 0
	})),
	integer("input_tokens", func(a *assay.Attempt) *int { return &a.InputTokens }),
	integer("output_tokens", func(a *assay.Attempt) *int { return &a.OutputTokens }),
	float("cost_usd", func(a *assay.Attempt) *float64 { return &a.CostUSD }),
	integer("queued_ms", func(a *assay.Attempt) *int64 { return &a.QueuedMS }),
	integer("working_ms", func(a *assay.Attempt) *int64 { return &a.WorkingMS }),
	detail(instant("started_at", func(a *assay.Attempt) *time.Time { return &a.StartedAt })),
	detail(instant("finished_at", func(a *assay.Attempt) *time.Time { return &a.FinishedAt })),

	integer("cached_tokens", func(a *assay.Attempt) *int { return &a.CachedTokens }),
	integer("cache_write_tokens", func(a *assay.Attempt) *int { return &a.CacheWriteTokens }),
	integer("reasoning_tokens", func(a *assay.Attempt) *int { return &a.ReasoningTokens }),
	integer("truncated", func(a *assay.Attempt) *int { return &a.Truncated }),
	text("finish", func(a *assay.Attempt) *string { return &a.Finish }),
	text("deviations", func(a *assay.Attempt) *string { return &a.Deviations }),
	text("reported", func(a *assay.Attempt) *string { return &a.Reported }),
	float("precision", func(a *assay.Attempt) *float64 { return &a.Precision }),
	integer("unwanted_effects", func(a *assay.Attempt) *int { return &a.UnwantedEffects }),
	text("broken_lineage", func(a *assay.Attempt) *string { return &a.Broken }),
	integer("faults_scheduled", func(a *assay.Attempt) *int { return &a.FaultsScheduled }),
	integer("faults_met", func(a *assay.Attempt) *int { return &a.FaultsMet }),
	flag("unmetered", func(a *assay.Attempt) *bool { return &a.Unmetered }),

	text("worker", func(a *assay.Attempt) *string { return &a.Worker }),

	integer("uncertain_tokens", func(a *assay.Attempt) *int { return &a.UncertainTokens }),
	integer("unpriced_tokens", func(a *assay.Attempt) *int { return &a.UnpricedTokens }),

	text("security", func(a *assay.Attempt) *assay.Security { return &a.Security }),
	integer("user_requests", func(a *assay.Attempt) *int { return &a.UserRequests }),
	integer("user_input_tokens", func(a *assay.Attempt) *int { return &a.UserInputTokens }),
	integer("user_output_tokens", func(a *assay.Attempt) *int { return &a.UserOutputTokens }),
	integer("user_unpriced_tokens", func(a *assay.Attempt) *int { return &a.UserUnpricedTokens }),
	float("user_cost_usd", func(a *assay.Attempt) *float64 { return &a.UserCostUSD }),
}

// Only the writer knows the first four columns of an attempt.
var (
	insertTrial = insertSQL("trials", "id, "+columnList("", trialFields)) +
		" ON CONFLICT (id) DO NOTHING"
	insertAttempt = insertSQL("attempts",
		"id, number, run, trial, "+columnList("", attemptFields))
)

var (
	insertSeal       = insertSQL("attempt_seals", "attempt, sum, script")
	insertTranscript = insertSQL("transcripts", "attempt, body")
)

func columnList(prefix string, columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = prefix + c.name
	}
	return strings.Join(names, ", ")
}

// rowOf returns the values of the columns as they are stored.
func rowOf(columns []column, a *assay.Attempt) ([]any, error) {
	row := make([]any, len(columns))
	for i, c := range columns {
		var err error
		if row[i], err = c.save(a); err != nil {
			return nil, fmt.Errorf("%s: %w", c.name, err)
		}
	}
	return row, nil
}

// loadRow sets the fields of a from a row of these columns.
func loadRow(columns []column, a *assay.Attempt, row []any, in *interned) error {
	for i, c := range columns {
		if err := c.load(a, row[i], in); err != nil {
			return fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	return nil
}

// cast returns v as a T, which is one of the types that SQLite returns.
func cast[T any](v any) (T, error) {
	t, ok := v.(T)
	if !ok {
		return t, fmt.Errorf("unexpected value %v", v)
	}
	return t, nil
}

// plain is a column for values that SQLite has a type for.
func plain[F, S any](
	name string, field func(*assay.Attempt) *F, save func(F) S, load func(S, *interned) F,
) column {
	return column{
		name: name,
		save: func(a *assay.Attempt) (any, error) { return save(*field(a)), nil },
		load: func(a *assay.Attempt, v any, in *interned) error {
			s, err := cast[S](v)
			if err == nil {
				*field(a) = load(s, in)
			}
			return err
		},
	}
}

func text[T ~string](name string, field func(*assay.Attempt) *T) column {
	return plain(name, field, func(t T) string { return string(t) },
		func(s string, in *interned) T { return T(in.text(s)) })
}

func integer[N int | int64 | uint64](name string, field func(*assay.Attempt) *N) column {
	return plain(name, field, func(n N) int64 { return int64(n) },
		func(n int64, _ *interned) N { return N(n) })
}

func float(name string, field func(*assay.Attempt) *float64) column {
	return plain(name, field, func(x float64) float64 { return x },
		func(x float64, _ *interned) float64 { return x })
}

func flag(name string, field func(*assay.Attempt) *bool) column {
	return plain(name, field, func(b bool) int64 { return int64(boolInt(b)) },
		func(n int64, _ *interned) bool { return n != 0 })
}

// optional is a number or NULL.
func optional(name string, field func(*assay.Attempt) **float64) column {
	return column{
		name: name,
		save: func(a *assay.Attempt) (any, error) { return *field(a), nil },
		load: func(a *assay.Attempt, v any, _ *interned) error {
			if v == nil {
				return nil
			}
			x, err := cast[float64](v)
			*field(a) = &x
			return err
		},
	}
}

func instant(name string, field func(*assay.Attempt) *time.Time) column {
	return column{
		name: name,
		save: func(a *assay.Attempt) (any, error) { return formatTime(*field(a)) },
		load: func(a *assay.Attempt, v any, _ *interned) error {
			return moment{field(a)}.Scan(v)
		},
	}
}

// list is a JSON array of names. An empty one is read as nil.
func list(name string, field func(*assay.Attempt) *[]string) column {
	return column{
		name: name,
		save: func(a *assay.Attempt) (any, error) {
			if len(*field(a)) == 0 {
				return "[]", nil
			}
			b, err := json.Marshal(*field(a))
			return string(b), err
		},
		load: func(a *assay.Attempt, v any, in *interned) error {
			s, err := cast[string](v)
			if err != nil {
				return err
			}
			*field(a), err = in.list(s)
			return err
		},
	}
}

// object is a field as JSON. If it is not set, the column has the text unset.
func object(name, unset string, field func(*assay.Attempt) (to any, set bool)) column {
	return column{
		name: name,
		save: func(a *assay.Attempt) (any, error) {
			value, set := field(a)
			if !set {
				return unset, nil
			}
			b, err := json.Marshal(value)
			return string(b), err
		},
		load: func(a *assay.Attempt, v any, _ *interned) error {
			s, err := cast[string](v)
			if err != nil || s == unset {
				return err
			}
			to, _ := field(a)
			return json.Unmarshal([]byte(s), to)
		},
	}
}

// detail leaves a column out of [DB.Verdicts].
func detail(c column) column {
	c.detail = true
	return c
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// interned keeps one copy of each text and list that rows repeat. Attempts share the lists.
type interned struct {
	texts map[string]string
	lists map[string][]string
}

func newInterned() *interned {
	return &interned{make(map[string]string), make(map[string][]string)}
}

func (in *interned) text(s string) string {
	same, ok := in.texts[s]
	if !ok {
		same = s
		in.texts[s] = s
	}
	return same
}

func (in *interned) list(text string) ([]string, error) {
	if text == "[]" {
		return nil, nil
	}
	list, ok := in.lists[text]
	if !ok {
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, err
		}
		list = slices.Clip(list)
		in.lists[text] = list
	}
	return list, nil
}
