package library

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
)

// FindingKind is a kind of problem of a task in an imported file.
type FindingKind string

// The kinds of findings. Import keeps tasks that have only findings from DependencyOrder on.
const (
	Malformed         FindingKind = "malformed"          // not a valid task, or no ID
	DuplicateID       FindingKind = "duplicate_id"       // same ID and difficulty as another task
	UnknownType       FindingKind = "unknown_task_type"  // not one of the five task types
	InvalidDifficulty FindingKind = "invalid_difficulty" // not a difficulty or mixture
	EmptyDescription  FindingKind = "empty_description"  // the agent would have no instructions
	NoRequiredTools   FindingKind = "no_required_tools"  // the agent would have no work
	UnknownTool       FindingKind = "unknown_tool"       // requires a tool that is not registered
	DuplicateTool     FindingKind = "duplicate_tool"     // requires a tool twice
	DependencyOrder   FindingKind = "dependency_order"   // a dependency is not required earlier
	DifficultyClash   FindingKind = "difficulty_clash"   // fields contradict each other

	RepeatedDescription FindingKind = "repeated_description" // several tasks have it
	SeveralTruths       FindingKind = "several_truths"       // same description, other tools
	Unsolvable          FindingKind = "unsolvable"           // no policy can solve it
)

// findingKinds lists the kinds in the order of a report.
var findingKinds = []FindingKind{
	Malformed, DuplicateID, UnknownType, InvalidDifficulty, EmptyDescription,
	NoRequiredTools, UnknownTool, DuplicateTool, DependencyOrder, DifficultyClash,
	RepeatedDescription, SeveralTruths, Unsolvable,
}

// Excludes reports whether Import leaves out a task with such a finding.
func (k FindingKind) Excludes() bool {
	return slices.Index(findingKinds, k) < slices.Index(findingKinds, DependencyOrder)
}

var findingTexts = map[FindingKind]string{
	Malformed:         "not a valid task",
	DuplicateID:       "duplicate ID",
	UnknownType:       "unknown task type",
	InvalidDifficulty: "invalid difficulty",
	EmptyDescription:  "empty description",
	NoRequiredTools:   "no required tools",
	UnknownTool:       "unknown tool required",
	DuplicateTool:     "tool required twice, so full coverage would be impossible",
	DependencyOrder:   "dependency not required before the tool that needs it",
	DifficultyClash:   "fields for the difficulty contradict each other",

	RepeatedDescription: "description of another task, too",
	SeveralTruths:       "same description as a task that requires other tools",
	Unsolvable:          "no policy can solve it with the default world and limits",
}

// A Finding summarizes the tasks of an imported file that have the same problem. A task may belong
// to several findings.
type Finding struct {
	Kind FindingKind `json:"kind"`
	// Tasks is the number of tasks with the problem.
	Tasks    int  `json:"tasks"`
	Excludes bool `json:"excludes"`
	// Examples are the first few of these tasks.
	Examples []Example `json:"examples"`
}

// An Example is one task of a [Finding].
type Example struct {
	// Task is the task's ID, or its number in the file such as #3.
	Task   string `json:"task"`
	Detail string `json:"detail"`
}

// DependencyGaps counts the dependencies of required tools that are not required earlier, over all
// kept tasks.
type DependencyGaps struct {
	// Tasks counts tasks with a gap. LaterTasks counts tasks with a dependency that comes later
	// in the list.
	Tasks      int `json:"tasks"`
	LaterTasks int `json:"later_tasks"`
	// Gaps and LaterGaps count each pair of a tool and its dependency.
	Gaps      int `json:"gaps"`
	LaterGaps int `json:"later_gaps"`
}

// A Report counts the tasks that an import read, kept and excluded, and lists their problems.
type Report struct {
	// Out and Library are the path and the metadata of the file that was written.
	Out      string         `json:"out"`
	Library  Meta           `json:"library"`
	Read     int            `json:"read"`
	Kept     int            `json:"kept"`
	Excluded int            `json:"excluded"`
	Counts   []Count        `json:"counts"` // of the kept tasks
	Findings []Finding      `json:"findings"`
	Gaps     DependencyGaps `json:"dependency_gaps"`
	// Unused counts the fields of kept tasks that were not imported, and UnusedOfTools counts the
	// tools' fields, most frequent first.
	Unused        fieldCounts `json:"unused_fields,omitempty"`
	UnusedOfTools fieldCounts `json:"unused_fields_of_tools,omitempty"`
	// UnusedOfFile names the fields of the task file beside its tasks. They are not imported.
	UnusedOfFile []string `json:"unused_fields_of_file,omitempty"`
	// OtherPlans counts the kept tasks whose own workflow has other tools, or another order of
	// them, than required_tools. Plans are made from the latter.
	OtherPlans int `json:"other_plans,omitempty"`
}

// fieldCounts counts the tasks or tools that have a field, by its name.
type fieldCounts map[string]int

func (c fieldCounts) add(names []string) {
	for _, name := range names {
		c[name]++
	}
}

