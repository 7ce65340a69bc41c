package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/episode"
)

// Generation holds settings for generating text, as a file spells them.
type Generation struct {
	assay.Sampling `yaml:",inline"`
	Extra          map[string]any    `yaml:"extra"`
	Headers        map[string]string `yaml:"headers"`
}

// A ModelSpec is a model in a file: a name, or a name with its own settings.
type ModelSpec struct {
	Name       string `yaml:"name"`
	Label      string `yaml:"label"`
	Revision   string `yaml:"revision"`
	Generation `yaml:",inline"`
}

// UnmarshalYAML reads a name or a mapping.
func (m *ModelSpec) UnmarshalYAML(unmarshal func(any) error) error {
	if unmarshal(&m.Name) == nil {
		return nil
	}
	type mapping ModelSpec
	return unmarshal((*mapping)(m))
}

// A Level is a model with its own settings. Its name is the model's name, an @ and a label, and its
// results are filed under that name.
type Level struct {
	// Model is the name in the providers file.
	Model    string         `json:"model"`
	Sampling assay.Sampling `json:"sampling"`
}

// Base returns the name of a model in the providers file, without the label of a level.
func (e *Experiment) Base(model string) string {
	if l, ok := e.Levels[model]; ok {
		return l.Model
	}
	return model
}

// SamplingOf returns the settings for generating text of a model.
func (e *Experiment) SamplingOf(model string) assay.Sampling {
	if l, ok := e.Levels[model]; ok {
		return l.Sampling
	}
	if e.aside(model) {
		return assay.Sampling{} // the experiment's settings are those of the models that act
	}
	return e.Sampling
}

// Setting returns everything besides cell and task that decides the outcome of a
// model's trial.
func (e *Experiment) Setting(model string) assay.Setting {
	set := assay.Setting{
		World: e.World, Protocol: e.Protocol, Tools: e.Tools, Sampling: e.SamplingOf(model),
		Turns: e.Limits.Turns, Calls: e.Limits.Calls, Tokens: e.Limits.Tokens, USD: e.Limits.USD,
		Persistence: e.Failures.Persistence, Burst: e.Failures.Burst, UserModel: e.User,
	}
	if a, ok := e.Agents[e.Base(model)]; ok {
		set.AgentModel, set.AgentTimeout = a.Model, time.Duration(a.Timeout).String()
		set.ModelFaults = e.ModelFaults.String()
	} else {
		set.AsksConfidence = e.Confidence == AskConfidence
	}
	if e.SeveralCalls == assay.RefuseSeveral {
		set.SeveralCalls = assay.RefuseSeveral
	}
	rules := episode.DefaultLoops(e.World)
	usual := rules.String()
	for kind, r := range e.Loops {
		rules[kind] = r.rule()
	}
	if s := rules.String(); s != usual {
		set.Loops = s
	}
	return set
}

// SplitLevel splits a name such as gpt-5@high. A name that does not end in a known effort is the
// model's own, because some endpoints use @ in names.
func SplitLevel(name string) (model, effort string) {
	i := strings.LastIndexByte(name, '@')
	if i > 0 && slices.Contains(assay.Efforts, name[i+1:]) {
		return name[:i], name[i+1:]
	}
	return name, ""
}

// setSpecs sets the models and levels that the file lists.
func (e *Experiment) setSpecs() error {
	if err := e.checkGeneration("sampling", &e.Generation); err != nil {
		return err
	}
	e.Sampling = e.Generation.over(assay.Sampling{})
	for i, spec := range e.Specs {
		at := fmt.Sprintf("models[%d]", i)
		if err := e.checkGeneration(at, &spec.Generation); err != nil {
			return err
		}
		name, err := e.addLevel(spec, at)
		if err != nil {
			return err
		}
		e.Models = append(e.Models, name)
	}
	e.listed = slices.Clone(e.Models)
	e.Specs, e.Generation = nil, Generation{}
	return nil
}

