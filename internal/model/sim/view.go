package sim

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/adapter"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/world"
)

// agentView holds everything an agent knows, all of it taken from the conversation. It is built
// anew for each turn, so an agent needs no memory and always gives the same answer.
type agentView struct {
	catalog *assay.Catalog
	// tags means that actions are written as tags, discover that tools have to be found, and
	// arguments that calls need the right ones.
	tags, discover, arguments bool
	// doubtful means that answers can be wrong and the list of the tools that have succeeded is
	// right. listed is the latest such list.
	doubtful  bool
	listed    []string
	tools     []listing        // tools in the prompt
	functions []assay.Function // as the request describes them
	// prefix is a foreign agent's prefix of the names of functions.
	prefix string
	ids    map[string]move // calls by their IDs
	turn   int             // replies so far
	seed   uint64          // of the trial, or 0
	limit  int             // replies allowed
	budget int             // calls allowed, or 0 if there is no limit
	// asked is the user's last message.
	asked string
	// description is the task's text, and inputs are its inputs.
	description string
	inputs      json.RawMessage
	// known is the task's text in its plain words, as far as the model knows them, and rephrased means that
	// description has others.
	known     string
	rephrased bool
	// plan is the given plan, or nil.
	plan []move
	// reliability is the chance that the plan states.
	reliability float64
	// calls are the executed calls. corrected counts the calls that were answered by a correction.
	calls     []pastCall
	corrected int
	// drifted has a parameter with another name, by the tool.
	drifted map[string]renaming
	// endWord ends an episode with tools that users wrote. It is empty in other worlds. answer is
	// the plan's answer, and output is the result of the latest call that worked.
	endWord, answer, output string
	// level is the level of the tools' interface if it is not their own, and offered translates it.
	level   string
	offered *adapter.Adapter
	// talks means that a user hears the replies without calls and may go on.
	talks bool
	// found holds the tools that each search so far has found, best first, in the order in which
	// the searches were asked for. Agents may send the answers in another order.
	found    [][]string
	searches int // asked for so far
}

// A listing is a tool as described in the prompt.
type listing struct{ name, text string }

// list counts the name twice, because it describes a tool better than any other text.
func list(name, description string) listing {
	return listing{name, name + " " + name + " " + description}
}

// A move is one action: a search for a text, or a call of a tool.
type move struct {
	search    bool
	place     int    // of a search among all searches
	text      string // query or tool
	arguments string // a JSON object, or ""
}

// pastCall is one executed call of a tool.
type pastCall struct {
	move
	// ok means that the answer was a success, and happened that the call happened.
	ok, happened bool
	// refused means that the same call would fail again.
	refused bool
	// down means that its tool always fails from now on, and wait is the number of calls after which it
	// takes calls again.
	down bool
	wait int
	code string // of an error
	// cursor is that for the rest of the answer, or "".
	cursor string
}

// assumedReliability is an agent's assumption if there is no plan.
const assumedReliability = 0.8

// longestEpisode limits the number of replies that an agent plans for.
const longestEpisode = 200

var (
	limitText  = regexp.MustCompile(`at most (\d+) replies`)
	budgetText = regexp.MustCompile(`at most (\d+) calls of tools`)
	actionText = regexp.MustCompile(`(?s)<(tool_search|tool_info|tool_call)>(.*?)</(?:tool_search|tool_info|tool_call)>`)
	resultText = regexp.MustCompile(`(?s)<tool_result>(.*?)</tool_result>`)
)

