package evallog

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/assay-eval/assay"
)

// moment has the fields of all of Inspect's events.
type moment struct {
	UUID    string  `json:"uuid"`
	At      string  `json:"timestamp,omitempty"`
	Working float64 `json:"working_start"` // seconds of work before the event
	Event   string  `json:"event"`
}

// modelEvent is Inspect's ModelEvent, which is a turn. Its input is a range of
// the messages in events_data, because each turn repeats most of the input of
// the one before.
type modelEvent struct {
	moment
	Model      string         `json:"model"`
	Input      []message      `json:"input"`
	InputRange [][2]int       `json:"input_refs"`
	Tools      []object       `json:"tools"`
	Choice     string         `json:"tool_choice"`
	Config     generateConfig `json:"config"`
	Output     modelOutput    `json:"output"`
	Completed  string         `json:"completed,omitempty"`
	Time       float64        `json:"working_time"`
}

// toolEvent is Inspect's ToolEvent: a native call and its result.
type toolEvent struct {
	moment
	ID        string          `json:"id"`
	Function  string          `json:"function"`
	Arguments json.RawMessage `json:"arguments"`
	Result    any             `json:"result"`
	Error     *toolError      `json:"error,omitempty"`
	Message   string          `json:"message_id"`
}

// eventsData holds the messages that events refer to.
type eventsData struct {
	Messages []message `json:"messages"`
	Calls    []object  `json:"calls"`
}

// eventsOf returns the turns and native calls of a conversation. Only the
// durations of replies are known; calls take no time worth counting.
func eventsOf(a *assay.Attempt, t *assay.Transcript, messages []message) []any {
	events := []any{}
	calls := make(map[string]toolCall)
	at, worked := a.StartedAt, 0.0
	for i, m := range messages {
		now := moment{
			UUID: fmt.Sprintf("%s-event-%d", attemptName(a), len(events)+1),
			At:   stamp(at), Working: worked,
		}
		switch m.Role {
		case assay.Assistant:
			now.Event = "model"
			e := modelEvent{
				moment: now, Model: a.Model, Input: []message{}, InputRange: [][2]int{{0, i}},
				Tools: []object{}, Choice: toolChoice(a.Sampling),
				Config: newConfig(a.Sampling),
				Output: outputOf(m, t.Messages[i].Content),
			}
			if r := m.Metadata; r != nil {
				at = at.Add(time.Duration(r.QueuedMS+r.WorkingMS) * time.Millisecond)
				e.Time = float64(r.WorkingMS) / 1000
				worked += e.Time
			}
			e.Completed = stamp(at)
			events = append(events, e)
			for _, c := range m.Calls {
				calls[c.ID] = c
			}
		case assay.ToolRole:
			if c, ok := calls[m.CallID]; ok {
				now.Event = "tool"
				events = append(events,
					toolEvent{now, c.ID, c.Function, c.Arguments, m.Content, m.Error, m.ID})
			}
		}
	}
	return events
}
