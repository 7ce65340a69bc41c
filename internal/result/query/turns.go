package query

import (
	"fmt"

	"github.com/assay-eval/assay"
)

// A Turn is a reply of the model with everything up to the next one. The first Turn of a trial has
// the number 0 and holds the messages before the first reply. Texts have no characters that a
// terminal would obey.
type Turn struct {
	Number int
	// Thinking is the model's thinking, and Said the text of its reply.
	Thinking, Said string
	// Asked lists the calls in the reply, with their arguments.
	Asked []string
	// Answers are the messages after the reply.
	Answers []Answer
	// Calls are the calls that were carried out.
	Calls []assay.CallRecord
	// Record is the cost of the reply. It is nil for turn 0.
	Record *assay.TurnRecord
}

// An Answer is a message to the model.
type Answer struct{ Who, Text string }

// Turns returns the conversation. It is nil if there is no transcript.
func (t *Trial) Turns() []Turn {
	if t.Transcript == nil {
		return nil
	}
	return turnsOf(t.Transcript)
}

func turnsOf(tr *assay.Transcript) []Turn {
	all := []Turn{{}}
	for _, m := range tr.Messages {
		if m.Role != assay.Assistant {
			last := &all[len(all)-1]
			last.Answers = append(last.Answers, Answer{string(m.Role), visible(m.Content)})
			continue
		}
		turn := Turn{Number: len(all), Thinking: visible(thinking(m)), Said: visible(m.Content)}
		for _, c := range m.Calls {
			turn.Asked = append(turn.Asked, visible(fmt.Sprintf("%s %s", c.Name, c.Arguments)))
		}
		if n := turn.Number; n <= len(tr.Turns) {
			turn.Record = &tr.Turns[n-1]
		}
		all = append(all, turn)
	}
	for _, c := range tr.Calls {
		if c.Turn >= 0 && c.Turn < len(all) {
			all[c.Turn].Calls = append(all[c.Turn].Calls, c)
		}
	}
	return all
}
