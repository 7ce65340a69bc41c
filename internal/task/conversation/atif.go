package conversation

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/assay-eval/assay"
)

// readATIF reads a trajectory in the Agent Trajectory Interchange Format.
func readATIF(o Origin, raw json.RawMessage) (Conversation, error) {
	var t struct {
		named
		Version string `json:"schema_version"`
		Session string `json:"session_id"`
		ID      string `json:"trajectory_id"`
		Agent   struct {
			Name string `json:"name"`
		} `json:"agent"`
		Steps []struct {
			Source  string `json:"source"`
			Message text   `json:"message"`
			Reason  string `json:"reasoning_content"`
			Calls   []struct {
				ID        string     `json:"tool_call_id"`
				Name      string     `json:"function_name"`
				Arguments argumented `json:"arguments"`
				Extra     struct {
					Written string `json:"written_arguments"`
				} `json:"extra"`
			} `json:"tool_calls"`
			Observation struct {
				Results []struct {
					Call    string `json:"source_call_id"`
					Content text   `json:"content"`
					Extra   outcome
				} `json:"results"`
			} `json:"observation"`
			Inferences int `json:"llm_call_count"`
			Extra      struct {
				Finish string             `json:"finish"`
				Calls  []assay.CallRecord `json:"calls"`
			} `json:"extra"`
		} `json:"steps"`
		Extra struct {
			Assay json.RawMessage `json:"assay"`
		} `json:"extra"`
	}
	if err := json.Unmarshal(raw, &t); err != nil {
		return Conversation{}, fmt.Errorf("trajectory: %w", err)
	}
	var about named // its own fields are hidden by those above
	if err := json.Unmarshal(raw, &about); err != nil {
		return Conversation{}, fmt.Errorf("trajectory: %w", err)
	}
	o.Format = ATIF
	c := Conversation{Origin: o, Name: cmp.Or(t.ID, t.Session), Task: about.task()}
	c.tried(t.Extra.Assay)
	var all []message
	var records []assay.CallRecord
	unmetered := 0
	for i, s := range t.Steps {
		m := message{Message: assay.Message{Content: string(s.Message), Reasoning: s.Reason}, finish: s.Extra.Finish}
		switch role, ok := roles[s.Source]; {
		case !ok || role == assay.ToolRole:
			return c, fmt.Errorf("step %d has the source %q, want system, user or agent", i+1, s.Source)
		case role == assay.Assistant && s.Inferences == 0:
			unmetered++
			fallthrough
		default:
			m.Role = role
		}
		for _, f := range s.Calls {
			m.Calls = append(m.Calls, assay.ToolCall{
				ID: f.ID, Name: f.Name, Arguments: cmp.Or(f.Extra.Written, string(f.Arguments)),
			})
		}
		records = append(records, s.Extra.Calls...)
		all = append(all, m)
		for _, r := range s.Observation.Results {
			all = append(all, message{Message: assay.Message{
				Role: assay.ToolRole, CallID: r.Call, Content: string(r.Content),
			}, failed: r.Extra.failed()})
		}
	}
	c.tell(all)
	if c.trial != nil {
		c.turns = c.turns[:len(c.turns)-unmetered] // an agent's last word is no reply of its model
		c.recorded(records)
	}
	return c, nil
}

// An outcome is what the sources of results say about failures besides the text.
type outcome struct {
	IsError *bool  `json:"is_error"`
	Status  string `json:"status"`
}

func (o *outcome) failed() *bool {
	if o.IsError == nil && o.Status != "" {
		return new(o.Status == "error" || o.Status == "failed")
	}
	return o.IsError
}
