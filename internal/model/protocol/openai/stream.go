package openai

import (
	"encoding/json"
	"errors"

	"github.com/assay-eval/assay/internal/model/wire"
)

// assemble joins the chunks of a streamed completion into the completion that the endpoint should
// have sent. The error explains why the stream is not a completion.
func assemble(events [][]byte) ([]byte, error) {
	doc := make(map[string]any)
	done := false
	for _, event := range events {
		if string(event) == "[DONE]" {
			done = true
			break
		}
		var chunk map[string]any
		if err := wire.Unmarshal(event, &chunk); err != nil {
			return nil, errors.New("an event of the stream is not a JSON object")
		}
		join(doc, chunk)
	}

	choices, _ := doc["choices"].([]any)
	for _, c := range choices {
		choice, _ := c.(map[string]any)
		if delta, ok := choice["delta"]; ok {
			choice["message"] = delta
		}
		done = done || choice["finish_reason"] != nil
		if doc["usage"] == nil && choice["usage"] != nil { // Moonshot
			doc["usage"] = choice["usage"]
		}
	}
	if groq, ok := doc["x_groq"].(map[string]any); ok && doc["usage"] == nil {
		doc["usage"] = groq["usage"]
	}
	if !done && doc["error"] == nil {
		return nil, errors.New("the stream of events ended before the reply did")
	}
	return json.Marshal(doc)
}

// join adds a later part of an object to the earlier parts. Texts that arrive in pieces are
// appended, lists are joined by the index of their entries, and other values replace earlier ones.
func join(into, part map[string]any) {
	for name, value := range part {
		switch value := value.(type) {
		case nil:
		case string:
			text, _ := into[name].(string)
			if isPiece[name] {
				into[name] = text + value
			} else if value != "" {
				into[name] = value
			}
		case map[string]any:
			inner, ok := into[name].(map[string]any)
			if !ok {
				inner = make(map[string]any)
				into[name] = inner
			}
			join(inner, value)
		case []any:
			list, _ := into[name].([]any)
			into[name] = joinList(list, value)
		default:
			into[name] = value
		}
	}
}

// isPiece holds the fields whose texts arrive in pieces.
var isPiece = map[string]bool{
	"content": true, "reasoning_content": true, "reasoning": true, "refusal": true,
	"arguments": true, "text": true, "summary": true,
}

// joinList adds entries to the entries with the same index. An entry without an index, or with a
// new ID, is a new one.
func joinList(list, part []any) []any {
	for _, p := range part {
		entry, ok := p.(map[string]any)
		if !ok {
			list = append(list, p)
			continue
		}
		if old := sameEntry(list, entry); old != nil {
			join(old, entry)
			continue
		}
		fresh := make(map[string]any)
		join(fresh, entry)
		list = append(list, fresh)
	}
	return list
}

func sameEntry(list []any, entry map[string]any) map[string]any {
	for _, l := range list {
		old, _ := l.(map[string]any)
		id, newID := old["id"], entry["id"]
		sameID := id == nil || newID == nil || newID == "" || id == newID
		if index := entry["index"]; index != nil && index == old["index"] && sameID {
			return old
		}
	}
	return nil
}
