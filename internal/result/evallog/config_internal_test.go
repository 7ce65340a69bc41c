package evallog

import (
	"encoding/json"
	"testing"

	"github.com/assay-eval/assay"
)

func TestConfigHasInspectsNames(t *testing.T) {
	t.Parallel()
	s := assay.Sampling{
		Temperature: new(0.5), Seed: new(int64(7)), Effort: "high", Thinking: new(0),
		ToolChoice: "required", Extra: `{"top_k":40}`, Headers: `{"A":"b"}`,
	}
	got, err := json.Marshal(newConfig(s))
	const want = `{"temperature":0.5,"seed":7,"reasoning_effort":"high","reasoning_tokens":0,` +
		`"extra_body":{"top_k":40},"extra_headers":{"A":"b"}}`
	if err != nil || string(got) != want || toolChoice(s) != "any" {
		t.Errorf("config %s, %v, tool choice %s; want %s and any", got, err, toolChoice(s), want)
	}
	got, err = json.Marshal(newConfig(assay.Sampling{Effort: "max"}))
	if err != nil || string(got) != "{}" || toolChoice(assay.Sampling{}) != "auto" {
		t.Errorf("config %s, %v; want {} and auto", got, err)
	}
}
