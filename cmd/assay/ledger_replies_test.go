//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// bodies write replies: a text, or a call of a tool that does not exist.
var bodies = map[string]func(model string, use doc, call bool) string{
	"openai": completion, "azure": completion,
	"anthropic": func(model string, use doc, call bool) string {
		return text(doc{
			"type": "message", "role": "assistant", "model": model, "usage": use,
			"content": []any{claudeBlock(call)}, "stop_reason": claudeStop(call),
		})
	},
	"gemini": func(model string, use doc, call bool) string {
		part := doc{"text": "hm"}
		if call {
			part = doc{"functionCall": doc{"name": "nothing", "args": doc{}}}
		}
		return text(doc{
			"modelVersion": model, "usageMetadata": use,
			"candidates": []any{doc{
				"finishReason": "STOP", "content": doc{"role": "model", "parts": []any{part}},
			}},
		})
	},
	"responses": func(model string, use doc, call bool) string {
		return text(response(model, use, call))
	},
}

func text(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

func chatMessage(call bool) (message doc, finish string) {
	if !call {
		return doc{"role": "assistant", "content": "hm"}, "stop"
	}
	return doc{"role": "assistant", "content": nil, "tool_calls": []any{doc{
		"index": 0, "id": "c", "type": "function",
		"function": doc{"name": "nothing", "arguments": "{}"},
	}}}, "tool_calls"
}

func completion(model string, use doc, call bool) string {
	message, finish := chatMessage(call)
	return text(doc{
		"object": "chat.completion", "model": model, "usage": use,
		"choices": []any{doc{"index": 0, "message": message, "finish_reason": finish}},
	})
}

// chunks writes a completion as a stream. The usage is in the last chunk: at its usual place, in
// the choice or in x_groq.
func chunks(place string) func(string, doc, bool) string {
	return func(model string, use doc, call bool) string {
		delta, finish := chatMessage(call)
		chunk := func(delta doc, finish any) (all, choice doc) {
			choice = doc{"index": 0, "delta": delta, "finish_reason": finish}
			return doc{
				"object": "chat.completion.chunk", "model": model, "choices": []any{choice},
			}, choice
		}
		first, _ := chunk(delta, nil)
		last, choice := chunk(doc{}, finish)
		switch place {
		case "choice":
			choice["usage"] = use
		case "x_groq":
			last["x_groq"] = doc{"id": "req_1", "usage": use}
		default:
			last["usage"] = use
		}
		return "data: " + text(first) + "\n\ndata: " + text(last) + "\n\ndata: [DONE]\n\n"
	}
}

func claudeBlock(call bool) doc {
	if call {
		return doc{"type": "tool_use", "id": "c", "name": "nothing", "input": doc{}}
	}
	return doc{"type": "text", "text": "hm"}
}

func claudeStop(call bool) string {
	if call {
		return "tool_use"
	}
	return "end_turn"
}

// claudeEvents writes a message as a stream, whose last event has the final output.
func claudeEvents(model string, use doc, call bool) string {
	early := maps.Clone(use)
	early["output_tokens"] = 1
	var all strings.Builder
	for _, e := range []doc{
		{"type": "message_start", "message": doc{
			"type": "message", "role": "assistant", "model": model, "content": []any{},
			"stop_reason": nil, "usage": early,
		}},
		{"type": "content_block_start", "index": 0, "content_block": claudeBlock(call)},
		{"type": "content_block_stop", "index": 0},
		{
			"type": "message_delta", "delta": doc{"stop_reason": claudeStop(call)},
			"usage": doc{"output_tokens": use["output_tokens"]},
		},
		{"type": "message_stop"},
	} {
		fmt.Fprintf(&all, "event: %s\ndata: %s\n\n", e["type"], text(e))
	}
	return all.String()
}

func response(model string, use doc, call bool) doc {
	item := doc{"type": "message", "role": "assistant", "status": "completed", "content": []any{
		doc{"type": "output_text", "text": "hm", "annotations": []any{}},
	}}
	if call {
		item = doc{
			"type": "function_call", "call_id": "c", "name": "nothing", "arguments": "{}",
			"status": "completed",
		}
	}
	return doc{
		"object": "response", "model": model, "status": "completed", "output": []any{item},
		"usage": use,
	}
}

func responseEvents(model string, use doc, call bool) string {
	return "event: response.completed\ndata: " + text(doc{
		"type": "response.completed", "response": response(model, use, call),
	}) + "\n\n"
}