// SetRevision gives a revision to all models without one.
func (e *Experiment) SetRevision(revision string) error {
	if !labelText.MatchString(revision) {
		return &Error{
			File:    "experiment " + e.Name,
			Message: fmt.Sprintf("%q is not a valid revision", revision),
			Hint: "use up to 60 letters, digits, dots, dashes, and the signs + and =; " +
				"revision: beside a model in the file may be any text",
		}
	}
	var models []string
	levels := make(map[string]Level)
	for _, model := range e.Models {
		name, level := model, Level{Model: e.Base(model), Sampling: e.SamplingOf(model)}
		_, own := e.Levels[model]
		switch {
		case level.Sampling.Revision != "":
		case own:
			name += "+" + revision
		default:
			name += "@" + revision
		}
		level.Sampling.Revision = cmp.Or(level.Sampling.Revision, revision)
		if _, taken := levels[name]; taken {
			return e.twoModels(name, revision)
		}
		levels[name] = level
		models = append(models, name)
	}
	e.Models, e.Levels, e.modelsChosen = models, levels, true
	return nil
}

// twoModels returns the error for a revision that gives two models one name.
func (e *Experiment) twoModels(name, revision string) error {
	return &Error{
		File:    "experiment " + e.Name,
		Message: fmt.Sprintf("with revision %s, two models are named %s", revision, name),
		Hint:    "use another revision, or leave out one of the models with --model",
	}
}

// takes reports whether a part has a model, whatever the model's revision is.
func (e *Experiment) takes(p PartSpec, model string) bool {
	return p.takes(model) || p.takes(e.Unrevised(model))
}

// Unrevised returns the name of a model without its revision.
func (e *Experiment) Unrevised(model string) string {
	revision := e.Levels[model].Sampling.Revision
	if name, ok := strings.CutSuffix(model, revision); ok && revision != "" {
		return name[:len(name)-1]
	}
	return model
}

// addLevel adds the level of a model, if it has its own settings, and returns its name.
func (e *Experiment) addLevel(spec ModelSpec, at string) (string, error) {
	if model, effort := SplitLevel(spec.Name); effort != "" && spec.Effort == "" {
		spec.Name, spec.Effort = model, effort
	}
	label := cmp.Or(spec.Label, spec.label())
	own := spec.Generation.over(assay.Sampling{}) != assay.Sampling{} || spec.Revision != ""
	switch {
	case spec.Revision != strings.TrimSpace(spec.Revision) || len(spec.Revision) > longestRevision:
		return "", e.FieldError(at+".revision", fmt.Sprintf(
			"the revision has white space around it or more than %d bytes", longestRevision), "")
	case !own && spec.Label == "":
		return spec.Name, nil
	case !own:
		return "", e.FieldError(at+".label", "a label needs settings that it names",
			"for example effort: high or revision: v2, or remove the label")
	case spec.Name == "":
		return "", e.FieldError(at, "this model has no name", "add name: with the model's name")
	case spec.Label == "" && !labelText.MatchString(label):
		return "", e.FieldError(at, "these settings need a label",
			"add label: with a short name for them, under which results are filed")
	case !labelText.MatchString(label):
		return "", e.FieldError(at+".label", fmt.Sprintf("%q is not a valid label", label),
			"use up to 60 letters, digits, dots, dashes, and the signs + and =")
	}
	name := spec.Name + "@" + label
	if _, ok := e.Levels[name]; ok {
		return "", e.FieldError(at, fmt.Sprintf("two models are named %s", name),
			"give one of them another label")
	}
	if e.Levels == nil {
		e.Levels = make(map[string]Level)
	}
	sampling := spec.over(e.Sampling)
	sampling.Revision = spec.Revision
	e.Levels[name] = Level{Model: spec.Name, Sampling: sampling}
	return name, nil
}

// longestRevision is enough for a sentence.
const longestRevision = 200

