package sim

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/assay-eval/assay/internal/task/world/assay1"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// unwrapped returns the answer of a tool without the wrapping of agents: a list of contents, an
// object with one, or Python's print of either.
func unwrapped(content string) string {
	var part struct {
		Content json.RawMessage `json:"content"`
		Text    string          `json:"text"`
	}
	var parts []json.RawMessage
	switch {
	case json.Unmarshal([]byte(content), &parts) == nil && len(parts) > 0:
		return unwrapped(string(parts[0]))
	case json.Unmarshal([]byte(content), &part) != nil:
		if s := printedText.FindStringSubmatch(content); s != nil {
			return strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(s[1])
		}
		return content
	case part.Text != "":
		return unwrapped(part.Text)
	case part.Content != nil:
		return unwrapped(string(part.Content))
	}
	return content
}

// A toolOutput is the output of a tool or a search. Views share it and never change it.
type toolOutput struct {
	Tool    json.RawMessage `json:"tool"`
	Success *bool           `json:"success"`
	Error   string          `json:"error"`
	Wait    int             `json:"wait"`
	Output  json.RawMessage `json:"output"`
	Refused string          `json:"refused"`
	Listed  []string        `json:"succeeded"`
	Tools   []struct {
		Name string `json:"name"`
	} `json:"tools"`
}

// parseAnswer reads an answer. It returns nil if it is not in the form of Assay's own tools.
func parseAnswer(content string) *toolOutput {
	if r, ok := knownAnswers.Get(content); ok {
		return r
	}
	r := new(toolOutput)
	if json.Unmarshal([]byte(unwrapped(content)), r) != nil {
		r = nil
	}
	if len(content) <= largestKnown {
		knownAnswers.Add(content, r)
	}
	return r
}

func (v *agentView) readResult(a move, content string) {
	r := parseAnswer(content)
	if r == nil {
		return
	}
	if r.Refused != "" && !a.search {
		v.corrected++
	}
	if r.Success != nil {
		var tool string
		if json.Unmarshal(r.Tool, &tool) == nil {
			code, _, _ := strings.Cut(r.Error, ":")
			refused := (v.arguments || v.endWord != "") &&
				(code == assay1.InvalidInput || code == assay1.DependencyFail)
			happened := *r.Success
			if v.doubtful {
				happened = len(r.Listed) > len(v.listed)
			}
			if *r.Success {
				v.output = string(r.Output)
			}
			if names := driftText.FindStringSubmatch(r.Error); code == spec.Renamed && names != nil {
				if v.drifted == nil {
					v.drifted = make(map[string]renaming)
				}
				v.drifted[tool] = renaming{names[1], names[2], 0}
				if strings.Contains(r.Error, spec.InHundredths) {
					v.drifted[tool] = renaming{names[1], names[2], spec.Hundredths}
				}
			}
			old := v.drifted[tool]
			v.calls = append(v.calls, pastCall{
				move{text: tool, arguments: renaming{old.now, old.old, -old.places}.of(a.arguments)},
				*r.Success, happened, refused,
				code == spec.OutOfService.Code, r.Wait, code, cursorIn(r.Output),
			})
		}
	}
	v.listed = r.Listed
	if a.search {
		var names []string
		for _, t := range r.Tools {
			names = append(names, t.Name)
		}
		v.found = append(v.found, make([][]string, max(0, a.place+1-len(v.found)))...)
		v.found[a.place] = names
	}
}

// cursorIn returns the cursor in an answer whose list goes on, or "".
func cursorIn(output json.RawMessage) string {
	var part struct {
		Cursor string `json:"next_cursor"`
		More   string `json:"more"`
	}
	_ = json.Unmarshal(output, &part) // an answer of another form has none
	if !strings.Contains(part.More, "argument "+spec.CursorName) {
		return ""
	}
	return part.Cursor
}

// rest returns the call for the rest of an answer.
func (c *pastCall) rest() move {
	return move{text: c.text, arguments: encode(map[string]string{spec.CursorName: c.cursor})}
}

// driftText finds the names in the error of a parameter that has another one.
var driftText = regexp.MustCompile(`The parameter (\S+) is now called (\S+),`)

// A renaming is what a model has learned of a parameter: its old and new name, and by how many decimal
// places its numbers have grown.
type renaming struct {
	old, now string
	places   int
}

// of returns the arguments of a call with the new name, if they have the old one.
func (r renaming) of(arguments string) string {
	var args map[string]json.RawMessage
	if r.old == "" || json.Unmarshal([]byte(arguments), &args) != nil || args[r.old] == nil {
		return arguments
	}
	value := args[r.old]
	delete(args, r.old)
	if r.places != 0 {
		value = json.RawMessage(spec.Shifted(string(value), r.places))
	}
	args[r.now] = value
	return encode(args)
}
