package sim

import (
	"reflect"
	"testing"
)

// TestRememberedPlanIsNotChanged checks that the next part of a plan is not added to the first part
// that other conversations share.
func TestRememberedPlanIsNotChanged(t *testing.T) {
	t.Parallel()
	const task = "## Task\n\nBook it.\n\n## Plan\n\n1. a\n\n2. b\n\n3. c\n"
	var one, two agentView
	one.readTask(task)
	two.readTask(task)
	one.follow(parsePlan("## Plan\n\n4. x\n"))
	two.follow(parsePlan("## Plan\n\n4. y\n"))
	for v, want := range map[*agentView][]string{
		&one: {"a", "b", "c", "x"}, &two: {"a", "b", "c", "y"},
	} {
		if got := toolsOf(v.plan); !reflect.DeepEqual(got, want) {
			t.Errorf("the plan is %q, want %q", got, want)
		}
	}
	var none, empty agentView
	none.readTask("## Task\n\nBook it.\n")
	empty.readTask("## Task\n\nBook it.\n\n## Plan\n\nDo it.\n")
	if none.plan != nil || empty.plan == nil {
		t.Errorf("plans %v and %v, want none and one without steps", none.plan, empty.plan)
	}
}
