package export

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/assay-eval/assay"
)

// A column is one field of an attempt as text.
type column struct {
	name string
	get  func(*assay.Attempt) (string, error)
	set  func(*assay.Attempt, string) error
}

// columns are in the order of the JSON fields.
var columns = []column{
	text("trial", func(a *assay.Attempt) *assay.TrialID { return &a.ID }),
	text("model", func(a *assay.Attempt) *string { return &a.Model }),
	text("variant", func(a *assay.Attempt) *string { return &a.Variant }),
	text("severity", func(a *assay.Attempt) *string { return &a.Severity }),
	text("difficulty", func(a *assay.Attempt) *string { return &a.Difficulty }),
	text("task_type", func(a *assay.Attempt) *string { return &a.TaskType }),
	real("reliability", func(a *assay.Attempt) *float64 { return &a.Reliability }),
	text("task", func(a *assay.Attempt) *assay.TaskID { return &a.Task }),
	text("task_digest", func(a *assay.Attempt) *string { return &a.TaskDigest }),
	whole("repeat", func(a *assay.Attempt) *int { return &a.Repeat }),
	{"seed", getSeed, setSeed},
	text("world", func(a *assay.Attempt) *string { return &a.World }),
	text("protocol", func(a *assay.Attempt) *string { return &a.Protocol }),
	text("tools", func(a *assay.Attempt) *string { return &a.Tools }),
	whole("turn_limit", func(a *assay.Attempt) *int { return &a.Setting.Turns }),
	object("sampling", func(a *assay.Attempt) *assay.Sampling { return &a.Sampling }),
	whole("token_limit", func(a *assay.Attempt) *int { return &a.Setting.Tokens }),
	real("cost_limit", func(a *assay.Attempt) *float64 { return &a.Setting.USD }),
	text("several_calls", func(a *assay.Attempt) *string { return &a.SeveralCalls }),
	real("persistence", func(a *assay.Attempt) *float64 { return &a.Persistence }),
	real("burst", func(a *assay.Attempt) *float64 { return &a.Burst }),
	text("loops", func(a *assay.Attempt) *string { return &a.Loops }),
	whole("attempt", func(a *assay.Attempt) *int { return &a.Number }),
	text("experiment", func(a *assay.Attempt) *string { return &a.Experiment }),
	text("run", func(a *assay.Attempt) *assay.RunID { return &a.Run }),
	text("program", func(a *assay.Attempt) *string { return &a.Program }),
	text("templates", func(a *assay.Attempt) *string { return &a.Templates }),
	text("lane", func(a *assay.Attempt) *string { return &a.Lane }),
	text("served_model", func(a *assay.Attempt) *string { return &a.ServedModel }),
	text("level", func(a *assay.Attempt) *assay.Level { return &a.Level }),
	text("ended", func(a *assay.Attempt) *assay.Ended { return &a.Ended }),
	text("error_category", func(a *assay.Attempt) *string { return &a.ErrorCategory }),
	whole("turns", func(a *assay.Attempt) *int { return &a.Outcome.Turns }),
	whole("tool_calls", func(a *assay.Attempt) *int { return &a.ToolCalls }),
	object("required_tools", func(a *assay.Attempt) *[]string { return &a.RequiredTools }),
	object("executed_tools", func(a *assay.Attempt) *[]string { return &a.ExecutedTools }),
	real("coverage", func(a *assay.Attempt) *float64 { return &a.Coverage }),
	flag("order_correct", func(a *assay.Attempt) *bool { return &a.OrderCorrect }),
	whole("assisted", func(a *assay.Attempt) *int { return &a.Assisted }),
	real("adherence", func(a *assay.Attempt) *float64 { return &a.Adherence }),
	optional(real("given_adherence", func(a *assay.Attempt) *float64 { return a.GivenAdherence }), givenAdherence),
	whole("mistakes", func(a *assay.Attempt) *int { return &a.Mistakes }),
	whole("failures", func(a *assay.Attempt) *int { return &a.Failures }),
	whole("recovered", func(a *assay.Attempt) *int { return &a.Recovered }),
	whole("wasted_calls", func(a *assay.Attempt) *int { return &a.Wasted }),
	real("efficiency", func(a *assay.Attempt) *float64 { return &a.Efficiency }),
	whole("extra_calls", func(a *assay.Attempt) *int { return &a.Extra }),
	text("loop", func(a *assay.Attempt) *assay.LoopKind { return &a.Loop }),
	whole("loop_turn", func(a *assay.Attempt) *int { return &a.LoopTurn }),
	real("best_possible", func(a *assay.Attempt) *float64 { return &a.Best }),
	optional(text("pilot_executor", func(a *assay.Attempt) *assay.Level { return &a.Pilot.Executor }), pilot),
	optional(text("pilot_paper", func(a *assay.Attempt) *assay.Level { return &a.Pilot.Paper }), pilot),
	optional(text("pilot_batch", func(a *assay.Attempt) *assay.Level { return &a.Pilot.Batch }), pilot),
	optional(real("pilot_workflow_score", func(a *assay.Attempt) *float64 { return &a.Pilot.WorkflowScore }), pilot),
	optional(real("pilot_phase2_score", func(a *assay.Attempt) *float64 { return &a.Pilot.Phase2Score }), pilot),
	optional(real("pilot_quality_score", func(a *assay.Attempt) *float64 { return &a.Pilot.QualityScore }), pilot),
	optional(real("pilot_final_score", func(a *assay.Attempt) *float64 { return &a.Pilot.FinalScore }), pilot),
	text("score_version", func(a *assay.Attempt) *string { return &a.ScoreVersion }),
	text("fault", func(a *assay.Attempt) *assay.FaultKind { return &a.FaultKind }),
	text("fault_detail", func(a *assay.Attempt) *string { return &a.FaultDetail }),
	flag("parked", func(a *assay.Attempt) *bool { return &a.Parked }),
	whole("requests", func(a *assay.Attempt) *int { return &a.Requests }),
	object("retried", func(a *assay.Attempt) *map[assay.FaultKind]int { return &a.Retried }),
	whole("input_tokens", func(a *assay.Attempt) *int { return &a.InputTokens }),
	whole("output_tokens", func(a *assay.Attempt) *int { return &a.OutputTokens }),
	real("cost_usd", func(a *assay.Attempt) *float64 { return &a.CostUSD }),
	whole("queued_ms", func(a *assay.Attempt) *int64 { return &a.QueuedMS }),
	whole("working_ms", func(a *assay.Attempt) *int64 { return &a.WorkingMS }),
	moment("started_at", func(a *assay.Attempt) *time.Time { return &a.StartedAt }),
	moment("finished_at", func(a *assay.Attempt) *time.Time { return &a.FinishedAt }),
}

