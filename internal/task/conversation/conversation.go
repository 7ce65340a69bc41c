// Package conversation reads conversations that Assay did not conduct, and judges them by the rules of its own
// episodes. It knows tasks whose tools users wrote, because only their judges state what is right apart
// from the luck of a trial.
//
// A conversation says less than an episode: perhaps not whether a call happened whose answer was an error,
// and never the state of the tools in the end. [Judge.Verdict] therefore replays the calls with the tools of
// the library, in every way that the conversation leaves open. What all of them agree on is the verdict, and
// the rest is withheld with the reason. Nothing is guessed.
package conversation

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// A Format is a way to write conversations down.
type Format string

// The formats.
const (
	Messages Format = "messages" // JSON lines with OpenAI's chat messages
	ATIF     Format = "atif"     // trajectories
	OTLP     Format = "otlp"     // spans of OpenTelemetry's conventions for GenAI
	Inspect  Format = "inspect"  // logs of Inspect, zipped or not
)

// An Origin says where a conversation was read.
type Origin struct {
	File   string `json:"file"`
	Format Format `json:"format"`
	// Line is where it begins in the file, from 1. It is 0 in a zip.
	Line int `json:"line,omitempty"`
	// Digest is the SHA-256 of the text that it was read from.
	Digest string `json:"digest"`
	// Program is the version of Assay that judged it.
	Program string `json:"program"`
}

func (o *Origin) at() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s:%d", o.File, o.Line)
}

// A Conversation is a recorded conversation of a model with tools.
type Conversation struct {
	Origin
	// Name tells it from others of its file. Task is the one that it names, or "".
	Name string
	Task assay.TaskID

	messages []assay.Message
	turns    []assay.TurnRecord
	calls    []call
	// ended is empty if the conversation does not say how it ended, and bare is true if no agent's
	// framework conducted it, so that only the end word ends it.
	ended assay.Ended
	bare  bool
	// trial is what is known of the trial, if it was one of Assay's. It has a seed if seeded is true.
	trial  *assay.Trial
	seeded bool
	// plan has the tools of the plan that the model was shown, if they are recorded.
	plan []string
	// unsure is why no cause can be stated, if none can.
	unsure string
	// gap is why the conversation cannot be judged, if it cannot.
	gap string
}

// A call is a call of a tool as a conversation tells it.
type call struct {
	turn                int
	id, tool, arguments string
	// answered is true if there is a result. text is the result, or the error if it failed with a code, as
	// far as one is known.
	answered, failed bool
	text, code       string
	// fault is the kind of fault that Assay planted, "" for none. It is nil if nobody says.
	fault *assay.ToolFault
	// record is Assay's own record of the call, if there is one.
	record *assay.CallRecord
}

// A message is one of a conversation. A result may say whether the call failed.
type message struct {
	assay.Message
	failed *bool
	code   string
	finish string
}

// maxFile is how many bytes a file may have, and a member of a zip.
const maxFile = 1 << 30

// Read reads the conversations of a file in any format, which follows from the content. The name is for errors
// and origins.
func Read(name string, r io.Reader) ([]Conversation, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	switch {
	case err != nil:
		return nil, err
	case len(data) > maxFile:
		return nil, fmt.Errorf("%s has more than %d bytes\nhint: split it", name, maxFile)
	}
	var all []Conversation
	if bytes.HasPrefix(data, []byte("PK")) {
		all, err = readZip(name, data)
	} else {
		all, err = readJSON(name, bytes.TrimPrefix(data, []byte("\ufeff")))
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // without the names of Go's types
		at := wrong.Field
		if at == "" {
			at = "the value"
		}
		plain := fmt.Sprintf("%s cannot be a JSON %s", at, wrong.Value)
		err = errors.New(strings.Replace(err.Error(), wrong.Error(), plain, 1))
	}
	if err == nil && len(all) == 0 {
		err = fmt.Errorf("%s has no conversation", name)
	}
	return all, err
}

// expected says what can be read.
const expected = "want JSON with steps (a trajectory), resourceSpans (OTLP), samples (a log of Inspect) or messages"

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// readJSON reads values of JSON, one after another or in lists.
func readJSON(name string, data []byte) (all []Conversation, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	var spans traces
	at, line := 0, 1
	for {
		var text json.RawMessage
		err := d.Decode(&text)
		if errors.Is(err, io.EOF) {
			break
		}
		begin := int(d.InputOffset()) - len(text)
		if err != nil { // the value begins behind the one before
			begin = len(data) - len(bytes.TrimLeft(data[begin:], " \t\r\n"))
		}
		line += bytes.Count(data[at:begin], []byte("\n"))
		at = begin
		o := Origin{File: name, Line: line}
		if err != nil {
			return nil, fmt.Errorf("%s: not JSON: %w\nhint: %s", o.at(), err, expected)
		}
		values := []json.RawMessage{text}
		if text[0] == '[' {
			if err := json.Unmarshal(text, &values); err != nil {
				return nil, fmt.Errorf("%s: %w", o.at(), err)
			}
		}
		for _, v := range values {
			o.Digest = digest(v)
			found, err := spans.readValue(o, v)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", o.at(), err)
			}
			all = append(all, found...)
		}
	}
	found, err := spans.conversations()
	return append(all, found...), err
}

