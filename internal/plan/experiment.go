// Package plan turns what a user wrote into trials: it reads experiment files
// and providers files, checks them, and expands an experiment into cells and
// trials in the order in which they should run.
//
// It runs nothing, opens no store and holds no secret: keys stay names of
// environment variables until somebody asks for them.
package plan

import (
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/episode"
	"github.com/assay-eval/assay/internal/nearest"
	"github.com/assay-eval/assay/internal/world"
)

// An Experiment is a file that names factors and their levels. Its JSON is
// what the store keeps of it.
type Experiment struct {
	Name          string         `yaml:"name" json:"name"`
	Seed          int64          `yaml:"seed" json:"seed"`
	World         string         `yaml:"world" json:"world"`
	Library       string         `yaml:"library" json:"library"`
	Models        []string       `yaml:"models" json:"models"`
	Variants      []string       `yaml:"variants" json:"variants"`
	Difficulties  Names          `yaml:"difficulties" json:"difficulties"`
	TaskTypes     Names          `yaml:"task_types" json:"task_types"`
	Reliabilities []float64      `yaml:"reliabilities" json:"reliabilities"`
	TasksPerType  Count          `yaml:"tasks_per_type" json:"tasks_per_type"`
	Repeats       int            `yaml:"repeats" json:"repeats"`
	Protocol      string         `yaml:"protocol" json:"protocol"`
	Tools         string         `yaml:"tools" json:"tools"`
	Limits        Limits         `yaml:"limits" json:"limits"`
	Budget        Budgets        `yaml:"budget" json:"budget,omitzero"`
	Stop          StopRules      `yaml:"stop" json:"stop,omitzero"`
	Sampling      assay.Sampling `yaml:"sampling" json:"sampling"`
	Providers     string         `yaml:"providers" json:"providers,omitempty"`
	// Severities belong to flawed variants, which this version does not have.
	Severities []string `yaml:"severities" json:"severities,omitempty"`

	doc *document
}

// Limits bound an episode. Request and Trial are working time: waiting for a
// rate limit does not count.
type Limits struct {
	Turns   int      `yaml:"turns" json:"turns"`
	Request Duration `yaml:"request" json:"request"`
	Trial   Duration `yaml:"trial" json:"trial"`
	// Tokens and USD end an episode that has used up so much; 0 for no limit.
	Tokens int     `yaml:"tokens" json:"tokens,omitempty"`
	USD    float64 `yaml:"usd" json:"usd,omitempty"`
}

// The defaults of an experiment file.
const (
	DefaultSeed    = 2025
	DefaultTurns   = 10
	DefaultRequest = Duration(150 * time.Second)
	DefaultTrial   = Duration(10 * time.Minute)
	DefaultTasks   = Count(20)
	BuiltinLibrary = "builtin"
	Native         = "native"
)

// Names is a list of names, for which a file can also say `all`.
type Names []string

// All stands for every name there is.
const All = "all"

// UnmarshalYAML reads a list, or one name.
func (n *Names) UnmarshalYAML(unmarshal func(any) error) error {
	var one string
	if unmarshal(&one) == nil {
		*n = Names{one}
		return nil
	}
	return unmarshal((*[]string)(n))
}

// Count is a number of tasks; AllTasks means every one.
type Count int

// AllTasks is what `all` reads as.
const AllTasks Count = -1

// UnmarshalYAML reads a whole number or `all`.
func (c *Count) UnmarshalYAML(b []byte) error {
	s := strings.Trim(strings.TrimSpace(string(b)), `"'`)
	if s == All {
		*c = AllTasks
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		return fmt.Errorf("%q is not a number of tasks: write a whole number from 1, or all", s)
	}
	*c = Count(n)
	return nil
}

// MarshalJSON writes the number or "all".
func (c Count) MarshalJSON() ([]byte, error) {
	if c == AllTasks {
		return []byte(`"all"`), nil
	}
	return json.Marshal(int(c))
}

// UnmarshalJSON reads what MarshalJSON writes.
func (c *Count) UnmarshalJSON(b []byte) error { return c.UnmarshalYAML(b) }

// Duration reads "150s" and "10m", as in Go.
type Duration time.Duration

