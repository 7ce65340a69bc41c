package sim

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/bm25"
)

// view is what an agent knows: what stands in the conversation, and nothing
// else. It is made anew for each turn, so an agent needs no memory and gives
// the same answer wherever it is asked.
type view struct {
	functions []assay.Function
	// discover says that tools are called through tool_call.
	discover bool
	turn     int // replies so far
	limit    int // replies allowed
	// description is the task's text.
	description string
	// plan holds the given plan's tools in order; nil without a plan.
	plan []string
	// reliability is the chance that the plan states.
	reliability float64
	// tried counts calls of tools, refused ones included; calls are those
	// that were executed.
	tried int
	calls []call
	// found holds for each search so far the tools found, best first.
	found [][]string
}

// call is one executed call of a tool.
type call struct {
	tool string
	ok   bool
}

// assumedReliability is what an agent expects where no plan tells.
const assumedReliability = 0.8

// longestEpisode bounds the replies that an agent plans for, whatever a
// conversation says.
const longestEpisode = 200

var (
	limitText       = regexp.MustCompile(`at most (\d+) replies`)
	stepText        = regexp.MustCompile(`(?m)^\d+\. ([A-Za-z0-9_.-]+)$`)
	probabilityText = regexp.MustCompile(`probability of about ([0-9.]+) %`)
)

func newView(req assay.Request) *view {
	v := &view{functions: req.Functions, limit: 10, reliability: assumedReliability}
	for _, f := range req.Functions {
		v.discover = v.discover || f.Name == "tool_call"
	}
	pending := make(map[string]assay.ToolCall)
	for i, m := range req.Messages {
		switch m.Role {
		case assay.System:
			if s := limitText.FindStringSubmatch(m.Content); s != nil {
				n, _ := strconv.Atoi(s[1]) // of a number too large, the largest
				v.limit = min(n, longestEpisode)
			}
		case assay.User:
			if i <= 1 {
				v.readTask(m.Content)
			}
		case assay.Assistant:
			v.turn++
			for _, c := range m.Calls {
				pending[c.ID] = c
				if !v.discover || c.Name == "tool_call" {
					v.tried++
				}
			}
		case assay.ToolRole:
			v.readResult(pending[m.CallID], m.Content)
		}
	}
	return v
}

func (v *view) readTask(text string) {
	_, v.description, _ = strings.Cut(text, "## Task\n\n")
	for _, next := range []string{"\n\n## ", "\n\nBegin with the first step."} {
		v.description, _, _ = strings.Cut(v.description, next)
	}
	_, plan, ok := strings.Cut(text, "## Plan\n")
	if !ok {
		return
	}
	for _, s := range stepText.FindAllStringSubmatch(plan, -1) {
		v.plan = append(v.plan, s[1])
	}
	if s := probabilityText.FindStringSubmatch(plan); s != nil {
		if p, err := strconv.ParseFloat(s[1], 64); err == nil {
			v.reliability = p / 100
		}
	}
}

func (v *view) readResult(c assay.ToolCall, content string) {
	var r struct {
		Tool    json.RawMessage `json:"tool"`
		Success *bool           `json:"success"`
		Tools   []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal([]byte(content), &r); err != nil {
		return
	}
	if r.Success != nil {
		var tool string
		if json.Unmarshal(r.Tool, &tool) == nil {
			v.calls = append(v.calls, call{tool, *r.Success})
		}
	}
	if c.Name == "tool_search" {
		var names []string
		for _, t := range r.Tools {
			names = append(names, t.Name)
		}
		v.found = append(v.found, names)
	}
}

// steps returns the tools that the task seems to want, in order: the plan's,
// or the best match for each part of the description. They are nil as long as
// the tools still have to be searched for.
func (v *view) steps() []string {
	if v.plan != nil {
		return v.plan
	}
	if v.discover {
		return firstNew(v.found)
	}
	texts := make([]string, len(v.functions))
	for i, f := range v.functions {
		texts[i] = f.Name + " " + f.Name + " " + f.Description
	}
	index := bm25.New(texts)
	var found [][]string
	for _, q := range v.queries() {
		var names []string
		for _, h := range index.Search(q, 1) {
			names = append(names, v.functions[h.Doc].Name)
		}
		found = append(found, names)
	}
	return firstNew(found)
}

// firstNew takes the best tool of each search, each tool once.
func firstNew(found [][]string) []string {
	var steps []string
	seen := make(map[string]bool)
	for _, names := range found {
		if len(names) > 0 && !seen[names[0]] {
			seen[names[0]] = true
			steps = append(steps, names[0])
		}
	}
	return steps
}

var clauseEnd = regexp.MustCompile(`[.;:]\s+|,\s+(?:and\s+)?|\s+(?:and|then)\s+|\.$`)

// maxQueries bounds how many parts of a description are searched for.
const maxQueries = 8

// queries splits the description into parts that can each be searched for.
func (v *view) queries() []string {
	var queries []string
	for _, part := range clauseEnd.Split(v.description, -1) {
		if len(bm25.Words(part)) >= 2 && len(queries) < maxQueries {
			queries = append(queries, part)
		}
	}
	return queries
}

func (v *view) succeeded(tool string) bool {
	for _, c := range v.calls {
		if c.tool == tool && c.ok {
			return true
		}
	}
	return false
}
