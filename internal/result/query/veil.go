package query

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"iter"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/store"
	"github.com/assay-eval/assay/internal/task/library"
)

// A veil hides the texts of private libraries in what people read: it replaces the names of tools
// by digests, and everything that quotes a task by a note. A nil veil hides nothing.
type veil struct {
	keys map[assay.RunID]string // of the runs with private libraries
}

// hidden stands for a text of a private library.
const hidden = "[private]"

// readVeil returns the veil of a store, or nil if the user wants to see everything.
func readVeil(ctx context.Context, db *store.DB, reveal bool) (*veil, error) {
	if reveal {
		return nil, nil
	}
	plans, err := db.Plans(ctx)
	if err != nil {
		return nil, err
	}
	v := &veil{make(map[assay.RunID]string)}
	known := make(map[string]string) // keys by digests
	for run, e := range plans {
		key, ok := known[e.Library.Digest]
		if !ok {
			parts, err := db.LibraryParts(ctx, e.Library.Digest)
			if err != nil {
				return nil, err
			}
			if key, err = library.KeyOf(parts); err != nil {
				return nil, err
			}
			known[e.Library.Digest] = key
		}
		if key != "" {
			v.keys[run] = key
		}
	}
	return v, nil
}

// hides reports whether a run's texts are hidden.
func (v *veil) hides(run assay.RunID) bool { return v != nil && v.keys[run] != "" }

// tool returns the digest that stands for a tool. Only who has the library can tell which tool it
// is.
func tool(key, name string) string {
	if name == "" {
		return ""
	}
	sum := sha256.Sum256([]byte("assay private tool 1\x00" + key + "\x00" + name))
	return "tool-" + hex.EncodeToString(sum[:4])
}

func tools(key string, names []string) []string {
	names = slices.Clone(names)
	for i := range names {
		names[i] = tool(key, names[i])
	}
	return names
}

// attempt returns an attempt as the veil shows it.
func (v *veil) attempt(a assay.Attempt) assay.Attempt {
	if !v.hides(a.Run) {
		return a
	}
	key := v.keys[a.Run]
	a.RequiredTools, a.ExecutedTools = tools(key, a.RequiredTools), tools(key, a.ExecutedTools)
	a.Broken = tool(key, a.Broken)
	if quotes(a.FaultKind) {
		a.FaultDetail = hide(a.FaultDetail)
	}
	return a
}

// attempts hides texts in a sequence.
func (v *veil) attempts(all iter.Seq2[assay.Attempt, error]) iter.Seq2[assay.Attempt, error] {
	return Filter(all, func(a *assay.Attempt) bool {
		*a = v.attempt(*a)
		return true
	})
}

// quotes reports whether the details of a kind of fault can quote a conversation.
func quotes(kind assay.FaultKind) bool {
	return slices.Contains([]assay.FaultKind{
		assay.BadRequest, assay.ContentFilter, assay.Malformed, assay.Harness, assay.ToolServer,
		assay.AgentEnded,
	}, kind)
}

func hide(text string) string {
	if text == "" {
		return ""
	}
	return hidden
}

// transcript returns a run's transcript as the veil shows it: who spoke and which calls worked.
func (v *veil) transcript(run assay.RunID, t *assay.Transcript) *assay.Transcript {
	if t == nil || !v.hides(run) {
		return t
	}
	key, out := v.keys[run], *t
	out.Messages = nil
	for _, m := range t.Messages {
		m.Content, m.Reasoning, m.State = hide(m.Content), hide(m.Reasoning), nil
		calls := m.Calls
		m.Calls = nil
		for _, c := range calls {
			if !strings.Contains(c.Name, "tool_") { // not a search
				c.Name = tool(key, c.Name)
			}
			c.Arguments = "{}"
			m.Calls = append(m.Calls, c)
		}
		out.Messages = append(out.Messages, m)
	}
	out.Calls = nil
	for _, c := range t.Calls {
		c.Tool, c.Arguments, c.Asked = tool(key, c.Tool), "", ""
		c.Error, c.Output = hide(c.Error), hide(c.Output)
		c.Written, c.Shown = "", hide(c.Shown)
		out.Calls = append(out.Calls, c)
	}
	out.Plan, out.State, out.Answer = tools(key, t.Plan), nil, hide(t.Answer)
	if t.Agent != nil {
		out.Agent = &assay.AgentRecord{Exit: t.Agent.Exit, ModelFaults: t.Agent.ModelFaults}
	}
	return &out
}
