package telemetry

import "go.opentelemetry.io/otel/attribute"

// The names of the conventions for GenAI and MCP, from
// https://github.com/open-telemetry/semantic-conventions-genai (2026-11), and of the general
// conventions that they use. They are still in development, and the Go package semconv lacks them
// since v1.41, so they are pinned here; TestNamesAreInConventions lists where each is from. Spans state
// no schema URL, because no schema with these names has been released.
const (
	chatOperation   = "chat"
	toolOperation   = "execute_tool"
	agentOperation  = "invoke_agent"
	evaluationEvent = "gen_ai.evaluation.result"

	operationName   = attribute.Key("gen_ai.operation.name")
	providerName    = attribute.Key("gen_ai.provider.name")
	agentName       = attribute.Key("gen_ai.agent.name")
	agentVersion    = attribute.Key("gen_ai.agent.version")
	conversationID  = attribute.Key("gen_ai.conversation.id")
	requestModel    = attribute.Key("gen_ai.request.model")
	temperature     = attribute.Key("gen_ai.request.temperature")
	topP            = attribute.Key("gen_ai.request.top_p")
	maxTokens       = attribute.Key("gen_ai.request.max_tokens")
	requestSeed     = attribute.Key("gen_ai.request.seed")
	reasoningLevel  = attribute.Key("gen_ai.request.reasoning.level")
	outputType      = attribute.Key("gen_ai.output.type")
	responseID      = attribute.Key("gen_ai.response.id")
	responseModel   = attribute.Key("gen_ai.response.model")
	finishReasons   = attribute.Key("gen_ai.response.finish_reasons")
	inputTokens     = attribute.Key("gen_ai.usage.input_tokens")
	outputTokens    = attribute.Key("gen_ai.usage.output_tokens")
	cachedTokens    = attribute.Key("gen_ai.usage.cache_read.input_tokens")
	writtenTokens   = attribute.Key("gen_ai.usage.cache_write.input_tokens")
	reasoningTokens = attribute.Key("gen_ai.usage.reasoning.output_tokens")
	toolName        = attribute.Key("gen_ai.tool.name")
	toolType        = attribute.Key("gen_ai.tool.type")
	toolCallID      = attribute.Key("gen_ai.tool.call.id")
	evaluationName  = attribute.Key("gen_ai.evaluation.name")
	evaluationValue = attribute.Key("gen_ai.evaluation.score.value")
	evaluationLabel = attribute.Key("gen_ai.evaluation.score.label")
	evaluationWhy   = attribute.Key("gen_ai.evaluation.explanation")

	mcpMethod     = attribute.Key("mcp.method.name")
	errorType     = attribute.Key("error.type")
	serverAddress = attribute.Key("server.address")
	serverPort    = attribute.Key("server.port")
	transport     = attribute.Key("network.transport")
	suiteName     = attribute.Key("test.suite.name")
	suiteStatus   = attribute.Key("test.suite.run.status")
	caseName      = attribute.Key("test.case.name")
	caseStatus    = attribute.Key("test.case.result.status")

	// These have the content of conversations, so they need CaptureContent.
	inputMessages   = attribute.Key("gen_ai.input.messages")
	outputMessages  = attribute.Key("gen_ai.output.messages")
	toolDefinitions = attribute.Key("gen_ai.tool.definitions")
	toolArguments   = attribute.Key("gen_ai.tool.call.arguments")
	toolResult      = attribute.Key("gen_ai.tool.call.result")
)

// hosts are the providers that the conventions name, by patterns of [path.Match] for their hosts.
var hosts = []struct{ host, provider string }{
	{"api.openai.com", "openai"},
	{"*.openai.azure.com", "azure.ai.openai"},
	{"*.services.ai.azure.com", "azure.ai.inference"},
	{"api.anthropic.com", "anthropic"},
	{"generativelanguage.googleapis.com", "gcp.gemini"},
	{"*aiplatform.googleapis.com", "gcp.vertex_ai"},
	{"bedrock*.amazonaws.com", "aws.bedrock"},
	{"*.ml.cloud.ibm.com", "ibm.watsonx.ai"},
	{"api.cohere.*", "cohere"},
	{"api.deepseek.com", "deepseek"},
	{"api.groq.com", "groq"},
	{"api.mistral.ai", "mistral_ai"},
	{"api.moonshot.*", "moonshot_ai"},
	{"api.perplexity.ai", "perplexity"},
	{"api.x.ai", "x_ai"},
}

// CaptureContent is the environment variable that lets traces have prompts, replies, the tools that
// are offered, and the arguments and results of tools, if it is true.
const CaptureContent = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// The names of Assay's own attributes.
const (
	experimentName = attribute.Key("assay.experiment")
	runID          = attribute.Key("assay.run")
	trialID        = attribute.Key("assay.trial")
	attemptNumber  = attribute.Key("assay.attempt")
	taskID         = attribute.Key("assay.task")
	modelName      = attribute.Key("assay.model")
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