var labelText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+=-]{0,59}$`)

// label names the settings and the revision, or returns "" if they have no short name.
func (m *ModelSpec) label() string {
	if len(m.Extra) > 0 || len(m.Headers) > 0 {
		return ""
	}
	var words []string
	for name, value := range m.Fields() {
		words = append(words, strings.TrimPrefix(name+"="+value, "effort="))
	}
	if m.Revision != "" {
		words = append(words, m.Revision)
	}
	return strings.Join(words, "+")
}

// over returns the settings in the file, and the settings in s that the file lacks.
func (g *Generation) over(s assay.Sampling) assay.Sampling {
	return assay.Sampling{
		Temperature: cmp.Or(g.Temperature, s.Temperature), TopP: cmp.Or(g.TopP, s.TopP),
		MaxTokens: cmp.Or(g.MaxTokens, s.MaxTokens), Seed: cmp.Or(g.Seed, s.Seed),
		Effort: cmp.Or(g.Effort, s.Effort), Thinking: cmp.Or(g.Thinking, s.Thinking),
		ToolChoice: cmp.Or(g.ToolChoice, s.ToolChoice),
		Extra:      merged(s.Extra, g.Extra), Headers: merged(s.Headers, g.Headers),
	}
}

// merged returns the text of a JSON object with further fields, which replace fields of the same
// name. The fields are sorted, so that equal settings have equal texts.
func merged[V any](object string, more map[string]V) string {
	if len(more) == 0 {
		return object
	}
	all := make(map[string]any)
	if object != "" {
		_ = json.Unmarshal([]byte(object), &all) // we made it
	}
	for name, v := range more {
		all[name] = v
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic("plan: settings as JSON: " + err.Error())
	}
	return string(text)
}

// checkGeneration checks settings for generating text at a place in the file.
func (e *Experiment) checkGeneration(at string, g *Generation) error {
	if t := g.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return e.FieldError(at+".temperature",
			fmt.Sprintf("temperature %v is not between 0 and 2", *t), "")
	}
	if p := g.TopP; p != nil && !(*p > 0 && *p <= 1) {
		return e.FieldError(at+".top_p", fmt.Sprintf("top_p %v is not between 0 and 1", *p), "")
	}
	if n := g.MaxTokens; n != nil && *n < 1 {
		return e.FieldError(at+".max_tokens",
			fmt.Sprintf("max_tokens is %d, want at least 1", *n), "")
	}
	if n := g.Thinking; n != nil && *n < 0 {
		return e.FieldError(at+".thinking",
			fmt.Sprintf("thinking is %d tokens, want at least 0", *n), "0 turns thinking off")
	}
	for _, one := range []struct {
		field, what, got string
		known            []string
	}{
		{"effort", "effort", g.Effort, assay.Efforts},
		{"tool_choice", "tool choice", g.ToolChoice, assay.ToolChoices},
	} {
		if one.got != "" && !slices.Contains(one.known, one.got) {
			return e.FieldError(at+"."+one.field, fmt.Sprintf("unknown %s %q", one.what, one.got),
				assay.NameHint(one.got, one.known))
		}
	}
	return cmp.Or(e.checkExtra(at, g.Extra), e.checkHeaders(at, g.Headers))
}

// ownFields are the fields of a request that Assay writes itself, with the setting to use instead.
var ownFields = map[string]string{
	"model": "", "messages": "", "input": "", "contents": "", "system": "", "tools": "",
	"functions": "", "stream": "", "n": "",
	"temperature": "temperature", "top_p": "top_p", "max_tokens": "max_tokens", "seed": "seed",
	"tool_choice": "tool_choice", "reasoning_effort": "effort",
}

func (e *Experiment) checkExtra(at string, extra map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(extra)) {
		instead, own := ownFields[name]
		if !own {
			continue
		}
		hint := "remove it"
		if instead != "" {
			hint = fmt.Sprintf("write %s: beside extra", instead)
		}
		return e.source().AtKey("$."+at+".extra", name,
			fmt.Sprintf("extra cannot set %s, which assay sets itself", name), hint)
	}
	if _, err := json.Marshal(extra); err != nil {
		return e.FieldError(at+".extra", "extra cannot be sent as JSON: "+err.Error(), "")
	}
	return nil
}
