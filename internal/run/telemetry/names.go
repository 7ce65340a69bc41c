package telemetry

import "go.opentelemetry.io/otel/attribute"

// The names of the GenAI conventions, from
// https://github.com/open-telemetry/semantic-conventions-genai (2026-11). They are still in
// development, and the Go package semconv lacks them since v1.41, so they are pinned here.
const (
	chatOperation   = "chat"
	toolOperation   = "execute_tool"
	agentOperation  = "invoke_agent"
	evaluationEvent = "gen_ai.evaluation.result"

	operationName   = attribute.Key("gen_ai.operation.name")
	providerName    = attribute.Key("gen_ai.provider.name")
	agentName       = attribute.Key("gen_ai.agent.name")
	conversationID  = attribute.Key("gen_ai.conversation.id")
	requestModel    = attribute.Key("gen_ai.request.model")
	responseModel   = attribute.Key("gen_ai.response.model")
	finishReasons   = attribute.Key("gen_ai.response.finish_reasons")
	inputTokens     = attribute.Key("gen_ai.usage.input_tokens")
	outputTokens    = attribute.Key("gen_ai.usage.output_tokens")
	cachedTokens    = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	writtenTokens   = attribute.Key("gen_ai.usage.cache_creation.input_tokens")
	reasoningTokens = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	toolName        = attribute.Key("gen_ai.tool.name")
	toolType        = attribute.Key("gen_ai.tool.type")
	toolCallID      = attribute.Key("gen_ai.tool.call.id")
	evaluationName  = attribute.Key("gen_ai.evaluation.name")
	evaluationValue = attribute.Key("gen_ai.evaluation.score.value")
	evaluationLabel = attribute.Key("gen_ai.evaluation.score.label")
	evaluationWhy   = attribute.Key("gen_ai.evaluation.explanation")
	errorType       = attribute.Key("error.type")

	// These have the content of conversations, so they need CaptureContent.
	inputMessages  = attribute.Key("gen_ai.input.messages")
	outputMessages = attribute.Key("gen_ai.output.messages")
	toolArguments  = attribute.Key("gen_ai.tool.call.arguments")
	toolResult     = attribute.Key("gen_ai.tool.call.result")
)

// CaptureContent is the environment variable that lets traces have prompts, replies, and the
// arguments and results of tools, if it is true.
const CaptureContent = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// The names of Assay's own attributes.
const (
	experimentName = attribute.Key("assay.experiment")
	runID          = attribute.Key("assay.run")
	trialID        = attribute.Key("assay.trial")
	attemptNumber  = attribute.Key("assay.attempt")
	taskID         = attribute.Key("assay.task")
	variantName    = attribute.Key("assay.variant")
	severityName   = attribute.Key("assay.severity")
	reliability    = attribute.Key("assay.reliability")
	laneName       = attribute.Key("assay.lane")
	requestCount   = attribute.Key("assay.requests")
	queuedSeconds  = attribute.Key("assay.queued_seconds")
	costUSD        = attribute.Key("assay.cost_usd")
	toolFault      = attribute.Key("assay.tool.fault")
	trialsDone     = attribute.Key("assay.trials.done")
	trialsPlanned  = attribute.Key("assay.trials.planned")
)
