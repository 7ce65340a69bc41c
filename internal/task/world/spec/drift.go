package spec

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// Renamed is the error code of a call with the old name of a parameter.
const Renamed = "PARAMETER_RENAMED"

// Drift has the parameters of an attempt's tools that have another name by now: one of each tool at most.
// The zero value has none.
type Drift struct{ names map[string]renaming }

type renaming struct{ old, now string }

func (r renaming) err() assay.ToolError {
	return assay.ToolError{
		Code: Renamed, Description: "The parameter " + r.old + " is now called " + r.now + ", and the old name is refused",
	}
}

// Read returns the record of a call, with its arguments under the names that its tool knows. It returns
// false, and the record of a mistake, if the call uses the old name of a parameter.
func (d *Drift) Read(turn int, tool, arguments string) (rec assay.CallRecord, ok bool) {
	rec = assay.CallRecord{Turn: turn, Tool: tool, Arguments: arguments}
	r, drifted := d.names[tool]
	if !drifted {
		return rec, true
	}
	args := members(arguments)
	if args[r.old] != nil {
		e := r.err()
		rec.Mistake, rec.Code, rec.Error = true, e.Code, e.Code+": "+e.Description
		return rec, false
	}
	if args[r.now] == nil {
		return rec, true
	}
	_ = json.Unmarshal([]byte(arguments), &args) // also the members that are null
	args[r.old] = args[r.now]
	delete(args, r.now)
	rec.Arguments, rec.Renamed = encode(args), r.now
	return rec, true
}

// Begin renames a parameter of a tool, which the second spare word picks among the names in the arguments
// of a call, and returns the error that says so. It returns false if there is none, or if the tool has
// such a parameter.
func (d *Drift) Begin(tool assay.Tool, arguments string, luck Luck) (assay.ToolError, bool) {
	args := members(arguments)
	if _, already := d.names[tool.Name]; already || len(args) == 0 {
		return assay.ToolError{}, false
	}
	names := slices.Sorted(maps.Keys(args))
	r := renaming{old: names[luck.Pick(1, len(names))]}
	r.now = r.old + "_v2"
	taken := strings.Contains(string(tool.Schema), strconv.Quote(r.now)) || args[r.now] != nil ||
		slices.ContainsFunc(tool.Parameters, func(p assay.Parameter) bool { return p.Name == r.now })
	if taken {
		return assay.ToolError{}, false
	}
	if d.names == nil {
		d.names = make(map[string]renaming)
	}
	d.names[tool.Name] = r
	return r.err(), true
}

// members returns the members of a JSON object that are not null.
func members(arguments string) map[string]json.RawMessage {
	var args map[string]json.RawMessage
	_ = json.Unmarshal([]byte(arguments), &args) // whatever else it is has no members
	maps.DeleteFunc(args, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	return args
}