// required are the fields without which a file is not read. The others came
// into the formats later, or may have, and are empty where they are missing.
var required = []string{
	"trial", "attempt", "experiment", "run", "model", "variant", "severity", "difficulty", "task_type", "task",
	"reliability", "repeat", "seed", "world", "lane", "served_model", "level", "ended", "fault", "error_category",
	"turns", "tool_calls", "required_tools", "executed_tools", "coverage", "order_correct", "input_tokens",
	"output_tokens", "cost_usd", "queued_ms", "working_ms", "started_at", "finished_at",
}

// Columns returns the names of the fields, in the order of both formats.
func Columns() []string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.name
	}
	return names
}

func text[T ~string](name string, at func(*assay.Attempt) *T) column {
	return column{
		name,
		func(a *assay.Attempt) (string, error) { return escape(string(*at(a))), nil },
		func(a *assay.Attempt, s string) error {
			s, err := unescape(s)
			*at(a) = T(s)
			return err
		},
	}
}

func whole[T int | int64](name string, at func(*assay.Attempt) *T) column {
	return column{
		name,
		func(a *assay.Attempt) (string, error) { return strconv.FormatInt(int64(*at(a)), 10), nil },
		func(a *assay.Attempt, s string) error {
			n, err := strconv.ParseInt(s, 10, 64)
			if err == nil && int64(T(n)) != n {
				err = strconv.ErrRange
			}
			*at(a) = T(n)
			return err
		},
	}
}

func real(name string, at func(*assay.Attempt) *float64) column {
	return column{
		name,
		func(a *assay.Attempt) (string, error) {
			return strconv.FormatFloat(*at(a), 'f', -1, 64), finite(*at(a))
		},
		func(a *assay.Attempt, s string) error {
			v, err := strconv.ParseFloat(s, 64)
			*at(a) = v
			return errors.Join(err, finite(v))
		},
	}
}

// optional makes a column empty while the pointer on the way to its field is
// nil. The first cell that is not empty sets the pointer.
func optional[T any](c column, at func(*assay.Attempt) **T) column {
	return column{
		c.name,
		func(a *assay.Attempt) (string, error) {
			if *at(a) == nil {
				return "", nil
			}
			return c.get(a)
		},
		func(a *assay.Attempt, s string) error {
			if *at(a) == nil {
				if s == "" {
					return nil
				}
				*at(a) = new(T)
			}
			return c.set(a, s)
		},
	}
}

func givenAdherence(a *assay.Attempt) **float64  { return &a.GivenAdherence }
func pilot(a *assay.Attempt) **assay.PilotScores { return &a.Pilot }

func finite(v float64) error {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return fmt.Errorf("%v is not a finite number", v)
	}
	return nil
}

func flag(name string, at func(*assay.Attempt) *bool) column {
	return column{
		name,
		func(a *assay.Attempt) (string, error) { return strconv.FormatBool(*at(a)), nil },
		func(a *assay.Attempt, s string) (err error) {
			*at(a), err = strconv.ParseBool(s)
			return err
		},
	}
}

func moment(name string, at func(*assay.Attempt) *time.Time) column {
	return column{
		name,
		func(a *assay.Attempt) (string, error) { return formatTime(*at(a)) },
		func(a *assay.Attempt, s string) error { return at(a).UnmarshalText([]byte(s)) },
	}
}

// object is a column of JSON, which has no line ends to escape.
func object[T any](name string, at func(*assay.Attempt) *T) column {
	return column{
		name,
		func(a *assay.Attempt) (string, error) {
			b, err := json.Marshal(at(a))
			return string(b), err
		},
		func(a *assay.Attempt, s string) error { return json.Unmarshal([]byte(s), at(a)) },
	}
}

func getSeed(a *assay.Attempt) (string, error) { return strconv.FormatUint(a.Seed, 10), nil }

func setSeed(a *assay.Attempt, s string) (err error) {
	a.Seed, err = strconv.ParseUint(s, 10, 64)
	return err
}

var escaper = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`)

func escape(s string) string { return escaper.Replace(s) }

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, `\`)
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		if after == "" {
			return "", errors.New(`backslash at the end: a backslash is written \\`)
		}
		switch after[0] {
		case '\\':
			b.WriteByte('\\')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		default:
			return "", fmt.Errorf(`\%c: a backslash is written \\`, after[0])
		}
		s = after[1:]
	}
}
