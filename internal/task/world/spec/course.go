package spec

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/policy"
)

// A Use is the effect of a call on its task. A call is wanted if its success shortens the rest of
// the plan: its tool is the next required one, or a dependency that has not succeeded and that the
// rest of the plan inserts.
type Use int

// The uses of a call, best first.
const (
	Useful   Use = iota // wanted, and it succeeded
	Unlucky             // wanted, and it failed by chance
	Mistaken            // wanted, and it failed by the model's own mistake
	Unsound             // wanted, but with the wrong data or values
	Idle                // not wanted, however it went
)

// Wasted reports whether the best policy would not have made the call with the same luck.
func (u Use) Wasted() bool { return u > Unlucky }

// A Course follows the effects of an episode's calls on its task.
type Course struct {
	Catalog  *assay.Catalog
	Required []string
	// Firsts means that a required tool counts by its first success. Then no plan inserts it
	// before its place, and if it succeeded too early, it need not succeed again.
	Firsts bool
	// Substitutes means that a tool that stands for another one counts as that.
	Substitutes bool
	// Sound judges the data and the values of each call in turn. It reports whether they are
	// right for any step of the plan, and for the required tool number next. If Sound is nil,
	// they always are.
	Sound func(call *assay.CallRecord, next int) (some, place bool)

	Next int      // index of the next required tool
	Done []string // tools that have succeeded
}

// Follow returns the uses of calls, in order.
func (c *Course) Follow(calls []assay.CallRecord) []Use {
	uses := make([]Use, len(calls))
	for i := range calls {
		uses[i] = c.Step(&calls[i])
	}
	return uses
}

// Step takes the next call and returns its use.
func (c *Course) Step(call *assay.CallRecord) Use {
	tool := call.Tool
	if c.Substitutes {
		tool = c.Catalog.Work(tool)
	}
	next := c.IsNext(tool)
	wanted := next || c.inserts(tool)
	sound, place := true, true
	if c.Sound != nil {
		sound, place = c.Sound(call, c.Next)
	}
	if call.Happened() && sound {
		c.succeed(tool, next && place)
	}
	switch {
	case !wanted:
		return Idle
	case call.Mistake:
		return Mistaken
	case !sound || next && !place:
		return Unsound
	case !call.Happened():
		return Unlucky
	}
	return Useful
}

// IsNext reports whether a tool is the next required one.
func (c *Course) IsNext(tool string) bool {
	return c.Next < len(c.Required) && c.Required[c.Next] == tool
}

// inserts reports whether the rest of the plan contains a tool as a dependency that has not
// succeeded, before the tool's own place. See [policy.Sequence].
func (c *Course) inserts(tool string) bool {
	there := slices.Clone(c.Done) // has succeeded, or comes earlier in the plan
	if c.Firsts {
		there = append(there, c.Required...)
	}
	var before func(name string) bool
	before = func(name string) bool {
		t, _ := c.Catalog.Tool(name)
		for _, d := range t.Dependencies {
			if slices.Contains(there, d) {
				continue
			}
			there = append(there, d)
			if d == tool || before(d) {
				return true
			}
		}
		return false
	}
	for _, r := range c.Required[c.Next:] {
		if c.Firsts && slices.Contains(c.Done, r) {
			continue
		}
		there = append(there, r)
		if before(r) {
			return true
		}
	}
	return false
}

// succeed records a tool's success, and whether the tool is the next required one.
func (c *Course) succeed(tool string, next bool) {
	if !slices.Contains(c.Done, tool) {
		c.Done = append(c.Done, tool)
	}
	if !c.Firsts {
		if next {
			c.Next++
		}
		return
	}
	for c.Next < len(c.Required) && slices.Contains(c.Done, c.Required[c.Next]) {
		c.Next++
	}
}

// Strayed returns the index of the first call of a tool that the task neither requires nor depends
// on, and that stands for no such tool. It returns -1 if there is no such call.
func Strayed(catalog *assay.Catalog, required []string, calls []assay.CallRecord) int {
	needed := slices.Concat(required, policy.Missing(catalog, required))
	return slices.IndexFunc(calls, func(c assay.CallRecord) bool {
		return !slices.Contains(needed, c.Tool) && !slices.Contains(needed, catalog.Work(c.Tool))
	})
}
