package assay_test

import (
	"testing"

	"github.com/assay-eval/assay"
)

// TestContradiction checks pairs of a model and its deployment as people write them. The first rows
// have to be distinguished, and the others must raise no false alarm.
func TestContradiction(t *testing.T) {
	for _, row := range []struct{ a, b, want string }{
		{"qwen2.5-7b-instruct", "qwen2.5-72b", "size 7b and 72b"},
		{"qwen2.5-7b-instruct", "prod-72b", "size 7b and 72b"},
		{"mixtral-8x7b", "mixtral-8x22b", "size 8x7b and 8x22b"},
		{"gemma-3-270m", "gemma-3-4b", "size 270m and 4b"},
		{"qwen2.5:7b", "qwen2.5:32b", "size 7b and 32b"},
		{"gpt-4o", "gpt-4.1", "version gpt-4o and gpt-4.1"},
		{"gpt-4o", "my-gpt4-deployment", "version gpt-4o and gpt4"},
		{"gpt-4.1", "gpt-4.1-mini", "kind plain and mini"},
		{"gpt-4o", "prod-gpt4omini", "kind plain and mini"},
		{"gpt-4o", "o3-mini", "family gpt and o"},
		{"o3", "o4-mini", "version o3 and o4"},
		{"o1", "gpt-o3-mini", "version o1 and gpt-o3"},
		{"claude-3-5-sonnet", "claude-3-sonnet", "version claude-3-5 and claude-3"},
		{"claude-sonnet-4-5", "anthropic/claude-opus-4.5", "kind sonnet and opus"},
		{"gemini-2.5-flash", "gemini-2.5-flash-lite", "kind plain and lite"},
		{"gemini-2.5-flash", "models/gemini-2.5-pro", "kind flash and pro"},
		{"llama-3-70b", "Llama-3.3-70B-Instruct", "version llama-3 and llama-3.3"},
		{"qwen2.5-7b-instruct", "Qwen/Qwen2.5-Coder-7B-Instruct", "kind plain and coder"},
		{"qwen2.5-7b-instruct", "qwen2.5vl:7b", "kind plain and vl"},
		{"qwen2.5-7b", "qwen3-7b", "version qwen2.5 and qwen3"},
		{"deepseek-v3", "deepseek-r1", "version deepseek-v3 and deepseek-r1"},
		{"deepseek-chat", "deepseek-reasoner", "kind chat and reasoner"},
		{"deepseek-r1", "deepseek-r1-distill-qwen-32b", "kind plain and distill"},
		{"deepseek-v3", "Llama-3.3-70B-Instruct", "family deepseek and llama"},
		{"mistral-large", "mistral-small-2503", "kind large and small"},
		{
			"mistral-7b-instruct-v0.2", "mistral-7b-instruct-v0.3",
			"version mistral-v0.2 and mistral-v0.3",
		},
		{"gpt-4o-2024-05-13", "gpt-4o-2024-08-06", "date 20240513 and 20240806"},
		{
			"Qwen3-235B-A22B-Instruct-2507", "Qwen3-235B-A22B-Thinking-2507",
			"kind instruct and thinking",
		},

		{"gpt-4o", "gpt-4o", ""},
		{"gpt-4o", "eval-prod-eastus2", ""},
		{"gpt-4o", "research-team-b", ""},
		{"gpt-4o-mini", "nova-gpt4o-mini", ""},
		{"gpt-4o", "gpt-4o-2", ""},
		{"gpt-4", "gpt-4-2", ""},
		{"gpt-4.1", "gpt-4-1", ""},
		{"gpt-4.1", "gpt-41-swedencentral", ""},
		{"gpt-4", "gpt-4-1106-preview", ""},
		{"gpt-4", "gpt-4-32k-0613", ""},
		{"gpt-4o", "gpt-4-o", ""},
		{"gpt-4o", "chatgpt-4o-latest", ""},
		{"gpt-3.5-turbo", "gpt-35-turbo", ""},
		{"gpt-3.5-turbo", "hackathon-poc-turbo35", ""},
		{"gpt-35-turbo", "gpt35", ""},
		{"gpt-oss-120b", "openai/gpt-oss-120b:free", ""},
		{"o3-mini", "gpto3mini", ""},
		{"o3-mini", "o3-mini-2025-01-31", ""},
		{"gpt-5@high", "gpt-5", ""},
		{"gpt-4o-mini", "gpt-4o-mini-math-eval", ""},
		{"claude-3-5-sonnet", "us.anthropic.claude-3-5-sonnet-20241022-v2:0", ""},
		{"claude-sonnet-4", "claude-sonnet-4@20250514", ""},
		{"claude-sonnet-4", "claude-sonnet-4-20250514-v1:0", ""},
		{"claude-opus-4.1", "claude-opus-4-1-20250805", ""},
		{"gemini-2.0-flash", "gemini-2.0-flash-001", ""},
		{"gemini-1.5-pro", "publishers/google/models/gemini-1.5-pro-002", ""},
		{"llama-3.1-8b", "accounts/fireworks/models/llama-v3p1-8b-instruct", ""},
		{"llama-3.1-8b", "Meta-Llama-3-1-8B-Instruct", ""},
		{"llama-3.1-8b", "llama3.1:8b", ""},
		{"Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct-Turbo", ""},
		{"llama-4-scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct", ""},
		{"nemotron-70b", "nvidia/llama-3.1-nemotron-70b-instruct", ""},
		{"qwen2.5-7b-instruct", "Qwen/Qwen2.5-7B-Instruct-AWQ", ""},
		{"qwen2.5-7b", "qwen2.5-7b-instruct-1m", ""},
		{"qwen3-235b", "Qwen/Qwen3-235B-A22B-Instruct-2507", ""},
		{"deepseek-v3", "DeepSeek-V3-0324", ""},
		{"deepseek-v3", "deepseek-chat", ""},
		{"deepseek-r1", "deepseek-reasoner", ""},
		{"codestral", "Codestral-2501-2", ""},
		{"mistral-large", "mistral-large-latest", ""},
		{"mistral-7b", "mistral-7b-instruct-v0.3", ""},
		{"phi-3", "phi-3-mini-4k-instruct", ""},
		{"kimi-k2", "moonshotai/kimi-k2-0905-preview", ""},
		{"glm-4-9b", "THUDM/glm-4-9b-chat", ""},
		{"gpt-5-nano", "sim/listed", ""},
		{"baseline", "control-2", ""},
	} {
		t.Run(row.a+"~"+row.b, func(t *testing.T) {
			if got := assay.Contradiction(row.a, row.b); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			if there := assay.Contradiction(row.b, row.a); (there == "") != (row.want == "") {
				t.Errorf("the other way round: %q", there)
			}
		})
	}
}
