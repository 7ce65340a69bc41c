package score

import (
	"slices"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
)

// A use is what a call did for its task. A call is wanted when its success
// shortens what is left of the plan: its tool is the next required one, or a
// dependency that has not succeeded and that the rest of the plan inserts.
type use int

// The uses of a call, best first.
const (
	useful   use = iota // wanted, and it worked
	unlucky             // wanted, and it failed by chance
	mistaken            // wanted, and it failed by the model's own error
	idle                // not wanted, however it went
)

// wasted reports whether the best policy would not have made the call with the
// same luck.
func (u use) wasted() bool { return u > unlucky }

// A course follows what the calls of an episode do for its task.
type course struct {
	catalog  *assay.Catalog
	required []string
	// firsts says that a required tool counts by its first success, as in
	// pilot: no plan can insert it before its place, and one that came too
	// early need not come again.
	firsts bool

	next int      // place of the next required tool
	done []string // tools that have succeeded
}

// plan is the task's own: in assay-1 with the dependencies that it inserts.
func (c *course) plan() []string {
	if c.firsts {
		return c.required
	}
	return workflow.Sequence(c.catalog, c.required)
}

// follow tells the uses of calls, in order.
func (c *course) follow(calls []assay.CallRecord) []use {
	uses := make([]use, len(calls))
	for i := range calls {
		uses[i] = c.use(&calls[i])
		if calls[i].OK {
			c.succeed(calls[i].Tool)
		}
	}
	return uses
}

func (c *course) use(call *assay.CallRecord) use {
	switch {
	case !c.wants(call.Tool):
		return idle
	case call.OK:
		return useful
	case !call.Mistake:
		return unlucky
	}
	return mistaken
}

func (c *course) wants(tool string) bool {
	return c.next < len(c.required) && c.required[c.next] == tool || c.inserts(tool)
}

// inserts reports whether the rest of the plan has a tool that has not
// succeeded as a dependency of a required one, before its own place. See [workflow.Sequence].
func (c *course) inserts(tool string) bool {
	there := slices.Clone(c.done) // what succeeded, or comes before in the plan
	if c.firsts {
		there = append(there, c.required...)
	}
	var before func(name string) bool
	before = func(name string) bool {
		t, _ := c.catalog.Tool(name)
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
	for _, r := range c.required[c.next:] {
		if c.firsts && slices.Contains(c.done, r) {
			continue
		}
		there = append(there, r)
		if before(r) {
			return true
		}
	}
	return false
}

func (c *course) succeed(tool string) {
	if !slices.Contains(c.done, tool) {
		c.done = append(c.done, tool)
	}
	if !c.firsts {
		if c.next < len(c.required) && c.required[c.next] == tool {
			c.next++
		}
		return
	}
	for c.next < len(c.required) && slices.Contains(c.done, c.required[c.next]) {
		c.next++
	}
}

// strayed returns the place of the first call of a tool that the task neither
// requires nor builds on, -1 without one.
func strayed(catalog *assay.Catalog, required []string, calls []assay.CallRecord) int {
	needed := slices.Concat(required, workflow.Missing(catalog, required))
	return slices.IndexFunc(calls, func(c assay.CallRecord) bool { return !slices.Contains(needed, c.Tool) })
}
