package conversation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// A trace has the spans with an ID, which may be on several lines of a file.
type trace struct {
	Origin
	spans []span
	raw   [][]byte // for the digest
}

type span struct {
	name, kind string
	began      uint64
	broken     bool
	says       string // why it is broken
	attributes map[string]any
}

// traces are those of a file, in the order in which they begin there.
type traces struct {
	byID  map[string]*trace
	order []string
}

// read adds the spans of a line.
func (t *traces) read(o Origin, raw json.RawMessage) error {
	var line struct {
		Resources []struct {
			Scopes []struct {
				Spans []json.RawMessage `json:"spans"`
			} `json:"scopeSpans"`
		} `json:"resourceSpans"`
	}
	if err := json.Unmarshal(raw, &line); err != nil {
		return fmt.Errorf("resourceSpans: %w", err)
	}
	for _, r := range line.Resources {
		for _, s := range r.Scopes {
			for _, raw := range s.Spans {
				if err := t.add(o, raw); err != nil {
					return fmt.Errorf("span: %w", err)
				}
			}
		}
	}
	return nil
}

func (t *traces) add(o Origin, raw json.RawMessage) error {
	var s struct {
		Trace      string     `json:"traceId"`
		Name       string     `json:"name"`
		Kind       label      `json:"kind"`
		Began      label      `json:"startTimeUnixNano"`
		Attributes attributes `json:"attributes"`
		Status     struct {
			Code    label  `json:"code"`
			Message string `json:"message"`
		} `json:"status"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return err
	}
	began, err := strconv.ParseUint(string(cmp.Or(s.Began, "0")), 10, 64)
	if err != nil {
		return fmt.Errorf("startTimeUnixNano is %q, want a whole number", s.Began)
	}
	of := t.byID[s.Trace]
	if of == nil {
		if t.byID == nil {
			t.byID = make(map[string]*trace)
		}
		o.Format = OTLP
		of = &trace{Origin: o}
		t.byID[s.Trace], t.order = of, append(t.order, s.Trace)
	}
	of.raw = append(of.raw, raw)
	of.spans = append(of.spans, span{
		name: s.Name, kind: string(s.Kind), began: began, attributes: s.Attributes,
		broken: s.Status.Code == "2" || s.Status.Code == "STATUS_CODE_ERROR", says: s.Status.Message,
	})
	return nil
}

// attributes are the attributes of a span by their names.
type attributes map[string]any

func (a *attributes) UnmarshalJSON(raw []byte) error {
	var list []struct {
		Key   string
		Value anyValue
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*a = make(attributes)
	for _, kv := range list {
		(*a)[kv.Key] = kv.Value.v
	}
	return nil
}

// anyValue is a value as OTLP wraps it.
type anyValue struct{ v any }

func (a *anyValue) UnmarshalJSON(raw []byte) error {
	var w struct {
		String *string  `json:"stringValue"`
		Bool   *bool    `json:"boolValue"`
		Int    *label   `json:"intValue"`
		Double *float64 `json:"doubleValue"`
		Array  *struct {
			Values []anyValue `json:"values"`
		} `json:"arrayValue"`
		Map *struct {
			Values attributes `json:"values"`
		} `json:"kvlistValue"`
	}
	if err := json.Unmarshal(raw, &w); err != nil {
		return err
	}
	switch {
	case w.String != nil:
		a.v = *w.String
	case w.Bool != nil:
		a.v = *w.Bool
	case w.Int != nil:
		a.v = json.Number(*w.Int)
	case w.Double != nil:
		a.v = *w.Double
	case w.Array != nil:
		all := []any{}
		for _, v := range w.Array.Values {
			all = append(all, v.v)
		}
		a.v = all
	case w.Map != nil:
		a.v = map[string]any(w.Map.Values)
	}
	return nil
}

// str returns an attribute as text. A value with parts is JSON.
func (s *span) str(name string) string {
	switch v := s.attributes[name].(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		text, err := json.Marshal(v)
		if err != nil { // a number that is none
			return fmt.Sprint(v)
		}
		return string(text)
	}
}

// is reports whether a span is one of some operations.
func (s *span) is(operations ...string) bool {
	name, _, _ := strings.Cut(s.name, " ")
	return slices.Contains(operations, cmp.Or(s.str("gen_ai.operation.name"), name))
}

// conversations returns the conversations of the traces that have one.
func (t *traces) conversations() (all []Conversation, err error) {
	for _, id := range t.order {
		of := t.byID[id]
		slices.SortStableFunc(of.spans, func(a, b span) int { return cmp.Compare(a.began, b.began) })
		if !slices.ContainsFunc(of.spans, func(s span) bool { return s.is("chat", "generate_content", "invoke_agent") }) {
			continue
		}
		of.Digest = digest(bytes.Join(of.raw, []byte("\n")))
		c, err := of.conversation(id)
		if err != nil {
			return nil, fmt.Errorf("%s: trace %s: %w", of.at(), id, err)
		}
		all = append(all, c)
	}
	return all, nil
}

// taskNames are attributes that name a task.
var taskNames = []string{"assay.task", "task", "task.id", "task_id", "test.case.name"}

// conversation returns the conversation of a trace.
func (t *trace) conversation(id string) (Conversation, error) {
	c := Conversation{Origin: t.Origin, Name: id}
	t.about(&c)
	var best []message // the longest history that a reply was given to, with the reply
	var chats []span
	for i := range t.spans {
		s := &t.spans[i]
		if !s.is("chat", "generate_content") || s.str("gen_ai.output.messages") == "" {
			continue
		}
		asked, err := s.messages("gen_ai.input.messages")
		if err != nil {
			return c, err
		}
		if n := len(asked); n > 0 && asked[n-1].Role == assay.Assistant {
			continue // it asks about the conversation, which had ended
		}
		reply, err := s.messages("gen_ai.output.messages")
		if err != nil {
			return c, err
		}
		all := append(asked, reply...)
		if chats = append(chats, *s); len(all) >= len(best) {
			best = all
		}
	}
	for i := range t.spans {
		if s := &t.spans[i]; len(chats) == 0 && s.is("invoke_agent") {
			var err error
			if best, err = s.messages("gen_ai.input.messages", "gen_ai.output.messages"); err != nil {
				return c, err
			}
		}
	}
	c.tell(best)
	switch {
	case c.gap != "":
	case len(best) == 0:
		c.gap = "its spans have no messages; with OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true, " +
			"programs that keep to the conventions record them"
	case len(chats) > len(c.turns):
		c.gap = "no span has the whole conversation"
	}
	t.spanned(&c, chats)
	return c, nil
}

// about takes over what the spans say about the whole.
func (t *trace) about(c *Conversation) {
	names := make(map[string]bool)
	for i := range t.spans {
		s := &t.spans[i]
		if name := s.str("gen_ai.conversation.id"); name != "" {
			names[name] = true
		}
		for _, name := range taskNames {
			c.Task = cmp.Or(c.Task, assay.TaskID(s.str(name)))
		}
		if s.str("assay.trial") == "" {
			continue
		}
		c.bare = true
		c.trial = &assay.Trial{Task: assay.TaskID(s.str("assay.task"))}
		c.trial.Variant, c.trial.Severity, c.trial.World = s.str("assay.variant"), s.str("assay.severity"), own.Name
		c.trial.Reliability, _ = strconv.ParseFloat(s.str("assay.reliability"), 64)
		if s.broken {
			c.gap = "the trial ended in the fault " + s.str("error.type") + ", which is no result"
		}
	}
	for i := range t.spans {
		if s := &t.spans[i]; s.is("invoke_agent") && (s.kind == "3" || s.kind == "SPAN_KIND_CLIENT") {
			c.bare = false
		}
	}
	switch all := slices.Sorted(maps.Keys(names)); len(all) {
	case 0:
	case 1:
		c.Name = all[0]
	default:
		c.gap = fmt.Sprintf("its trace has %d conversations", len(all))
	}
}

// spanned adds what the spans of tools say about the calls. Those of replies say when a turn began.
func (t *trace) spanned(c *Conversation, chats []span) {
	told := c.calls
	c.calls = nil
	if c.trial != nil { // Assay records each call that it carries out
		for i := range told {
			if !told[i].answered {
				told[i].failed = true
			}
		}
	}
	turn := 0
	flush := func(upTo int) {
		for len(told) > 0 && told[0].turn < upTo {
			c.calls, told = append(c.calls, told[0]), told[1:]
		}
	}
	for i := range t.spans {
		s := &t.spans[i]
		for turn < len(chats) && chats[turn].began <= s.began {
			turn++
		}
		if !s.is("execute_tool") {
			continue
		}
		flush(turn)
		id, tool := s.str("gen_ai.tool.call.id"), s.str("gen_ai.tool.name")
		k := slices.IndexFunc(told, func(t call) bool {
			return (len(chats) == 0 || t.turn == turn) && (id != "" && t.id == id || id == "" && t.tool == tool)
		})
		of := call{turn: max(1, turn), id: id, tool: tool}
		if k >= 0 {
			c.calls = append(c.calls, told[:k]...)
			of, told = told[k], told[k+1:]
			of.tool = cmp.Or(tool, of.tool) // the function may have had another name
		}
		c.calls = append(c.calls, s.carriedOut(of, c.trial != nil))
	}
	flush(len(c.turns) + 1)
}

// carriedOut returns a call with what its span says. Assay also says which fault it met.
func (s *span) carriedOut(c call, assays bool) call {
	c.arguments = cmp.Or(s.str("gen_ai.tool.call.arguments"), c.arguments)
	text, code := s.str("gen_ai.tool.call.result"), s.str("error.type")
	switch failed := s.broken || code != ""; {
	case failed:
		if !c.answered {
			c.text = cmp.Or(text, s.says, code)
		}
		c.failed, c.code = true, cmp.Or(code, c.code)
	case assays:
		c.failed, c.text = false, cmp.Or(text, c.text)
	case text != "":
		c.text, c.failed = text, fails(text)
	}
	c.answered = c.answered || c.failed || text != "" || assays
	if assays {
		c.fault = new(assay.ToolFault(s.str("assay.tool.fault")))
	}
	return c
}

// messages returns the messages of attributes, one after another.
func (s *span) messages(names ...string) (all []message, err error) {
	for _, name := range names {
		text := s.str(name)
		if text == "" {
			continue
		}
		var list []struct {
			Role  string `json:"role"`
			Parts []struct {
				Type      string          `json:"type"`
				Content   json.RawMessage `json:"content"`
				ID        string          `json:"id"`
				Name      string          `json:"name"`
				Arguments argumented      `json:"arguments"`
				Response  argumented      `json:"response"`
				Result    argumented      `json:"result"`
			} `json:"parts"`
			Finish string `json:"finish_reason"`
		}
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i, m := range list {
			role, ok := roles[m.Role]
			if !ok {
				return nil, fmt.Errorf("%s: message %d has the role %q", name, i+1, m.Role)
			}
			out := message{Message: assay.Message{Role: role}, finish: m.Finish}
			answers := 0
			for _, p := range m.Parts {
				var content argumented
				if len(p.Content) > 0 {
					_ = content.UnmarshalJSON(p.Content) // it takes any value
				}
				switch p.Type {
				case "text":
					out.Content += string(content)
				case "reasoning":
					out.Reasoning += string(content)
				case "tool_call":
					out.Calls = append(out.Calls, assay.ToolCall{ID: p.ID, Name: p.Name, Arguments: string(p.Arguments)})
				case "tool_call_response":
					answers++
					all = append(all, message{Message: assay.Message{
						Role: assay.ToolRole, CallID: p.ID, Content: string(cmp.Or(p.Response, p.Result)),
					}})
				}
			}
			if role != assay.ToolRole && (answers == 0 || out.Content != "" || len(out.Calls) > 0) {
				all = append(all, out)
			}
		}
	}
	return all, nil
}
