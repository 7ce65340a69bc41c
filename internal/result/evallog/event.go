package evallog

import (
	"fmt"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
)

// eventsOf returns Inspect's ModelEvents, which are turns, and ToolEvents, which are native calls
// with their results. The input of a turn is a range of the messages in events_data, because each
// turn repeats most of the input of the one before. Only the durations of replies are known; calls
// take no time worth counting.
func eventsOf(a *assay.Attempt, t *assay.Transcript, messages []chatMessage) []doc {
	events := []doc{}
	calls := make(map[string]toolCall)
	at, worked := a.StartedAt, 0.0
	for i, m := range messages {
		now := func(event string) doc {
			return doc{
				{"uuid", fmt.Sprintf("%s-event-%d", attemptName(a), len(events)+1)},
				{"timestamp", export.OrOmit(stamp(at))},
				{"working_start", worked},
				{"event", event},
			}
		}
		switch m.Role {
		case assay.Assistant:
			e := append(now("model"), doc{
				{"model", a.Model},
				{"input", []chatMessage{}},
				{"input_refs", [][2]int{{0, i}}},
				{"tools", []doc{}},
				{"tool_choice", toolChoice(a.Sampling)},
				{"config", newConfig(a.Sampling)},
				{"output", outputOf(m, t.Messages[i].Content)},
			}...)
			seconds := 0.0
			if r := m.Metadata; r != nil {
				at = at.Add(time.Duration(r.QueuedMS+r.WorkingMS) * time.Millisecond)
				seconds = float64(r.WorkingMS) / 1000
				worked += seconds
			}
			events = append(events,
				append(e, doc{{"completed", export.OrOmit(stamp(at))}, {"working_time", seconds}}...))
			for _, c := range m.Calls {
				calls[c.ID] = c
			}
		case assay.ToolRole:
			if c, ok := calls[m.CallID]; ok {
				events = append(events, append(now("tool"), doc{
					{"id", c.ID},
					{"function", c.Function},
					{"arguments", c.Arguments},
					{"result", m.Content},
					{"error", export.OrOmit(m.Error)},
					{"message_id", m.ID},
				}...))
			}
		}
	}
	return events
}
