package conversation

import (
	"archive/zip"
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/assay-eval/assay"
)

// readZip reads a log of Inspect that is a zip, sample by sample.
func readZip(name string, data []byte) (all []Conversation, err error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("%s: not a log of Inspect: %w", name, err)
	}
	z.RegisterDecompressor(zstd.ZipMethodWinZip, zstd.ZipDecompressor(zstd.WithDecoderConcurrency(1)))
	for _, f := range z.File {
		if !strings.HasPrefix(f.Name, "samples/") || !strings.HasSuffix(f.Name, ".json") {
			continue
		}
		o := Origin{File: name + "/" + f.Name}
		raw, err := member(f)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.at(), err)
		}
		o.Digest = digest(raw)
		c, err := readSample(o, raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.at(), err)
		}
		all = append(all, c)
	}
	return all, nil
}

func member(f *zip.File) ([]byte, error) {
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err == nil && len(raw) > maxFile {
		err = fmt.Errorf("it has more than %d bytes", maxFile)
	}
	return raw, err
}

// limits are the ends of episodes by Inspect's names of limits.
var limits = map[string]assay.Ended{
	"message": assay.TurnLimit, "turn": assay.TurnLimit, "token": assay.TokenLimit, "cost": assay.CostLimit,
	"time": assay.AgentTimeout, "working": assay.AgentTimeout,
}

// readSample reads a sample of a log of Inspect.
func readSample(o Origin, raw json.RawMessage) (Conversation, error) {
	var s struct {
		ID       label           `json:"id"`
		Epoch    int             `json:"epoch"`
		Messages json.RawMessage `json:"messages"`
		Metadata json.RawMessage `json:"metadata"`
		Error    *struct {
			Message string `json:"message"`
		} `json:"error"`
		Limit *struct {
			Type string `json:"type"`
		} `json:"limit"`
		Attachments map[string]string `json:"attachments"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return Conversation{}, fmt.Errorf("sample: %w", err)
	}
	var messages []struct {
		Role    string `json:"role"`
		Content text   `json:"content"`
		CallID  string `json:"tool_call_id"`
		Error   *struct {
			Type    string `json:"type"`
			Message string `json:"message"`
		} `json:"error"`
		Calls []struct {
			ID        string     `json:"id"`
			Function  string     `json:"function"`
			Arguments argumented `json:"arguments"`
			Wrong     string     `json:"parse_error"`
		} `json:"tool_calls"`
		Metadata *assay.TurnRecord `json:"metadata"`
	}
	if s.Messages = attach(s.Messages, s.Attachments); len(s.Messages) > 0 {
		if err := json.Unmarshal(s.Messages, &messages); err != nil {
			return Conversation{}, fmt.Errorf("messages of sample %s: %w", s.ID, err)
		}
	}
	var about struct {
		named
		Calls []assay.CallRecord `json:"calls"`
		Plan  []string           `json:"plan"`
	}
	_ = json.Unmarshal(s.Metadata, &about.named) // metadata of others may have any form
	o.Format = Inspect
	c := Conversation{Origin: o, Name: fmt.Sprintf("%s/%d", s.ID, s.Epoch), Task: cmp.Or(about.task(), assay.TaskID(s.ID))}
	c.tried(s.Metadata)
	if s.Limit != nil && c.ended == "" {
		c.ended = limits[s.Limit.Type]
	}
	if s.Error != nil && c.gap == "" {
		c.gap = "the sample ended in an error: " + assay.Head(s.Error.Message, 200)
	}
	var all []message
	var turns []assay.TurnRecord
	for i, m := range messages {
		role, ok := roles[m.Role]
		if !ok {
			return c, fmt.Errorf("message %d of sample %s has the role %q, want system, user, assistant or tool",
				i+1, s.ID, m.Role)
		}
		out := message{Message: assay.Message{Role: role, Content: string(m.Content), CallID: m.CallID}}
		if role == assay.ToolRole {
			out.failed = new(m.Error != nil)
		}
		if m.Error != nil {
			out.Content, out.code = cmp.Or(out.Content, m.Error.Message), m.Error.Type
		}
		for _, f := range m.Calls {
			arguments := string(f.Arguments)
			if f.Wrong != "" { // the model wrote no object
				arguments = f.Wrong
			}
			out.Calls = append(out.Calls, assay.ToolCall{ID: f.ID, Name: f.Function, Arguments: arguments})
		}
		if role == assay.Assistant && m.Metadata != nil {
			turns = append(turns, *m.Metadata)
		}
		all = append(all, out)
	}
	c.tell(all)
	if c.trial != nil {
		_ = json.Unmarshal(s.Metadata, &about) // Assay has written it
		c.turns, c.plan = turns, about.Plan
		c.recorded(about.Calls)
	}
	return c, nil
}

// attach puts the long texts of a sample, which are kept beside its messages, in their places.
func attach(messages json.RawMessage, attachments map[string]string) json.RawMessage {
	for name, content := range attachments {
		quoted, err := json.Marshal(content)
		if err != nil {
			continue // it is a string
		}
		messages = bytes.ReplaceAll(messages, []byte("attachment://"+name), quoted[1:len(quoted)-1])
	}
	return messages
}