func newView(req *assay.Request, catalog *assay.Catalog) *agentView {
	v := &agentView{catalog: catalog, limit: 10, reliability: assumedReliability, seed: req.Seed}
	v.ids = make(map[string]move)
	var acts []move // without an answer so far
	v.readFunctions(req.Functions, catalog)
	for i, m := range req.Messages {
		switch m.Role {
		case assay.System:
			v.readRules(m.Content)
		case assay.User:
			v.asked = m.Content
			// A foreign agent may write text before its task, and has the rules in front of it.
			rules, _, agent := strings.Cut(m.Content, "\n\n## Task\n")
			if agent && v.description == "" {
				v.readRules(rules)
				v.readTask(m.Content)
			} else if i <= 1 && !agent {
				v.readTask(m.Content)
			} else if v.talks {
				v.follow(parsePlan(m.Content))
			}
			for j, r := range resultText.FindAllStringSubmatch(m.Content, -1) {
				if j < len(acts) {
					v.readResult(acts[j], r[1])
				}
			}
			acts = nil
		case assay.Assistant:
			v.turn++
			if v.tags {
				acts = readTags(m.Content)
			}
			for i := range acts {
				v.number(&acts[i])
			}
			for _, c := range m.Calls {
				a := v.readCall(c)
				v.number(&a)
				v.ids[c.ID] = a
			}
		case assay.ToolRole:
			v.readResult(v.ids[m.CallID], m.Content)
		}
	}
	return v
}

// number gives a search its place.
func (v *agentView) number(a *move) {
	if a.search {
		a.place = v.searches
		v.searches++
	}
}

// readFunctions finds out how the functions are named, which can be tools of the catalog.
func (v *agentView) readFunctions(functions []assay.Function, catalog *assay.Catalog) {
	v.functions = functions
	for _, f := range functions {
		if prefix, ok := strings.CutSuffix(f.Name, "tool_call"); ok {
			v.discover, v.prefix = true, prefix
		} else if _, own := catalog.Tool(f.Name); own {
			continue
		} else if prefix, ok := strings.CutSuffix(f.Name, catalog.All()[0].Name); ok {
			v.prefix = prefix
		}
	}
	for _, f := range functions {
		v.tools = append(v.tools, list(strings.TrimPrefix(f.Name, v.prefix), f.Description))
	}
}

// readRules parses the system message.
func (v *agentView) readRules(text string) {
	if s := limitText.FindStringSubmatch(text); s != nil {
		n, _ := strconv.Atoi(s[1]) // the largest int if the number is too large
		v.limit = min(n, longestEpisode)
	}
	if s := budgetText.FindStringSubmatch(text); s != nil {
		n, _ := strconv.Atoi(s[1])
		v.budget = min(n, longestEpisode)
	}
	v.tags = strings.Contains(text, "<tool_call>")
	v.discover = v.discover || strings.Contains(text, "<tool_search>")
	v.arguments = strings.Contains(text, `{"ref": "`)
	if s := endWordText.FindStringSubmatch(text); s != nil {
		v.endWord = s[1]
	}
	v.talks = strings.Contains(text, "The user may then go on")
	v.doubtful = strings.Contains(text, "The list of the tools that have succeeded is always right.")
	v.level = adapter.LevelIn(text)
	_, tools, _ := strings.Cut(text, "\n## Tools\n")
	for line := range strings.Lines(tools) {
		var t struct{ Name, Description string }
		if json.Unmarshal([]byte(line), &t) == nil && t.Name != "" {
			v.tools = append(v.tools, list(t.Name, t.Description))
		}
	}
}

// world returns the first world that wants arguments as the conversation does.
func (v *agentView) world() string {
	i := slices.IndexFunc(world.All, func(d *world.Definition) bool {
		return d.References == v.arguments
	})
	return world.All[i].Name
}

// readCall parses a native call.
func (v *agentView) readCall(c assay.ToolCall) move {
	if !v.discover {
		return move{text: strings.TrimPrefix(c.Name, v.prefix), arguments: c.Arguments}
	}
	var args struct {
		Query, Tool string
		Arguments   json.RawMessage
	}
	if json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return move{}
	}
	if c.Name == v.prefix+"tool_search" {
		return move{search: true, text: args.Query}
	}
	return move{text: args.Tool, arguments: string(args.Arguments)}
}

func readTags(text string) []move {
	var acts []move
	for _, s := range actionText.FindAllStringSubmatch(text, -1) {
		tool, arguments, _ := strings.Cut(strings.TrimSpace(s[2]), " ")
		a := move{text: tool, arguments: arguments}
		if s[1] == "tool_search" {
			a = move{search: true, text: s[2]}
		}
		acts = append(acts, a)
	}
	return acts
}

