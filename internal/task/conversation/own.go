package conversation

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world/own"
)

// tried takes over what Assay's own exports say about the trial: an attempt as JSON lines have it. Its verdict
// is not read.
func (c *Conversation) tried(record json.RawMessage) {
	var a assay.Attempt
	if len(record) == 0 || json.Unmarshal(record, &a) != nil || a.ID == "" {
		return
	}
	c.Task, c.trial, c.seeded = a.Task, &a.Trial, true
	c.ended, c.bare = a.Ended, a.AgentModel == ""
	if calls, _ := a.Deviating(); len(calls) > 0 || a.ModelFaults != "" {
		c.unsure = "it depends on what the agent's framework did with calls and with faults of its model, " +
			"which the conversation does not say"
	}
	switch err := a.CheckID(); {
	case err != nil:
		c.gap = fmt.Sprintf("its record of the trial was changed: %v", err)
	case a.FaultKind != "":
		c.gap = fmt.Sprintf("the trial ended in the fault %s, which is no result", a.FaultKind)
	case a.World != own.Name:
		c.gap = "the trial is of the world " + a.World + ", and only those of " + own.Name + " are judged here"
	}
}

// recorded replaces the calls by Assay's records of them, which may lack their outputs.
func (c *Conversation) recorded(records []assay.CallRecord) {
	told := c.calls
	c.calls = nil
	for i := range records {
		r := &records[i]
		if r.Turn < 1 || r.Turn > len(c.turns) {
			c.gap = fmt.Sprintf("its record of call %d is of turn %d of %d", i+1, r.Turn, len(c.turns))
			return
		}
		k := slices.IndexFunc(told, func(t call) bool {
			return t.turn == r.Turn && t.answered && (t.tool == r.Tool || strings.Contains(t.arguments, strconv.Quote(r.Tool)))
		})
		if k >= 0 {
			if r.OK && r.Output == "" {
				r.Output = told[k].text
			}
			told = slices.Delete(slices.Clone(told), k, k+1)
		}
		c.calls = append(c.calls, call{turn: r.Turn, tool: r.Tool, record: r})
	}
}
