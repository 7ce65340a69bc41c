package episode

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/adapter"
	"github.com/assay-eval/assay/internal/task/world/own"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// carryOut carries out a reply's actions in order and returns their answers. Each answer lists the
// tools that have succeeded by then.
func (e *episode) carryOut(turn int, actions []action, rec *assay.TurnRecord) []map[string]any {
	answers := make([]map[string]any, 0, len(actions))
	spent := e.callsLeft() == 0
	listed := e.trial.Tools == assay.Listed
	for i, a := range actions {
		oneOnly := e.progress.executed > 0 && e.trial.SeveralCalls == assay.RefuseSeveral
		var answer map[string]any
		switch {
		case i >= MaxCallsPerReply:
			answer = e.correct(rec, &correction{"too many calls", MaxCallsPerReply})
		case a.wrong != nil:
			answer = e.correct(rec, a.wrong)
		case (a.act == call || listed) && oneOnly:
			answer = e.correct(rec, &correction{"one call", nil})
		case a.act != call && listed: // under the native protocol there is no such function
			answer = e.correct(rec, &correction{"no listed function", a.act.String()})
		case a.act == call && e.isTool(a.text) && e.callsLeft() == 0:
			e.overdrawn = e.overdrawn || spent
			answer = e.correct(rec, &correction{"no calls left", struct {
				Calls   int
				EndWord string
			}{e.trial.Calls, own.EndWordOf(e.task)}})
		case a.act == call:
			answer = e.execute(turn, a, rec)
		case a.act == info:
			answer = e.describe(a.text, rec)
		default:
			rec.Lookups++
			answer = e.found(a.text)
		}
		answer["succeeded"] = append([]string{}, e.world.Succeeded()...)
		if e.trial.Calls > 0 {
			answer["calls_left"] = e.callsLeft()
		}
		answers = append(answers, answer)
	}
	return answers
}

// callsLeft returns the number of calls that the model may still make, or -1 without a limit.
// Every call that the world has recorded counts.
func (e *episode) callsLeft() int {
	if e.trial.Calls == 0 {
		return -1
	}
	return max(0, e.trial.Calls-len(e.world.Calls()))
}

func (e *episode) isTool(name string) bool {
	_, ok := e.catalog.Tool(name)
	return ok && e.mayUse(name)
}

// mayUse reports whether the task may use a tool of its library now.
func (e *episode) mayUse(name string) bool {
	if d, ok := e.world.(spec.Dialogue); ok {
		return d.Offers(name)
	}
	return len(e.task.Tools) == 0 || slices.Contains(e.task.Tools, name)
}

// correct answers a malformed action and records that the model was assisted.
func (e *episode) correct(rec *assay.TurnRecord, c *correction) map[string]any {
	rec.Assisted = true
	text := render(c.name, c.data)
	e.progress.failed(text)
	return map[string]any{"refused": text}
}

func (e *episode) execute(turn int, a action, rec *assay.TurnRecord) map[string]any {
	began := time.Now()
	r, shown, err := e.call(turn, a.text, a.arguments)
	if fault := (*assay.Fault)(nil); errors.As(err, &fault) {
		e.broken = fault
		return map[string]any{"tool": a.text, "success": false, "error": fault.Error()}
	}
	if err != nil {
		return e.correct(rec, e.noTool(a.text))
	}
	e.transcript.Spans = append(e.transcript.Spans, assay.Span{Began: began, Ended: time.Now()})
	e.progress.called(&r)
	answer := map[string]any{"tool": r.Tool, "success": r.OK}
	if r.OK {
		answer["output"] = json.RawMessage(shown)
	} else {
		answer["error"] = shown
	}
	if r.Seconds > 0 {
		answer["seconds"] = r.Seconds
	}
	if r.Wait > 0 {
		answer["wait"] = r.Wait
	}
	return answer
}

// noTool returns the correction of a name that is not a tool.
func (e *episode) noTool(name string) *correction {
	if e.trial.Tools == assay.Listed {
		return &correction{"no listed function", spec.Clip(name)}
	}
	return &correction{"no tool", spec.Clip(name)}
}

// describe answers a request to read about a tool.
func (e *episode) describe(name string, rec *assay.TurnRecord) map[string]any {
	tool, ok := e.catalog.Tool(name)
	if !ok || !e.mayUse(name) {
		return e.correct(rec, e.noTool(name))
	}
	rec.Lookups++
	e.progress.shown(info, tool.Name)
	return map[string]any{"tool": details(e.trial.World, e.offer.of(), tool)}
}

// found answers a search.
func (e *episode) found(query string) map[string]any {
	tools := slices.DeleteFunc(e.search.Tools(query), func(t assay.Tool) bool {
		return !e.mayUse(t.Name)
	})
	if len(tools) == 0 {
		return map[string]any{"tools": []any{}, "note": render("no match", nil)}
	}
	list := make([]any, len(tools))
	for i, t := range tools {
		e.progress.shown(search, t.Name)
		list[i] = details(e.trial.World, e.offer.of(), t)
	}
	return map[string]any{"tools": list}
}

// toolDetails describes a tool to a model.
type toolDetails struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Parameters  json.RawMessage   `json:"parameters"`
	Returns     []assay.Return    `json:"returns"`
	Errors      []assay.ToolError `json:"errors"`
	Needs       []string          `json:"needs"`
	Effect      string            `json:"effect,omitempty"`
}

func details(worldName string, a *adapter.Adapter, t assay.Tool) toolDetails {
	needs := append([]string{}, t.Dependencies...)
	return toolDetails{
		t.Name, a.Text(t.Description), a.Schema(t.Name, schema(worldName, t)), a.Returns(t.Returns), t.Errors, needs,
		effect(worldName, t),
	}
}

// reply appends the answers to the conversation, each with the number of replies left. They are
// results of the native calls, or one message under the protocol tags.
func (e *episode) reply(actions []action, answers []map[string]any, left int) {
	var blocks []string
	for i, answer := range answers {
		answer["replies_left"] = left
		content := string(encode(answer))
		if e.trial.Protocol == assay.Tags {
			blocks = append(blocks, resultOpen+content+resultClose)
			continue
		}
		e.say(assay.Message{Role: assay.ToolRole, CallID: actions[i].id, Content: content})
	}
	if len(blocks) > 0 {
		e.say(assay.Message{Role: assay.User, Content: strings.Join(blocks, "\n")})
	}
}

// The tags around each answer under the protocol tags. Answers are in the order of the actions.
const (
	resultOpen  = "<tool_result>"
	resultClose = "</tool_result>"
)

func (e *episode) say(m assay.Message) {
	e.transcript.Messages = append(e.transcript.Messages, m)
}

// encode returns v as JSON in which <, > and & are not escaped, because a model reads it as text.
// If v cannot be encoded, that is a bug.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("episode: encode: " + err.Error())
	}
	return bytes.TrimSpace(b.Bytes())
}
