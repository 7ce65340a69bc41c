package assay_test

import (
	"testing"

	"github.com/assay-eval/assay"
)

// TestSameModel checks names that endpoints order and serve. "no" marks different models.
func TestSameModel(t *testing.T) {
	const no = "no"
	for _, row := range []struct{ ordered, served, ignored string }{
		{"gpt-4o", "gpt-4o", ""},
		{"gpt-4o", "GPT-4o", "spelling"},
		{"openai/gpt-4o", "gpt-4o", "vendor"},
		{"gpt-4o", "azure/gpt-4o", "vendor"},
		{"llama-v3p1-8b-instruct", "accounts/fireworks/models/llama-v3p1-8b-instruct", "vendor"},
		{"deepseek/deepseek-r1:free", "deepseek/deepseek-r1", "route"},
		{"deepseek/deepseek-r1:nitro", "deepseek-r1", "vendor, route"},
		{"llama3", "llama3:latest", "route"},
		{"gpt-4o-mini", "gpt-4o-mini-2024-07-18", "date"},
		{"openai/gpt-4o-mini", "gpt-4o-mini-2024-07-18", "vendor, date"},
		{"gpt-4o-mini-2024-07-18", "gpt-4o-mini", "date"},
		{"claude-3-5-sonnet", "claude-3-5-sonnet-20241022", "date"},
		{"claude-3-5-sonnet@20241022", "claude-3-5-sonnet-20241022", "spelling"},
		{"claude-3-5-sonnet-latest", "claude-3-5-sonnet-20241022", "date"},
		{"mistral-large-latest", "mistral-large-2411", "date"},
		{"gpt-4", "gpt-4-0613", "date"},
		{"deepseek-v3", "DeepSeek-V3-0324", "date"},
		{"command-r-plus", "command-r-plus-08-2024", "date"},
		{"gemini-2.5-pro-preview", "models/gemini-2.5-pro-preview-05-06", "vendor, date"},
		{"gemini-1.5-pro", "gemini-1.5-pro-002", "date"},
		{"gpt-4o-mini-0718", "gpt-4o-mini-2024-07-18", "date"},

		{"gpt-4o", "gpt-4o-mini", no},
		{"gpt-4o", "gpt-4.1", no},
		{"gpt-4o", "", no},
		{"", "gpt-4o", no},
		{"gpt-4-0613", "gpt-4-1106", no},
		{"gpt-4o-2024-05-13", "gpt-4o-2024-08-06", no},
		{"gemini-1.5-pro-001", "gemini-1.5-pro-002", no},
		{"qwen2.5:7b", "qwen2.5:72b", no},
		{"qwen2.5", "qwen2.5:72b", no},
		{"meta-llama/llama-3-8b", "someone/llama-3-8b", no},
		{"deepseek-r1", "deepseek-r1:thinking", no},
		{"m", "m-2024-13-01", no},
		{"m", "m-4096", no},
		{"openai/", "openai/gpt-4o", no},
	} {
		t.Run(row.ordered+"~"+row.served, func(t *testing.T) {
			ignored, ok := assay.SameModel(row.ordered, row.served)
			if !ok {
				ignored = no
			}
			if ignored != row.ignored {
				t.Errorf("ignored %q, want %q", ignored, row.ignored)
			}
		})
	}
}
