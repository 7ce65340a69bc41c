package telemetry

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path"
	"slices"
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
	ctx = withTrace(ctx, fmt.Sprintf("%s/%s/%d", a.Run, a.ID, a.Number))
	ctx, span := t.tracer.Start(ctx, "trial", trace.WithNewRoot(), trace.WithLinks(link),
		trace.WithTimestamp(a.StartedAt), trace.WithAttributes(
			experimentName.String(a.Experiment), runID.String(string(a.Run)),
			trialID.String(string(a.ID)), attemptNumber.Int(a.Number), taskID.String(string(a.Task)),
			variantName.String(a.Variant), severityName.String(a.Severity),
			reliability.Float64(a.Reliability), modelName.String(a.Model),
			suiteName.String(a.Experiment), caseName.String(string(a.Task))))
	if a.CostKnown() {
		span.SetAttributes(costUSD.Float64(a.CostUSD))
	}
	if a.Settles() {
		status := "fail"
		if a.Level == assay.FullSuccess {
			status = "pass"
		}
		span.SetAttributes(caseStatus.String(status))
	}
	t.agent(ctx, e)
	fail(span, string(a.FaultKind))
	span.End(trace.WithTimestamp(e.Saving.Ended))
}

// agent makes the span of the episode. A foreign agent is in another process, and may have a version.
func (t *Traces) agent(ctx context.Context, e session.Episode) {
	a, kind := e.Attempt, trace.SpanKindInternal
	if foreign(a) {
		kind = trace.SpanKindClient
	}
	ctx, span := t.tracer.Start(ctx, agentOperation+" "+a.Model, trace.WithTimestamp(a.StartedAt),
		trace.WithSpanKind(kind), trace.WithAttributes(append(usage(a.Usage()),
			operationName.String(agentOperation), agentName.String(a.Model),
			providerName.String(t.providerOf(a.Lane)), requestModel.String(modelOf(a)),
			conversationID.String(conversation(a)))...),
		trace.WithAttributes(settings(a.Sampling, assay.Names(a.Deviations))...))
	if foreign(a) && a.Sampling.Revision != "" {
		span.SetAttributes(agentVersion.String(a.Sampling.Revision))
	}
	if all := e.Transcript.Messages; t.content && len(all) > 0 {
		span.SetAttributes(inputMessages.String(messages(before(all, 0), "")))
		if last := all[len(all)-1:]; last[0].Role == assay.Assistant && len(e.Transcript.Turns) > 0 {
			finish := e.Transcript.Turns[len(e.Transcript.Turns)-1].Finish
			span.SetAttributes(outputMessages.String(messages(last, finish)))
		}
	}
	replies := 0
	for _, c := range e.Chats {
		t.chat(ctx, e, c, replies)
		if c.Err == nil {
			replies++
		}
	}
	ids := callIDs(e)
	for i := range min(len(e.Transcript.Spans), len(e.Transcript.Calls)) {
		t.tool(ctx, a, &e.Transcript.Calls[i], e.Transcript.Spans[i], ids[i])
	}
	for _, result := range evaluations(a) {
		span.AddEvent(evaluationEvent, trace.WithTimestamp(a.FinishedAt),
			trace.WithAttributes(result...))
	}
	fail(span, string(a.FaultKind))
	span.End(trace.WithTimestamp(a.FinishedAt))
}

// evaluations describe an outcome. A score is 1 for full success, or for an attack that failed, and
// otherwise 0, so that its mean is the rate that reports show.
func evaluations(a *assay.Attempt) (all [][]attribute.KeyValue) {
	evaluation := func(name, label string, good bool) {
		score := 0.0
		if good {
			score = 1
		}
		all = append(all, []attribute.KeyValue{
			evaluationName.String(name), evaluationValue.Float64(score), evaluationLabel.String(label),
		})
	}
	if a.Settles() {
		evaluation("success", string(a.Level), a.Level == assay.FullSuccess)
		if a.ErrorCategory != "" {
			all[0] = append(all[0], evaluationWhy.String(a.ErrorCategory))
		}
	}
	if a.Security != "" {
		evaluation("security", string(a.Security), a.Security == assay.Held)
	}
	return all
}

// chat makes the span of a turn. Replies counts those before it.
func (t *Traces) chat(ctx context.Context, e session.Episode, c session.Chat, replies int) {
	a, r := e.Attempt, &c.Response
	_, span := t.tracer.Start(ctx, chatOperation+" "+modelOf(a),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(c.Began),
		trace.WithAttributes(append(usage(r.Usage),
			operationName.String(chatOperation), providerName.String(t.providerOf(r.Lane)),
			requestModel.String(modelOf(a)), conversationID.String(conversation(a)),
			laneName.String(r.Lane), requestCount.Int(r.Waits.Requests),
			queuedSeconds.Float64(r.Waits.Queued.Seconds()))...),
		trace.WithAttributes(settings(c.Request.Sampling, r.Deviations)...),
		trace.WithAttributes(server(t.start.Endpoints[r.Lane])...))
	if b := r.Billed(); b.Priced() {
		span.SetAttributes(costUSD.Float64(b.CostUSD))
	}
	if c.Request.Form.Type != "" {
		span.SetAttributes(outputType.String("json"))
	}
	if r.ID != "" {
		span.SetAttributes(responseID.String(r.ID))
	}
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
	if t.content && len(c.Request.Functions) > 0 {
		span.SetAttributes(toolDefinitions.String(definitions(c.Request.Functions)))
	}
	span.End(trace.WithTimestamp(c.Ended))
}

