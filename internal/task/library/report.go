package library

import (
	"fmt"
	"io"
	"strings"

	"github.com/assay-eval/assay"
)

// FindingKind says what is odd about a task of an imported file.
type FindingKind string

// The kinds of finding. All but the last keep a task out of the library.
const (
	Malformed         FindingKind = "malformed"          // not of the shape of a task, or without an ID
	DuplicateID       FindingKind = "duplicate_id"       // its ID and difficulty were there before
	UnknownType       FindingKind = "unknown_task_type"  // none of the five task types
	InvalidDifficulty FindingKind = "invalid_difficulty" // none of the five difficulties or a mixture of them
	EmptyDescription  FindingKind = "empty_description"  // nothing to tell the agent
	NoRequiredTools   FindingKind = "no_required_tools"  // nothing to do
	UnknownTool       FindingKind = "unknown_tool"       // requires a tool that the registry lacks
	DuplicateTool     FindingKind = "duplicate_tool"     // requires a tool twice: coverage could never be full
	DependencyOrder   FindingKind = "dependency_order"   // a tool's dependency is not required before it
)

// findingKinds is the order in which a report tells them.
var findingKinds = []FindingKind{
	Malformed, DuplicateID, UnknownType, InvalidDifficulty, EmptyDescription,
	NoRequiredTools, UnknownTool, DuplicateTool, DependencyOrder,
}

// Excludes reports whether such a task is left out of the library.
func (k FindingKind) Excludes() bool { return k != DependencyOrder }

func (k FindingKind) text() string {
	switch k {
	case Malformed:
		return "not of the shape of a task"
	case DuplicateID:
		return "ID was there before"
	case UnknownType:
		return "unknown task type"
	case InvalidDifficulty:
		return "invalid difficulty"
	case EmptyDescription:
		return "empty description"
	case NoRequiredTools:
		return "no required tools"
	case UnknownTool:
		return "unknown tool required"
	case DuplicateTool:
		return "tool required twice, so that full coverage would be impossible"
	case DependencyOrder:
		return "dependency not required before the tool that needs it"
	}
	return string(k)
}

// A Finding sums up the tasks of an imported file that share an oddity. A task
// may be in several findings.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Tasks is how many tasks it concerns.
	Tasks    int  `json:"tasks"`
	Excludes bool `json:"excludes"`
	// Examples are the first few of them.
	Examples []Example `json:"examples"`
}

// An Example is one task of a [Finding].
type Example struct {
	// Task is the task's ID, or its number in the file such as #3.
	Task   string `json:"task"`
	Detail string `json:"detail"`
}

// DependencyGaps counts, over the kept tasks, the dependencies of required
// tools that are not required earlier.
type DependencyGaps struct {
	// Tasks have at least one gap, LaterTasks one whose dependency comes
	// later in the list.
	Tasks      int `json:"tasks"`
	LaterTasks int `json:"later_tasks"`
	// Gaps and LaterGaps count each pair of a tool and its dependency.
	Gaps      int `json:"gaps"`
	LaterGaps int `json:"later_gaps"`
}

// A Report tells what an import read, kept and left out.
type Report struct {
	// Out and Library are the file that was written and what it says.
	Out      string         `json:"out"`
	Library  Meta           `json:"library"`
	Read     int            `json:"read"`
	Kept     int            `json:"kept"`
	Excluded int            `json:"excluded"`
	Counts   []Count        `json:"counts"` // of the kept tasks
	Findings []Finding      `json:"findings"`
	Gaps     DependencyGaps `json:"dependency_gaps"`
}

// maxExamples is how many examples a finding has at most.
const maxExamples = 3

// add notes a task; detail is asked for only where it becomes an example.
func (r *Report) add(kind FindingKind, task string, detail func() string) {
	i := 0
	for i < len(r.Findings) && r.Findings[i].Kind != kind {
		i++
	}
	if i == len(r.Findings) {
		r.Findings = append(r.Findings, Finding{Kind: kind, Excludes: kind.Excludes()})
	}
	f := &r.Findings[i]
	f.Tasks++
	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, Example{Task: task, Detail: detail()})
	}
}

// count notes a task that is kept.
func (r *Report) count(t assay.Task) {
	r.Kept++
	for i, c := range r.Counts {
		if c.Type == t.Type && c.Difficulty == t.Difficulty {
			r.Counts[i].Tasks++
			return
		}
	}
	r.Counts = append(r.Counts, Count{t.Type, t.Difficulty, 1})
}

// String is the report as people read it, several lines.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks read, %d kept, %d excluded\n", r.Read, r.Kept, r.Excluded)
	if r.Library.Digest != "" {
		fmt.Fprintf(&b, "library %s: %s, %d tools, digest %s\n", r.Library.Name, r.Out, r.Library.Tools, r.Library.Digest)
	}
	width := 10
	for _, c := range r.Counts {
		width = max(width, len(c.Difficulty))
	}
	for _, c := range r.Counts {
		fmt.Fprintf(&b, "  %-21s %-*s %6d\n", c.Type, width, c.Difficulty, c.Tasks)
	}
	for _, f := range r.Findings {
		verdict := "excluded"
		if !f.Excludes {
			verdict = "kept, a warning"
		}
		fmt.Fprintf(&b, "%s: %s (%s)\n", plural(f.Tasks, "task"), f.Kind.text(), verdict)
		if g := r.Gaps; f.Kind == DependencyOrder && g.LaterTasks > 0 {
			fmt.Fprintf(&b, "  in %d of them a dependency comes later in the list (%d of %s)\n", g.LaterTasks, g.LaterGaps, plural(g.Gaps, "gap"))
		}
		for _, e := range f.Examples {
			fmt.Fprintf(&b, "  %s: %s\n", e.Task, e.Detail)
		}
	}
	return b.String()
}

// WriteTo writes [Report.String].
func (r Report) WriteTo(w io.Writer) (int64, error) {
	n, err := io.WriteString(w, r.String())
	return int64(n), err
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
