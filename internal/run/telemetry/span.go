package telemetry

import (
	"context"
	"encoding/json"
	"strconv"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/run/session"
)

// trial makes the spans of an attempt: trial, invoke_agent in it, and chat and execute_tool in
// invoke_agent. It is a separate trace, linked to the span of the run, because a trace of a whole
// experiment would be too large to look at and could not be sampled.
func (t *Traces) trial(ctx context.Context, e session.Episode) {
	a := e.Attempt
	link := trace.Link{SpanContext: t.run.SpanContext()}
	ctx, span := t.tracer.Start(ctx, "trial", trace.WithNewRoot(), trace.WithLinks(link),
		trace.WithTimestamp(a.StartedAt), trace.WithAttributes(append(cost(a.Spend),
			experimentName.String(a.Experiment), runID.String(string(a.Run)),
			trialID.String(string(a.ID)), attemptNumber.Int(a.Number), taskID.String(string(a.Task)),
			variantName.String(a.Variant), severityName.String(a.Severity),
			reliability.Float64(a.Reliability), requestModel.String(a.Model))...))
	t.agent(ctx, e)
	fail(span, string(a.FaultKind))
	span.End(trace.WithTimestamp(e.Saving.Ended))
}

// agent makes the span of the episode.
func (t *Traces) agent(ctx context.Context, e session.Episode) {
	a := e.Attempt
	ctx, span := t.tracer.Start(ctx, agentOperation+" "+a.Model, trace.WithTimestamp(a.StartedAt),
		trace.WithAttributes(append(usage(a.Usage()),
			operationName.String(agentOperation), agentName.String(a.Model),
			providerName.String(providerOf(a.Lane)), requestModel.String(a.Model),
			conversationID.String(conversation(a)))...))
	replies := 0
	for _, c := range e.Chats {
		t.chat(ctx, e, c, replies)
		if c.Err == nil {
			replies++
		}
	}
	ids := callIDs(e)
	for i := range min(len(e.Transcript.Spans), len(e.Transcript.Calls)) {
		t.tool(ctx, &e.Transcript.Calls[i], e.Transcript.Spans[i], ids[i])
	}
	if a.Settles() {
		span.AddEvent(evaluationEvent, trace.WithTimestamp(a.FinishedAt),
			trace.WithAttributes(evaluation(a)...))
	}
	fail(span, string(a.FaultKind))
	span.End(trace.WithTimestamp(a.FinishedAt))
}

// evaluation describes an outcome. Its score is 1 for full success and 0 otherwise, so that its
// mean is the rate that reports show.
func evaluation(a *assay.Attempt) []attribute.KeyValue {
	score := 0
	if a.Level == assay.FullSuccess {
		score = 1
	}
	all := []attribute.KeyValue{
		evaluationName.String("success"), evaluationValue.Int(score),
		evaluationLabel.String(string(a.Level)),
	}
	if a.ErrorCategory != "" {
		all = append(all, evaluationWhy.String(a.ErrorCategory))
	}
	return all
}

// chat makes the span of a turn. Replies counts those before it.
func (t *Traces) chat(ctx context.Context, e session.Episode, c session.Chat, replies int) {
	a, r := e.Attempt, &c.Response
	_, span := t.tracer.Start(ctx, chatOperation+" "+a.Model,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(c.Began),
		trace.WithAttributes(append(usage(r.Usage),
			operationName.String(chatOperation), providerName.String(providerOf(r.Lane)),
			requestModel.String(a.Model), conversationID.String(conversation(a)),
			laneName.String(r.Lane), requestCount.Int(r.Waits.Requests),
			queuedSeconds.Float64(r.Waits.Queued.Seconds()))...))
	span.SetAttributes(cost(r.Billed())...)
	if r.ServedModel != "" {
		span.SetAttributes(responseModel.String(r.ServedModel))
	}
	if r.Finish != "" {
		span.SetAttributes(finishReasons.StringSlice([]string{r.Finish}))
	}
	if f := assay.AsFault(c.Err); f != nil {
		fail(span, string(f.Kind))
	} else if t.content {
		span.SetAttributes(
			inputMessages.String(messages(before(e.Transcript.Messages, replies), "")),
			outputMessages.String(messages([]assay.Message{r.Message}, r.Finish)))
	}
	span.End(trace.WithTimestamp(c.Ended))
}