// UnmarshalYAML reads a positive duration with its unit.
func (d *Duration) UnmarshalYAML(b []byte) error {
	s := strings.Trim(strings.TrimSpace(string(b)), `"'`)
	v, err := time.ParseDuration(s)
	if err != nil || v <= 0 {
		return fmt.Errorf("%q is not a duration: write a number with its unit, such as 150s or 10m", s)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes the duration as Go prints it.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Duration) UnmarshalJSON(b []byte) error { return d.UnmarshalYAML(b) }

// Load reads an experiment file, sets its defaults and checks it. Paths in it
// are relative to the file.
func Load(path string) (*Experiment, error) {
	doc, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	return load(doc)
}

func load(doc *document) (*Experiment, error) {
	e := &Experiment{doc: doc}
	if err := doc.decode(e); err != nil {
		return nil, e.locate(err)
	}
	e.defaults()
	if err := e.check(); err != nil {
		return nil, err
	}
	if e.Library != BuiltinLibrary && e.Library != "" {
		e.Library = relative(doc.dir, e.Library)
	}
	if e.Providers != "" {
		e.Providers = relative(doc.dir, e.Providers)
	}
	return e, nil
}

// locate finds the place of an error that a value's own reader gave, which the
// YAML library passes on without it.
func (e *Experiment) locate(err error) error {
	found, ok := err.(*Error)
	if !ok || found.Line > 0 {
		return err
	}
	for field, value := range map[string]interface{ UnmarshalYAML([]byte) error }{
		"tasks_per_type": new(Count), "limits.request": new(Duration), "limits.trial": new(Duration),
	} {
		node := e.node(field)
		if node == nil {
			continue
		}
		if err := value.UnmarshalYAML([]byte(node.GetToken().Value)); err != nil {
			return e.doc.at("$."+field, err.Error(), "")
		}
	}
	return err
}

// relative returns the absolute path of one that stands in a file in dir.
func relative(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

func (e *Experiment) defaults() {
	if e.Name == "" {
		e.Name = strings.TrimSuffix(filepath.Base(e.doc.name), filepath.Ext(e.doc.name))
	}
	if !e.has("seed") {
		e.Seed = DefaultSeed
	}
	if !e.has("repeats") {
		e.Repeats = 1
	}
	if !e.has("reliabilities") {
		e.Reliabilities = []float64{0.8}
	}
	if e.TasksPerType == 0 {
		e.TasksPerType = DefaultTasks
	}
	if len(e.Variants) == 0 {
		e.Variants = []string{"plain"}
	}
	if len(e.Difficulties) == 0 {
		e.Difficulties = Names{"easy"}
	}
	if len(e.TaskTypes) == 0 {
		e.TaskTypes = Names{All}
	}
	orElse(&e.World, world.PilotName)
	orElse(&e.Library, BuiltinLibrary)
	orElse(&e.Protocol, Native)
	orElse(&e.Tools, episode.Discover)
	if !e.has("limits.turns") {
		e.Limits.Turns = DefaultTurns
	}
	if e.Limits.Request == 0 {
		e.Limits.Request = DefaultRequest
	}
	if e.Limits.Trial == 0 {
		e.Limits.Trial = DefaultTrial
	}
	e.stopDefaults()
	e.Variants = group(e.Variants, "plain", episode.Variants)
	e.Difficulties = group(e.Difficulties, All, assay.Difficulties)
	e.TaskTypes = group(e.TaskTypes, All, assay.TaskTypes)
}

func orElse(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// group replaces a group's name by its members and drops repetitions.
func group(names []string, name string, members []string) []string {
	var out []string
	for _, n := range names {
		add := []string{n}
		if n == name {
			add = members
		}
		for _, m := range add {
			if !slices.Contains(out, m) {
				out = append(out, m)
			}
		}
	}
	return out
}

// has reports whether the file gives the field a value.
func (e *Experiment) has(field string) bool {
	node := e.node(field)
	return node != nil && node.Type() != ast.NullType
}

// node returns the value of a field, nil without it.
func (e *Experiment) node(field string) ast.Node {
	p, err := yaml.PathString("$." + field)
	if err != nil {
		return nil
	}
	node, err := p.FilterFile(e.doc.file)
	if err != nil {
		return nil
	}
	return node
}

var nameText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

func (e *Experiment) check() error {
	if !nameText.MatchString(e.Name) {
		return e.doc.at("$.name", fmt.Sprintf("%q is not a name", e.Name), "use up to 100 letters, digits, dots, dashes and underscores")
	}
	if len(e.Models) == 0 {
		return e.doc.at("$.models", "names no model", "write models: [sim/listed] to try without a key; built-in are the names that begin with sim/")
	}
	if len(e.Severities) > 0 {
		return e.doc.at("$.severities", "severities belong to flawed variants, which this version does not have yet", "remove the line")
	}
	for _, list := range []struct {
		field, what string
		got, known  []string
	}{
		{"variants", "variant", e.Variants, episode.Variants},
		{"difficulties", "difficulty", e.Difficulties, assay.Difficulties},
		{"task_types", "task type", e.TaskTypes, assay.TaskTypes},
		{"world", "world", []string{e.World}, []string{world.PilotName}},
		{"protocol", "protocol", []string{e.Protocol}, []string{Native}},
		{"tools", "setting of tools", []string{e.Tools}, []string{episode.Discover, episode.Listed}},
	} {
		if err := e.checkNames(list.field, list.what, list.got, list.known); err != nil {
			return err
		}
	}
	for i, m := range e.Models {
		if strings.TrimSpace(m) != m || m == "" {
			return e.doc.at(fmt.Sprintf("$.models[%d]", i), fmt.Sprintf("%q is not a model's name", m), "")
		}
		if j := slices.Index(e.Models, m); j < i {
			return e.doc.at(fmt.Sprintf("$.models[%d]", i), fmt.Sprintf("model %s is listed twice", m), "repeats: 2 runs every trial twice")
		}
	}
	return e.checkNumbers()
}

func (e *Experiment) checkNames(field, what string, got, known []string) error {
	for _, name := range got {
		if slices.Contains(known, name) {
			continue
		}
		hint := nearest.Hint(name, known)
		if name == "assay-1" || name == "tags" || strings.HasPrefix(name, "flawed") {
			hint = "it is planned, and not in this version; known are " + strings.Join(known, ", ")
		}
		return e.doc.at(e.place(field, name), fmt.Sprintf("unknown %s %q", what, name), hint)
	}
	return nil
}

// place returns the path of a name in a field that is a list or a single name.
func (e *Experiment) place(field, name string) string {
	for i := range 1000 {
		path := fmt.Sprintf("$.%s[%d]", field, i)
		p, err := yaml.PathString(path)
		if err != nil {
			break
		}
		node, err := p.FilterFile(e.source().file)
		if err != nil || node == nil {
			break
		}
		if node.GetToken().Value == name {
			return path
		}
	}
	return "$." + field
}

func (e *Experiment) checkNumbers() error {
	if len(e.Reliabilities) == 0 {
		return e.doc.at("$.reliabilities", "names no reliability", "write reliabilities: [0.8]")
	}
	for i, r := range e.Reliabilities {
		path := fmt.Sprintf("$.reliabilities[%d]", i)
		switch {
		case r > 1 && r <= 100:
			return e.doc.at(path, fmt.Sprintf("reliability %v is not between 0 and 1", r), fmt.Sprintf("write %v for %v %%", r/100, r))
		case !(r >= 0 && r <= 1):
			return e.doc.at(path, fmt.Sprintf("reliability %v is not between 0 and 1", r), "")
		case slices.Index(e.Reliabilities, r) < i:
			return e.doc.at(path, fmt.Sprintf("reliability %v is listed twice", r), "")
		}
	}
	for _, n := range []struct {
		field       string
		value, most int
	}{{"repeats", e.Repeats, 10000}, {"limits.turns", e.Limits.Turns, 200}} {
		if n.value < 1 || n.value > n.most {
			return e.doc.at("$."+n.field, fmt.Sprintf("%s is %d, want 1 to %d", n.field, n.value, n.most), "")
		}
	}
	if err := e.checkSpending(); err != nil {
		return err
	}
	if err := e.checkStop(); err != nil {
		return err
	}
	return e.checkSampling()
}

// checkSpending checks the bounds of what episodes and runs spend. Those that
// the file does not state are 0.
func (e *Experiment) checkSpending() error {
	b := e.Budget
	for _, n := range []struct {
		field string
		value float64
	}{
		{"limits.tokens", float64(e.Limits.Tokens)},
		{"limits.usd", e.Limits.USD},
		{"budget.usd", b.USD},
		{"budget.tokens", float64(b.Tokens)},
		{"budget.per_model.usd", b.PerModel.USD},
		{"budget.per_model.tokens", float64(b.PerModel.Tokens)},
		{"budget.per_cell.usd", b.PerCell.USD},
		{"budget.per_cell.tokens", float64(b.PerCell.Tokens)},
	} {
		if e.has(n.field) && !(n.value > 0 && n.value <= math.MaxFloat64) {
			return e.FieldError(n.field, fmt.Sprintf("%s is %v, want a number above 0", n.field, n.value), "leave it out for no limit")
		}
	}
	return nil
}

func (e *Experiment) checkSampling() error {
	if t := e.Sampling.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return e.doc.at("$.sampling.temperature", fmt.Sprintf("temperature %v is not between 0 and 2", *t), "")
	}
	if p := e.Sampling.TopP; p != nil && !(*p > 0 && *p <= 1) {
		return e.doc.at("$.sampling.top_p", fmt.Sprintf("top_p %v is not between 0 and 1", *p), "")
	}
	if n := e.Sampling.MaxTokens; n != nil && *n < 1 {
		return e.doc.at("$.sampling.max_tokens", fmt.Sprintf("max_tokens is %d, want at least 1", *n), "")
	}
	return nil
}

// ModelError returns an error at the place where the file names a model.
func (e *Experiment) ModelError(model, message, hint string) error {
	return e.source().at(e.place("models", model), message, hint)
}

// FieldError returns an error at the place of a field.
func (e *Experiment) FieldError(field, message, hint string) error {
	return e.source().at("$."+field, message, hint)
}

// source is what errors point into: the file, and nothing for an experiment
// that was read from the store.
func (e *Experiment) source() *document {
	if e.doc == nil {
		return &document{name: "experiment " + e.Name, file: new(ast.File)}
	}
	return e.doc
}

// Setting returns what decides a trial's outcome beside its cell and task.
func (e *Experiment) Setting() assay.Setting {
	return assay.Setting{
		World: e.World, Protocol: e.Protocol, Tools: e.Tools, Sampling: e.Sampling,
		Turns: e.Limits.Turns, Tokens: e.Limits.Tokens, USD: e.Limits.USD,
	}
}
