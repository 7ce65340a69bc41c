package sim

import "testing"

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
	} {
		if got := unwrapped(content); got != answer {
			t.Errorf("unwrapped(%s) = %s", content, got)
		}
	}
	for _, content := range []string{"", "done", "[]", "{}", "null", `"text"`, `[1]`} {
		if got := unwrapped(content); got != content && content != "[1]" {
			t.Errorf("unwrapped(%s) = %s", content, got)
		}
	}
}
