package anthropic

import (
	"encoding/json"
	"errors"
	"maps"

	"github.com/assay-eval/assay/internal/model/wire"
)

// event is an event of a streamed reply.
type event struct {
	Type    string          `json:"type"`
	Message rawFields       `json:"message"`
	Index   int             `json:"index"`
	Block   rawFields       `json:"content_block"`
	Delta   delta           `json:"delta"`
	Usage   rawFields       `json:"usage"`
	Error   json.RawMessage `json:"error"`
}

type rawFields = map[string]json.RawMessage

// delta is a piece of a block, or the end of a reply.
type delta struct {
	Text       string          `json:"text"`
	Thinking   string          `json:"thinking"`
	Signature  string          `json:"signature"`
	Input      string          `json:"partial_json"`
	StopReason json.RawMessage `json:"stop_reason"`
}

// streamed is a block whose texts arrive in pieces.
type streamed struct {
	fields                           rawFields
	text, thinking, signature, input string
}

var errUnfinished = errors.New("the stream of events ended before the reply did")

// assemble joins the events of a streamed reply into the reply that the endpoint should have sent,
// or returns the error among them. Its own error explains why the stream is not a reply.
func assemble(events [][]byte) ([]byte, error) {
	var message, usage rawFields
	var blocks []*streamed
	for _, raw := range events {
		var e event
		if err := wire.Unmarshal(raw, &e); err != nil {
			return nil, errors.New("an event of the stream is not a JSON object")
		}
		switch e.Type {
		case "error", "message": // or a whole reply in one event
			return raw, nil
		case "message_start":
			message, usage = e.Message, make(rawFields)
			_ = json.Unmarshal(message["usage"], &usage)
		case "content_block_start":
			blocks = append(blocks, newStreamed(e.Block))
		case "content_block_delta":
			if e.Index < 0 || e.Index >= len(blocks) {
				return nil, errors.New("a piece in the stream of events belongs to no block")
			}
			blocks[e.Index].add(&e.Delta)
		case "message_delta":
			if message == nil {
				return nil, errUnfinished
			}
			message["stop_reason"] = e.Delta.StopReason
			maps.Copy(usage, e.Usage)
		}
	}
	if message == nil || message["stop_reason"] == nil || string(message["stop_reason"]) == "null" {
		return nil, errUnfinished
	}
	content := make([]rawFields, len(blocks))
	for i, b := range blocks {
		content[i] = b.whole()
	}
	var err error
	if message["content"], err = wire.Marshal(content); err != nil {
		return nil, err
	}
	if message["usage"], err = wire.Marshal(usage); err != nil {
		return nil, err
	}
	return wire.Marshal(message)
}

func newStreamed(start rawFields) *streamed {
	b := &streamed{fields: start}
	for name, text := range map[string]*string{
		"text": &b.text, "thinking": &b.thinking, "signature": &b.signature,
	} {
		_ = json.Unmarshal(start[name], text)
	}
	return b
}

func (b *streamed) add(d *delta) {
	b.text += d.Text
	b.thinking += d.Thinking
	b.signature += d.Signature
	b.input += d.Input
}

// whole returns the block with its texts. An input that is not JSON becomes a text.
func (b *streamed) whole() rawFields {
	out := maps.Clone(b.fields)
	if out == nil {
		out = make(rawFields)
	}
	for name, text := range map[string]string{
		"text": b.text, "thinking": b.thinking, "signature": b.signature,
	} {
		if text != "" {
			out[name], _ = wire.Marshal(text)
		}
	}
	if json.Valid([]byte(b.input)) {
		out["input"] = json.RawMessage(b.input)
	} else if b.input != "" {
		out["input"], _ = wire.Marshal(b.input)
	}
	return out
}