// sorted returns the names of the fields, most frequent first.
func (c fieldCounts) sorted() []string {
	return slices.SortedFunc(maps.Keys(c), func(a, b string) int {
		return cmp.Or(c[b]-c[a], strings.Compare(a, b))
	})
}

// MarshalJSON writes a list with a name and a count for each field.
func (c fieldCounts) MarshalJSON() ([]byte, error) {
	type field struct {
		Name  string `json:"name"`
		Count int    `json:"count"`
	}
	var list []field
	for _, name := range c.sorted() {
		list = append(list, field{name, c[name]})
	}
	return json.Marshal(list)
}

func (c fieldCounts) text(of string) string {
	var parts []string
	for _, name := range c.sorted() {
		parts = append(parts, fmt.Sprintf("%s (%s)", name, assay.Counted(c[name], of)))
	}
	return strings.Join(parts, ", ")
}

// leaveOut counts the fields of a kept task that are not imported.
func (r *Report) leaveOut(e entry) {
	r.Unused.add(e.unused)
	if e.workflow != nil && !slices.Equal(sequence(e.workflow), e.RequiredTools) {
		r.OtherPlans++
	}
}

// sequence returns the tools of a workflow, in order: a list of names, a list of steps, or an
// object with either as its optimal_sequence or steps. It returns nil for other forms.
func sequence(workflow json.RawMessage) (tools []string) {
	var object struct {
		Sequence []string        `json:"optimal_sequence"`
		Steps    json.RawMessage `json:"steps"`
	}
	if json.Unmarshal(workflow, &object) == nil {
		if object.Sequence != nil {
			return object.Sequence
		}
		workflow = object.Steps
	}
	if json.Unmarshal(workflow, &tools) == nil {
		return tools
	}
	var steps []struct {
		Tool string `json:"tool"`
		Name string `json:"tool_name"`
	}
	if json.Unmarshal(workflow, &steps) != nil {
		return nil
	}
	tools = nil
	for _, s := range steps {
		tools = append(tools, cmp.Or(s.Tool, s.Name))
	}
	return tools
}

// maxExamples is the largest number of examples in a finding.
const maxExamples = 3

// add counts a task with a problem. It calls detail only if the task becomes an example.
func (r *Report) add(kind FindingKind, task string, detail func() string) {
	r.addTasks(kind, 1, task, detail)
}

// addTasks counts n tasks with the same problem, of which one may become an example.
func (r *Report) addTasks(kind FindingKind, n int, task string, detail func() string) {
	i := 0
	for i < len(r.Findings) && r.Findings[i].Kind != kind {
		i++
	}
	if i == len(r.Findings) {
		r.Findings = append(r.Findings, Finding{Kind: kind, Excludes: kind.Excludes()})
	}
	f := &r.Findings[i]
	f.Tasks += n
	if len(f.Examples) < maxExamples {
		f.Examples = append(f.Examples, Example{brief(task), brief(detail())})
	}
}

// count counts a task that is kept.
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

// String returns the report as several lines of text.
func (r Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d tasks read, %d kept, %d excluded\n", r.Read, r.Kept, r.Excluded)
	if r.Library.Digest != "" {
		m := r.Library
		fmt.Fprintf(&b, "library %s: %s, %d tools, digest %s\n", m.Name, r.Out, m.Tools, m.Digest)
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
			verdict = "kept with a warning"
		}
		fmt.Fprintf(&b, "%s: %s (%s)\n", assay.Counted(f.Tasks, "task"), findingTexts[f.Kind], verdict)
		if g := r.Gaps; f.Kind == DependencyOrder && g.LaterTasks > 0 {
			fmt.Fprintf(&b, "  in %d of them a dependency comes later in the list (%d of %s)\n",
				g.LaterTasks, g.LaterGaps, assay.Counted(g.Gaps, "gap"))
		}
		for _, e := range f.Examples {
			fmt.Fprintf(&b, "  %s: %s\n", e.Task, e.Detail)
		}
	}
	r.writeUnused(&b)
	return b.String()
}

func (r Report) writeUnused(b *strings.Builder) {
	if len(r.Unused) > 0 {
		fmt.Fprintf(b, "fields that are not used: %s\n", r.Unused.text("task"))
	}
	if len(r.UnusedOfTools) > 0 {
		fmt.Fprintf(b, "fields of tools that are not used: %s\n", r.UnusedOfTools.text("tool"))
	}
	if len(r.UnusedOfFile) > 0 {
		fmt.Fprintf(b, "fields of the file that are not used: %s\n",
			strings.Join(r.UnusedOfFile, ", "))
	}
	if n := r.ownPlans(); n > 0 {
		fmt.Fprintf(b, "%s with a workflow: plans are made from required_tools instead; "+
			"the workflows of %d have other tools or another order\n",
			assay.Counted(n, "task"), r.OtherPlans)
	}
}

// ownPlans counts the kept tasks that have a workflow.
func (r Report) ownPlans() int { return r.Unused["workflow"] }

// workflows returns the note about the workflows of a library's tasks for its source, or "".
func (r Report) workflows() string {
	n := r.ownPlans()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s had a workflow, which is not used: plans are made from required_tools",
		assay.Counted(n, "task"))
}
