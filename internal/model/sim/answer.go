package sim

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/assay-eval/assay/internal/task/world/assay1"
	"github.com/assay-eval/assay/internal/task/world/spec"
)

// unwrapped returns the answer of a tool without what agents put around it, or content if there is no
// answer in it.
func unwrapped(content string) string {
	if answer, ok := answerIn(content, deepest); ok {
		return answer
	}
	return content
}

const (
	// deepest is how many wrappers an answer may have.
	deepest = 8
	// longestWords is how many bytes of an agent's own words there may be before an answer, and longestAdvice
	// after it. Kimi Code warns of repetitions there, in 500 bytes.
	longestWords, longestAdvice = 200, 2000
)

// answerIn finds an answer: the text itself, or what is in a list of contents, an object with one, a
// quoted text, Python's print of contents, or between words of the agent. Depth limits the search.
func answerIn(content string, depth int) (answer string, ok bool) {
	raw := []byte(content)
	var parts []json.RawMessage
	var object map[string]json.RawMessage
	var text string
	switch {
	case depth == 0:
	case !json.Valid(raw):
		if s := printedText.FindStringSubmatch(content); s != nil {
			return answerIn(strings.NewReplacer(`\\`, `\`, `\'`, `'`).Replace(s[1]), depth-1)
		}
		return answerAmong(content, depth-1)
	case json.Unmarshal(raw, &parts) == nil:
	case json.Unmarshal(raw, &text) == nil:
		return answerIn(text, depth-1)
	case json.Unmarshal(raw, &object) == nil:
		if object["success"] != nil || object["refused"] != nil || object["tools"] != nil {
			return content, true
		}
		for _, field := range []string{"text", "content", "output", "result"} {
			parts = append(parts, object[field])
		}
	}
	for _, part := range parts {
		if answer, ok = answerIn(string(part), depth-1); ok {
			return answer, true
		}
	}
	return "", false
}

// answerAmong finds an answer in the first object of a text, between words of an agent.
func answerAmong(text string, depth int) (answer string, ok bool) {
	i := strings.IndexByte(text, '{')
	if i < 0 || i > longestWords {
		return "", false
	}
	var object json.RawMessage
	d := json.NewDecoder(strings.NewReader(text[i:]))
	if d.Decode(&object) != nil || len(text)-i-int(d.InputOffset()) > longestAdvice {
		return "", false
	}
	return answerIn(string(object), depth)
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
