package check

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

// callText matches the forms in which models write calls into their text if the endpoint does not
// parse them: the tags of Hermes and Qwen, Llama's <function=…>, Mistral's [TOOL_CALLS], DeepSeek's
// and Kimi's special tokens, and bare JSON with a name and arguments.
var callText = regexp.MustCompile(`<tool_call>|<function=|<function_calls?>|\[TOOL_CALLS\]|` +
	`<\|python_tag\|>|<｜tool▁calls▁begin｜>|<\|tool_calls_section_begin\|>|` +
	`"name"\s*:\s*"[^"]+"\s*,\s*"(arguments|parameters)"\s*:`)

// isCall reports whether a call has a name, and an object of arguments.
func isCall(c assay.ToolCall) bool {
	var arguments map[string]json.RawMessage
	return c.Name != "" && json.Unmarshal([]byte(c.Arguments), &arguments) == nil
}

// change adds something that the user should change, and note something to know.
func (r *Result) change(format string, args ...any) {
	r.Changes = append(r.Changes, fmt.Sprintf(format, args...))
}

func (r *Result) note(format string, args ...any) {
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// advise lists the changes to make, in the words of the providers file.
func (r *Result) advise(protocol string, fault *assay.Fault, a *assay.Attempt) {
	r.Changes, r.Notes = []string{}, []string{}
	if fault != nil {
		r.adviseFault(fault)
	}
	if r.Turns == 0 {
		return
	}
	if protocol != assay.Tags {
		r.adviseCalls()
	}
	if a.Truncated > 0 {
		r.note("a reply was cut off; replies of the check have at most %d tokens, unless the "+
			"experiment's max_tokens is lower", replyTokens)
	}
	if r.Usage.Total() == 0 {
		r.adviseUsage()
	}
	r.adviseLimits()
	for _, d := range assay.Names(a.Deviations) {
		r.note("the endpoint does not accept what the experiment asks: %s", d)
	}
	for _, d := range a.Unlike() {
		r.change("the endpoint uses %s; change the setting in the experiment file", d)
	}
}

// adviseFault gives advice on a lane that does not work.
func (r *Result) adviseFault(f *assay.Fault) {
	provider, key, _ := strings.Cut(r.Lane, "/")
	key, deployment, _ := strings.Cut(key, "/")
	switch f.Kind {
	case assay.Auth:
		if key == "none" {
			r.change("provider %s wants a key: write keys: [MY_KEY], and export MY_KEY", provider)
			return
		}
		r.change("the endpoint refuses the key in %s: export another, or take %[1]s out of "+
			"keys of provider %s", key, provider)
	case assay.Quota:
		r.change("the account of the key in %s has no credit left: add some, or take %[1]s "+
			"out of keys of provider %s", key, provider)
	case assay.NotFound:
		r.change("provider %s does not know %q: write the endpoint's own name, deployments: "+
			"[NAME], or correct base_url, which often ends in /v1", provider, deployment)
	case assay.Identity:
		r.adviseName()
	case assay.Network:
		r.change("no connection to provider %s: start its server, or correct base_url", provider)
	case assay.Timeout:
		r.change("provider %s did not reply in time: a server that loads its model needs a "+
			"longer --timeout", provider)
	case assay.RateLimited, assay.Overloaded:
		r.change("the endpoint was busy all the time: check later, or state lower limits for "+
			"model %s%s",
			r.Model, named(f))
	case assay.BadRequest:
		r.adviseRequest()
	default:
		r.change("provider %s does not answer as its protocol demands: correct protocol or "+
			"base_url",
			provider)
	}
}

// named returns the limit that a refusal names, as the providers file spells it.
func named(f *assay.Fault) string {
	if f.Bucket == "" || f.Limit == 0 {
		return ""
	}
	return fmt.Sprintf(", limits: {%s: %d}", f.Bucket, f.Limit)
}

// adviseName explains how to accept the name of the model that answered.
func (r *Result) adviseName() {
	name := strconv.Quote(r.Served)
	if r.Served == "" {
		r.change("replies name no model: if that is always so, write serves: %s below model %s",
			"["+name+"]", r.Model)
		return
	}
	r.change("%s answered instead of %q: if this is the model that you want, write serves: "+
		"[%s] below model %s; if not, correct deployments", r.Served, r.lane.Orders, name, r.Model)
}

func (r *Result) adviseRequest() {
	switch {
	case r.State == Refused:
		r.change("the endpoint refuses the state of its own reply, so conversations of this " +
			"model end after one turn: try the protocol of the model's own provider")
	case r.Turns > 0:
		r.change("the endpoint refuses a conversation with the result of a tool: try another " +
			"protocol, or protocol: tags in the experiment file")
	default:
		r.change("the endpoint refuses the request: take the setting that it names out of the " +
			"experiment file; if it does not know tools, write protocol: tags there")
	}
}

func (r *Result) adviseCalls() {
	switch r.Calls {
	case AsText:
		r.change("the endpoint leaves calls of tools in the text: start its server with a " +
			"parser for this model (vLLM: --enable-auto-tool-choice --tool-call-parser NAME; " +
			"llama.cpp: --jinja), or write protocol: tags in the experiment file")
	case Invalid:
		r.change("a call of a tool has no name, or arguments that are not a JSON object: the " +
			"parser of the endpoint may not fit the model; another one, or protocol: tags in " +
			"the experiment file, may help")
	case NotAsked:
		r.note("the model called no tool in its first reply, so calls are not checked")
	}
}

func (r *Result) adviseUsage() {
	l, price := r.lane.Limits, r.lane.Price
	if (price.Unknown() || price.Free()) && l.TPM+l.ITPM+l.OTPM == 0 {
		r.note("the endpoint does not report how many tokens replies use")
		return
	}
	r.change("the endpoint does not report how many tokens replies use, so dollars and limits " +
		"on tokens are estimates: let its server report usage, or limit requests instead")
}

// adviseLimits compares the limits that headers report with those in the file.
func (r *Result) adviseLimits() {
	var told, lower []string
	for _, b := range lane.Buckets {
		n, stated := *r.Limits.Of(b), *r.lane.Limits.Of(b)
		text := fmt.Sprintf("%s: %d", b, n)
		switch {
		case n > 0 && stated > n:
			lower = append(lower, text)
		case n > 0 && stated == 0:
			told = append(told, text)
		}
	}
	if len(lower) > 0 {
		r.change("the endpoint allows less than the file states: write limits: {%s} below model %s",
			strings.Join(lower, ", "), r.Model)
	}
	if len(told) > 0 {
		r.note("the endpoint reports {%s}; without limits in the file, a run learns them",
			strings.Join(told, ", "))
	}
}