// readValue reads one value of JSON in the format that its members show. Spans are kept until all are read.
func (t *traces) readValue(o Origin, text json.RawMessage) (all []Conversation, err error) {
	var has struct {
		Messages json.RawMessage   `json:"messages"`
		Steps    json.RawMessage   `json:"steps"`
		Spans    json.RawMessage   `json:"resourceSpans"`
		Samples  []json.RawMessage `json:"samples"`
		Eval     json.RawMessage   `json:"eval"`
	}
	if err := json.Unmarshal(text, &has); err != nil {
		return nil, fmt.Errorf("not a conversation: %w\nhint: %s", err, expected)
	}
	if has.Messages != nil && has.Steps != nil {
		return nil, errors.New("it has messages and steps, which are two formats\nhint: keep those to be judged")
	}
	one := func(c Conversation, err error) ([]Conversation, error) { return []Conversation{c}, err }
	switch {
	case has.Spans != nil:
		return nil, t.read(o, text)
	case has.Samples != nil || has.Eval != nil:
		for _, s := range has.Samples {
			o.Digest = digest(s)
			c, err := readSample(o, s)
			if err != nil {
				return nil, err
			}
			all = append(all, c)
		}
		return all, nil
	case has.Steps != nil:
		return one(readATIF(o, text))
	case has.Messages != nil:
		return one(readMessages(o, text))
	}
	return nil, errors.New("not a conversation\nhint: " + expected)
}

// tell fills in what follows from the messages: turns, and calls with their results.
func (c *Conversation) tell(all []message) {
	var open []int // calls without a result
	for i, m := range all {
		c.messages = append(c.messages, m.Message)
		switch m.Role {
		case assay.Assistant:
			turn := assay.TurnRecord{Finish: m.finish}
			for _, asked := range m.Calls {
				if c.trial != nil && (asked.Name == "tool_search" || asked.Name == "tool_info") {
					turn.Lookups++
				}
			}
			c.turns = append(c.turns, turn)
			for _, asked := range m.Calls {
				open = append(open, len(c.calls))
				c.calls = append(c.calls, call{
					turn: len(c.turns), id: asked.ID, tool: asked.Name, arguments: asked.Arguments,
				})
			}
		case assay.ToolRole:
			k := 0
			for k < len(open) && m.CallID != "" && c.calls[open[k]].id != m.CallID {
				k++
			}
			if k == len(open) {
				c.gap = fmt.Sprintf("message %d is the result of a call that the conversation does not have", i+1)
				continue
			}
			c.calls[open[k]].answer(&m)
			open = append(open[:k], open[k+1:]...)
		}
	}
}

// answer adds a result.
func (c *call) answer(m *message) {
	c.answered, c.text, c.code = true, m.Content, m.code
	if c.unwrap() {
		return
	}
	if m.failed != nil {
		c.failed = *m.failed
	} else {
		c.failed = fails(m.Content)
	}
}

// unwrap reads a result in the form in which Assay shows it to bare models. It returns false if it has
// another one.
func (c *call) unwrap() bool {
	var a struct {
		Tool, Refused, Error *string
		Success              *bool
		Output               json.RawMessage
		Succeeded            []string
	}
	if json.Unmarshal([]byte(c.text), &a) != nil || a.Succeeded == nil {
		return false
	}
	switch {
	case a.Refused != nil: // it never reached a tool
		c.answered = false
		c.failed = true
	case a.Success == nil || a.Tool == nil:
		return false
	case *a.Success:
		c.text = string(a.Output)
	case a.Error != nil:
		c.failed, c.text = true, *a.Error
		c.code, _, _ = strings.Cut(*a.Error, ":")
	}
	return true
}

// fails reports whether a result that says nothing else reads as an error: a text that begins with the
// word, or an object with a member of that name.
func fails(text string) bool {
	var object map[string]any
	if json.Unmarshal([]byte(text), &object) != nil {
		return strings.HasPrefix(strings.ToLower(strings.TrimSpace(text)), "error")
	}
	switch e := object["error"].(type) {
	case nil:
		return object["is_error"] == true || object["isError"] == true || object["status"] == "error"
	case bool:
		return e
	case string:
		return e != ""
	}
	return true
}

// TaskIn returns which of the tasks with the IDs the conversation is about: the one that it names, or the only
// one if it is alone in its file and names none.
func (c *Conversation) TaskIn(ids []string, alone bool) (assay.TaskID, error) {
	switch {
	case slices.Contains(ids, string(c.Task)):
		return c.Task, nil
	case c.Task == "" && alone && len(ids) == 1:
		return assay.TaskID(ids[0]), nil
	case c.Task == "":
		return "", fmt.Errorf("%s: the conversation names no task, and %s are possible\n"+
			"hint: add a member task with its ID, such as %q", c.at(), assay.Counted(len(ids), "task"), ids[0])
	}
	err := fmt.Errorf("%s: the library has no task %q", c.at(), assay.Visible(assay.Head(string(c.Task), 80)))
	if hint := assay.NameHint(string(c.Task), ids); hint != "" {
		err = fmt.Errorf("%w\nhint: %s", err, hint)
	}
	return "", err
}