// tool makes the span of a call.
func (t *Traces) tool(ctx context.Context, r *assay.CallRecord, took assay.Span, id string) {
	_, span := t.tracer.Start(ctx, toolOperation+" "+r.Tool, trace.WithTimestamp(took.Began),
		trace.WithAttributes(operationName.String(toolOperation), toolName.String(r.Tool),
			toolType.String("function")))
	if id != "" {
		span.SetAttributes(toolCallID.String(id))
	}
	if met := r.Met(); met != "" {
		span.SetAttributes(toolFault.String(string(met)))
	}
	if t.content {
		span.SetAttributes(toolArguments.String(r.Arguments), toolResult.String(r.Output))
	}
	if !r.OK {
		fail(span, r.Code)
	}
	span.End(trace.WithTimestamp(took.Ended))
}

// fail marks a span as failed unless kind is empty.
func fail(span trace.Span, kind string) {
	if kind != "" {
		span.SetAttributes(errorType.String(kind))
		span.SetStatus(codes.Error, kind)
	}
}

func usage(u assay.Usage) []attribute.KeyValue {
	return []attribute.KeyValue{
		inputTokens.Int(u.InputTokens), outputTokens.Int(u.OutputTokens),
		cachedTokens.Int(u.CachedTokens), writtenTokens.Int(u.CacheWriteTokens),
		reasoningTokens.Int(u.ReasoningTokens),
	}
}

// cost returns no attribute if the whole cost is unknown.
func cost(s assay.Spend) []attribute.KeyValue {
	if !s.Priced() {
		return nil
	}
	return []attribute.KeyValue{costUSD.Float64(s.CostUSD)}
}

// conversation names an attempt.
func conversation(a *assay.Attempt) string {
	return string(a.ID) + "/" + strconv.Itoa(a.Number)
}

// providerOf returns the provider of a lane.
func providerOf(lane string) string {
	name, _, _ := strings.Cut(lane, "/")
	return name
}

// callIDs returns the ID that the model gave to each call, or "". A function of the model may be
// the tool itself, or one that has the tool's name among its arguments.
func callIDs(e session.Episode) []string {
	var replies [][]assay.ToolCall
	for _, c := range e.Chats {
		if c.Err == nil {
			replies = append(replies, c.Response.Message.Calls)
		}
	}
	ids := make([]string, len(e.Transcript.Calls))
	for i, r := range e.Transcript.Calls {
		if r.Turn < 1 || r.Turn > len(replies) {
			continue
		}
		left := replies[r.Turn-1]
		for j, c := range left {
			if c.Name == r.Tool || strings.Contains(c.Arguments, strconv.Quote(r.Tool)) {
				ids[i], replies[r.Turn-1] = c.ID, left[j+1:]
				break
			}
		}
	}
	return ids
}

// before returns the messages before a reply, which are those that it answers.
func before(all []assay.Message, replies int) []assay.Message {
	for i, m := range all {
		if m.Role != assay.Assistant {
			continue
		}
		if replies == 0 {
			return all[:i]
		}
		replies--
	}
	return all
}

// A genAIPart is a piece of a message in the form of the GenAI conventions.
type genAIPart struct {
	Type      string          `json:"type"`
	Content   string          `json:"content,omitempty"`
	ID        string          `json:"id,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Response  string          `json:"response,omitempty"`
}

// messages returns messages as JSON. A reply has the reason for its end.
func messages(all []assay.Message, finish string) string {
	type message struct {
		Role   assay.Role  `json:"role"`
		Parts  []genAIPart `json:"parts"`
		Finish string      `json:"finish_reason,omitempty"`
	}
	out := make([]message, 0, len(all))
	for _, m := range all {
		parts := []genAIPart{}
		if m.Reasoning != "" {
			parts = append(parts, genAIPart{Type: "reasoning", Content: m.Reasoning})
		}
		if m.Role == assay.ToolRole {
			parts = append(parts, genAIPart{
				Type: "tool_call_response", ID: m.CallID, Response: m.Content,
			})
		} else if m.Content != "" {
			parts = append(parts, genAIPart{Type: "text", Content: m.Content})
		}
		for _, c := range m.Calls {
			parts = append(parts, genAIPart{
				Type: "tool_call", ID: c.ID, Name: c.Name,
				Arguments: arguments(c.Arguments),
			})
		}
		role := m.Role
		if role == "" {
			role = assay.Assistant
		}
		out = append(out, message{role, parts, finish})
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "[]" // only invalid arguments, which [arguments] excludes
	}
	return string(b)
}

// arguments returns the arguments of a call as JSON. A model may write something else.
func arguments(text string) json.RawMessage {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	b, _ := json.Marshal(text) // a string has JSON
	return b
}