// printedText is a text of JSON in a content that an agent written in Python has printed.
var printedText = regexp.MustCompile(`\btext='((?:[^'\\]|\\.)*)'`)

// knownAnswers has the latest answers of up to largestKnown bytes, by their text. Each request has
// all answers of its conversation.
var knownAnswers, _ = lru.New[string, *toolOutput](1024) // the size is positive

const largestKnown = 8 << 10

// steps returns the tools that the task seems to want, in order: the plan's tools, or the best
// match for each part of the description. It returns nil while the tools still have to be searched
// for.
func (v *agentView) steps() []string {
	if v.plan != nil {
		return toolsOf(v.plan)
	}
	if v.discover {
		return firstNew(v.found)
	}
	return newGuide(v.tools).matches(v.queries(), nil)
}

func toolsOf(acts []move) []string {
	var tools []string
	for _, a := range acts {
		tools = append(tools, a.text)
	}
	return tools
}

// A guide finds tools by their texts.
type guide struct {
	names []string
	index *bm25.Index
}

func newGuide(tools []listing) *guide {
	g := &guide{}
	var texts []string
	for _, t := range tools {
		g.names, texts = append(g.names, t.name), append(texts, t.text)
	}
	g.index = bm25.New(texts)
	return g
}

// matches returns, for each query, the tool whose text fits it best. If two tools fit almost
// equally well, a favourite wins.
func (g *guide) matches(queries, favourites []string) []string {
	var found [][]string
	for _, q := range queries {
		var names []string
		best := 0.0
		for _, h := range g.index.Search(q, len(g.names)) {
			name, score := g.names[h.Doc], h.Score
			if slices.Contains(favourites, name) {
				score *= favour
			}
			if score > best {
				best, names = score, []string{name}
			}
		}
		found = append(found, names)
	}
	return firstNew(found)
}

// favour is the weight of a plan's tools for an agent with its own judgement.
const favour = 1.2

// firstNew returns the best tool of each search, without repeats.
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

// maxQueries is the maximum number of parts of a description to search for.
const maxQueries = 8

// queries splits the description into parts that can be searched for one by one.
func (v *agentView) queries() []string {
	var queries []string
	for _, part := range clauseEnd.Split(v.description, -1) {
		if len(bm25.Words(part)) >= 2 && len(queries) < maxQueries {
			queries = append(queries, part)
		}
	}
	return queries
}

// succeeded returns the tools that have succeeded, in the order of their latest success.
func (v *agentView) succeeded() []string {
	var tools []string
	for _, c := range v.calls {
		if c.happened {
			tools = slices.DeleteFunc(tools, func(t string) bool { return t == c.text })
			tools = append(tools, c.text)
		}
	}
	return tools
}

// rest returns the steps that have not succeeded in their order.
func (v *agentView) rest(steps []string) []string {
	for _, c := range v.calls {
		if len(steps) > 0 && c.happened && (c.text == steps[0] || v.catalog.Work(c.text) == steps[0]) {
			steps = steps[1:]
		}
	}
	return steps
}

// down reports whether a tool is known to fail always.
func (v *agentView) down(tool string) bool {
	return slices.ContainsFunc(v.calls, func(c pastCall) bool { return c.down && c.text == tool })
}

// up returns a tool that does the work of one and is not known to fail always: itself, if possible. It
// returns "" if there is none.
func (v *agentView) up(tool string) string {
	for _, name := range append([]string{tool}, v.catalog.Substitutes(tool)...) {
		if !v.down(name) {
			return name
		}
	}
	return ""
}

// spent reports whether there is time left for the claim only.
func (v *agentView) spent() bool {
	return v.turn >= v.limit-1 || v.budget > 0 && len(v.calls) >= v.budget
}

// hopeless reports whether a call of a tool was refused and no call has succeeded since.
func (v *agentView) hopeless(tool string) bool {
	for _, c := range slices.Backward(v.calls) {
		switch {
		case c.happened:
			return false
		case c.text == tool && c.refused:
			return true
		}
	}
	return false
}