// tool makes the span of a call.
func (t *Traces) tool(
	ctx context.Context, a *assay.Attempt, r *assay.CallRecord, took assay.Span, id string,
) {
	_, span := t.tracer.Start(ctx, toolOperation+" "+r.Tool, trace.WithTimestamp(took.Began),
		trace.WithAttributes(operationName.String(toolOperation), toolName.String(r.Tool),
			toolType.String("function"), agentName.String(a.Model)),
		trace.WithAttributes(t.carrier(a)...))
	if id != "" {
		span.SetAttributes(toolCallID.String(id))
	}
	if met := r.Met(); met != "" {
		span.SetAttributes(toolFault.String(string(met)))
	}
	if t.content && r.Arguments != "" {
		span.SetAttributes(toolArguments.String(r.Arguments))
	}
	if t.content && r.Output != "" {
		span.SetAttributes(toolResult.String(r.Output))
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

// usage returns no attribute if the endpoint has not reported any.
func usage(u assay.Usage) []attribute.KeyValue {
	if u.Total() == 0 {
		return nil
	}
	return []attribute.KeyValue{
		inputTokens.Int(u.InputTokens), outputTokens.Int(u.OutputTokens),
		cachedTokens.Int(u.CachedTokens), writtenTokens.Int(u.CacheWriteTokens),
		reasoningTokens.Int(u.ReasoningTokens),
	}
}

// conversation names an attempt.
func conversation(a *assay.Attempt) string {
	return string(a.ID) + "/" + strconv.Itoa(a.Number)
}

// foreign reports whether a foreign agent took the turns.
func foreign(a *assay.Attempt) bool { return a.AgentModel != "" }

// modelOf returns the model that was asked, also if it served a foreign agent.
func modelOf(a *assay.Attempt) string { return cmp.Or(a.AgentModel, a.Model) }

// carrier describes how a call got to the program that carried it out, if it went over MCP: to the
// server of tools of the experiment, or from a foreign agent to Assay.
func (t *Traces) carrier(a *assay.Attempt) (all []attribute.KeyValue) {
	s := t.start.Server
	served := s != nil && !s.OpenEnv
	if served || foreign(a) {
		all = append(all, mcpMethod.String("tools/call"))
	}
	switch {
	case !served: // an agent chooses its transport
	case s.URL == "":
		all = append(all, transport.String("pipe"))
	default:
		all = append(append(all, transport.String("tcp")), server(s.URL)...)
	}
	return all
}

// server returns the host and the port of an address, if there is one.
func server(address string) []attribute.KeyValue {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return nil
	}
	port, _ := strconv.Atoi(u.Port())
	if u.Port() == "" {
		port = map[string]int{"http": 80, "https": 443}[u.Scheme]
	}
	return []attribute.KeyValue{serverAddress.String(u.Hostname()), serverPort.Int(port)}
}

// settings returns the settings of a request except for those that were not sent, which deviations
// name.
func settings(s assay.Sampling, deviations []string) (all []attribute.KeyValue) {
	sent := func(name string) bool { return !slices.Contains(deviations, "no "+name) }
	if s.Temperature != nil && sent("temperature") {
		all = append(all, temperature.Float64(*s.Temperature))
	}
	if s.TopP != nil && sent("top_p") {
		all = append(all, topP.Float64(*s.TopP))
	}
	if s.MaxTokens != nil {
		all = append(all, maxTokens.Int(*s.MaxTokens))
	}
	if s.Seed != nil && sent("seed") {
		all = append(all, requestSeed.Int64(*s.Seed))
	}
	if s.Effort != "" && sent("effort") {
		all = append(all, reasoningLevel.String(s.Effort))
	}
	return all
}

// providerOf returns the provider of a lane: its name in the conventions if they know its host, and
// otherwise its name in the providers file.
func (t *Traces) providerOf(lane string) string {
	if u, err := url.Parse(t.start.Endpoints[lane]); err == nil {
		for _, h := range hosts {
			if known, _ := path.Match(h.host, u.Hostname()); known {
				return h.provider
			}
		}
	}
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

// definitions returns the tools that a model was offered, as JSON.
func definitions(all []assay.Function) string {
	type definition struct {
		Type string `json:"type"`
		assay.Function
	}
	out := make([]definition, len(all))
	for i, f := range all {
		out[i] = definition{"function", f}
	}
	b, err := json.Marshal(out)
	if err != nil {
		return "[]" // only invalid parameters, with which no request is sent
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
