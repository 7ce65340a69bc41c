package spec

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// Renamed is the error code of a call with the old name of a parameter, which may have another unit, too.
const Renamed = "PARAMETER_RENAMED"

// Drift has the parameters of an attempt's tools that have another name by now: one of each tool at most.
// The zero value has none.
type Drift struct{ names map[string]renaming }

type renaming struct {
	old, now string
	rescaled bool
}

// Hundredths is how many decimal places the point of a number moves if its unit becomes a hundredth of what
// it was, and InHundredths is what the error says of it.
const (
	Hundredths   = 2
	InHundredths = "in hundredths of its old unit (12.5 is 1250)"
)

func (r renaming) err() assay.ToolError {
	unit := ""
	if r.rescaled {
		unit = " " + InHundredths + ","
	}
	return assay.ToolError{
		Code: Renamed, Description: "The parameter " + r.old + " is now called " + r.now + "," + unit + " and the old name is refused",
	}
}

// Read returns the record of a call, with its arguments under the names and in the units that its tool knows.
// It returns false, and the record of a mistake, if the call uses the old name of a parameter.
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
	if r.rescaled && isNumber(args[r.now]) {
		args[r.old] = json.RawMessage(Shifted(string(args[r.now]), -Hundredths))
	}
	delete(args, r.now)
	rec.Arguments, rec.Renamed = encode(args), r.now
	return rec, true
}

// Note ends the error of another mistake in a call of a tool, which names parameters and values as the tool
// knows them. It is empty if no parameter of the tool has changed.
func (d *Drift) Note(tool string) string {
	r, drifted := d.names[tool]
	if !drifted {
		return ""
	}
	return ". " + r.err().Description
}

// Begin renames a parameter of a tool, which the second spare word picks among the names in the arguments
// of a call, those of quantities if it is to have another unit, and returns the error that says so. It returns
// false if there is none, or if the tool has such a parameter.
func (d *Drift) Begin(rule assay.ToolFaultRule, tool assay.Tool, arguments string, luck Luck) (assay.ToolError, bool) {
	args := members(arguments)
	if rule.Rescales {
		quantities := Quantities(tool)
		maps.DeleteFunc(args, func(name string, v json.RawMessage) bool {
			return !isNumber(v) || !slices.Contains(quantities, name)
		})
	}
	if _, already := d.names[tool.Name]; already || len(args) == 0 {
		return assay.ToolError{}, false
	}
	names := slices.Sorted(maps.Keys(args))
	r := renaming{old: names[luck.Pick(1, len(names))], rescaled: rule.Rescales}
	r.now = r.old + "_v2"
	if r.rescaled {
		r.now = r.old + "_hundredths"
	}
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

// Quantities lists the parameters of a tool whose type is number. An integer is more often a name or a
// count, which has no unit.
func Quantities(tool assay.Tool) (names []string) {
	var schema struct {
		Properties map[string]struct {
			Type any `json:"type"` // a name or a list of them
		} `json:"properties"`
	}
	_ = json.Unmarshal(tool.Schema, &schema) // a schema of another form has none
	for name, p := range schema.Properties {
		if p.Type == "number" || slices.Contains(typesOf(p.Type), any("number")) {
			names = append(names, name)
		}
	}
	return names
}

func typesOf(list any) []any { types, _ := list.([]any); return types }

func isNumber(v json.RawMessage) bool { return v[0] == '-' || '0' <= v[0] && v[0] <= '9' }

// Shifted returns a JSON number with its decimal point moved to the right, or to the left if places is
// negative, exactly. It returns numbers with an exponent that no program reads as they are.
func Shifted(number string, places int) string {
	if mantissa, exponent, has := strings.Cut(strings.ToLower(number), "e"); has {
		n, err := strconv.ParseInt(exponent, 10, 32)
		if err != nil {
			return number
		}
		return mantissa + "e" + strconv.FormatInt(n+int64(places), 10)
	}
	digits, negative := strings.CutPrefix(number, "-")
	whole, part, _ := strings.Cut(digits, ".")
	digits, point := whole+part, len(whole)+places
	digits = strings.Repeat("0", max(0, 1-point)) + digits
	point = max(1, point)
	digits += strings.Repeat("0", max(0, point-len(digits)))
	whole = cmp.Or(strings.TrimLeft(digits[:point], "0"), "0")
	if part = strings.TrimRight(digits[point:], "0"); part != "" {
		whole += "." + part
	}
	if negative {
		whole = "-" + whole
	}
	return whole
}

// members returns the members of a JSON object that are not null.
func members(arguments string) map[string]json.RawMessage {
	var args map[string]json.RawMessage
	_ = json.Unmarshal([]byte(arguments), &args) // whatever else it is has no members
	maps.DeleteFunc(args, func(_ string, v json.RawMessage) bool { return string(v) == "null" })
	return args
}
