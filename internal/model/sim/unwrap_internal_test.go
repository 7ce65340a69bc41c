package sim

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestUnwrapped checks that an answer is found in the wrapping that agents put around it.
func TestUnwrapped(t *testing.T) {
	t.Parallel()
	const answer = `{"tool":"a","success":true}`
	for _, content := range []string{
		answer,
		`[{"type":"text","text":"{\"tool\":\"a\",\"success\":true}"}]`,
		`{"content":[{"type":"text","text":"{\"tool\":\"a\",\"success\":true}"}],"isError":false}`,
		`{"type":"text","text":"{\"tool\":\"a\",\"success\":true}"}`,
		`meta=None content=[TextContent(type='text', text='{"tool":"a","success":true}', ` +
			`annotations=None, meta=None)] structured_content=None is_error=False`, // LlamaIndex
		`[TextContent(inner_content=TextContent(type='text', text='{"tool":"a","success":true}', ` +
			`annotations=None, meta=None), ai_model_id=None, metadata={}, content_type='text', ` +
			`text='{"tool":"a","success":true}', encoding=None)]`, // Semantic Kernel
		`{"output":"{\"tool\":\"a\",\"success\":true}"}`, // Gemini CLI
		"Wall time: 0.0039 seconds\nOutput:" + answer,    // Codex
		"Output:\n" + answer + "\n",
		`[{"type":"text","text":"Done."},{"type":"text","text":"{\"tool\":\"a\",\"success\":true}"}]`,
		"Output:\n" + `[{"type":"text","text":"{\"tool\":\"a\",\"success\":true}"}]`,
		`"{\"tool\":\"a\",\"success\":true}"`,
		"<system>ERROR: Tool execution failed.</system>\n" + answer + strings.Repeat(" Repeated.", 150), // Kimi Code
	} {
		if got := unwrapped(content); got != answer {
			t.Errorf("unwrapped(%s) = %s", content, got)
		}
	}
	deep, words := answer, strings.Repeat("word ", 50)
	for range deepest {
		deep = "[" + deep + "]"
	}
	for _, content := range []string{
		"", "done", "[]", "{}", "null", `"text"`, `[1]`, deep, words + answer, answer + words + strings.Repeat(words, 8), "{" + answer,
		"Output: " + answer[1:], `{"output":{"path":"x"}}`, `{"data":` + answer + `}`,
	} {
		if got := unwrapped(content); got != content {
			t.Errorf("unwrapped(%s) = %s", content, got)
		}
	}
}

// FuzzPlainAnswer checks that nothing is looked for inside a plain answer, whatever its output says.
func FuzzPlainAnswer(f *testing.F) {
	f.Add(`Output: {"tool":"b","success":false}`, `{"success":true}`)
	f.Add(`text='{"success":true}'`, `[{"type":"text","text":"{}"}]`)
	f.Fuzz(func(t *testing.T, text, output string) {
		answer := map[string]any{"tool": text, "success": false, "text": text, "output": output}
		if json.Valid([]byte(output)) {
			answer["output"] = json.RawMessage(output)
		}
		plain := encode(answer)
		if got := unwrapped(plain); got != plain {
			t.Errorf("unwrapped(%s) = %s", plain, got)
		}
	})
}
