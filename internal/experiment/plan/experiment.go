// Package plan turns the files that a user writes into trials. It reads
// experiment files and providers files, checks them, and expands an experiment
// into cells and trials in the order in which they should run.
//
// It does not run trials, open a store or hold secrets: an API key is known
// only by the name of its environment variable.
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// An Experiment is an experiment file: factors, their levels and the settings
// of its episodes. The store keeps it as JSON.
type Experiment struct {
	Name    string   `yaml:"name" json:"name"`
	Seed    int64    `yaml:"seed" json:"seed"`
	World   string   `yaml:"world" json:"world"`
	Library string   `yaml:"library" json:"library"`
	Models  []string `yaml:"-" json:"models"`
	// Levels has the models that have their own settings.
	Levels map[string]Level `yaml:"-" json:"levels,omitempty"`
	// Agents has the models that are foreign agents; see [Experiment.FindAgents].
	Agents map[string]AgentUse `yaml:"-" json:"agents,omitempty"`
	// Specs and Generation are the models and the sampling as the file spells them. They are
	// empty once the file has been read.
	Specs []ModelSpec `yaml:"models" json:"-"`
	// Factors apply to every trial. In an experiment with parts, they are the
	// defaults of the parts.
	Factors `yaml:",inline"`
	// Replays is how often each trial is played once more, luck included.
	Replays      int                         `yaml:"replays" json:"replays,omitempty"`
	Parts        []PartSpec                  `yaml:"parts" json:"parts,omitempty"`
	Protocol     string                      `yaml:"protocol" json:"protocol"`
	Tools        string                      `yaml:"tools" json:"tools"`
	SeveralCalls string                      `yaml:"several_calls" json:"several_calls,omitempty"`
	Failures     Failures                    `yaml:"failures" json:"failures,omitzero"`
	Loops        map[assay.LoopKind]LoopRule `yaml:"loops" json:"loops,omitempty"`
	Limits       Limits                      `yaml:"limits" json:"limits"`
	Budget       Budgets                     `yaml:"budget" json:"budget,omitzero"`
	Stop         StopRules                   `yaml:"stop" json:"stop,omitzero"`
	Sampling     assay.Sampling              `yaml:"-" json:"sampling"`
	Generation   Generation                  `yaml:"sampling" json:"-"`
	Providers    string                      `yaml:"providers" json:"providers,omitempty"`
	// Confidence is AskConfidence if models are asked, after the end, how likely they have succeeded.
	Confidence string `yaml:"confidence" json:"confidence,omitempty"`
	// ModelFaults are the rates of the planted faults of the models behind foreign agents.
	ModelFaults assay.ModelFaultRates `yaml:"model_faults" json:"model_faults,omitempty"`
	// User is the model that speaks as the user of an environment. Its adapter writes the prompts.
	User string `yaml:"user" json:"user,omitempty"`
	// Judges are the models that judge the library's tasks; see [Experiment.SetLibrary].
	Judges []library.JudgeUse `yaml:"-" json:"judges,omitempty"`
	// These fields define how `assay run` proceeds. The store does not keep them.
	Workers Workers `yaml:"workers" json:"-"`
	Save    string  `yaml:"save" json:"-"`    // SaveTurns, which is the default, or SaveAttempts
	Metrics string  `yaml:"metrics" json:"-"` // the address that serves metrics
	Notify  string  `yaml:"notify" json:"-"`  // the environment variable with a webhook
	Logs    string  `yaml:"logs" json:"-"`    // the directory of logs, or NoLogs
	// Again is the number of further repeats of everything that the command line asked for.
	Again int `yaml:"-" json:"again,omitempty"`
	// Forks, if set, makes every trial a fork of another experiment's attempt.
	Forks *Forks `yaml:"-" json:"forks,omitempty"`

	doc          *yamldoc.Document
	published    bool // read from a report
	modelsChosen bool // by SetModels
	only         Narrowing
	// types are the types of the library's tasks, if they are not the built-in ones.
	types []string
	// phrasings are those that the library's tasks have, if they are not the built-in ones.
	phrasings []string
	// listed are the models of the file, in its order.
	listed []string
}

// Limits bound an episode. Request and Trial count working time only, not the
// time spent waiting for a rate limit.
type Limits struct {
	Turns int `yaml:"turns" json:"turns"`
	// Calls is 0 in an experiment that was stored before there was a limit of calls.
	Calls   int      `yaml:"calls" json:"calls,omitempty"`
	Request Duration `yaml:"request" json:"request"`
	Trial   Duration `yaml:"trial" json:"trial"`
	// Tokens and USD end an episode that has used them up; 0 means no limit.
	Tokens int     `yaml:"tokens" json:"tokens,omitempty"`
	USD    float64 `yaml:"usd" json:"usd,omitempty"`
}

// The defaults of an experiment file.
const (
	DefaultSeed    = 2025
	DefaultTurns   = 15
	DefaultCalls   = 10
	DefaultRequest = Duration(150 * time.Second)
	DefaultTrial   = Duration(10 * time.Minute)
	DefaultTasks   = Count(20)
	// At the default difficulty, agents that only compare words hardly ever succeed.
	DefaultDifficulty = "medium"
	BuiltinLibrary    = "builtin"
	// NoLogs as the value of logs turns logs off.
	NoLogs = "none"
	// What a run has on disk before it goes on: each reply of a model, or only ended attempts.
	SaveTurns    = "turns"
	SaveAttempts = "attempts"
	// Whether models are asked how likely they have succeeded.
	AskConfidence = "ask"
	NoConfidence  = "none"
)

// Load reads an experiment file, fills in the defaults and checks it. Paths in the file are
// relative to its directory. If models are given, they replace the models in the file, so the file
// may leave them out. A report in JSON is read as the experiment that it is about; see [LoadPublished].
func Load(path string, models ...string) (*Experiment, error) {
	if isPublished(path) {
		p, err := LoadPublished(path)
		if err == nil && len(models) > 0 {
			err = p.Experiment.SetModels(models)
		}
		if err != nil {
			return nil, err
		}
		return p.Experiment, nil
	}
	doc, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	return load(doc, models...)
}

func load(doc *yamldoc.Document, models ...string) (*Experiment, error) {
	e, err := read(doc)
	if err != nil {
		return nil, err
	}
	if len(models) > 0 {
		if err := e.SetModels(models); err != nil {
			return nil, err
		}
		return e, nil
	}
	if i, message, hint := e.modelMistake(e.Models); message != "" {
		field := "models"
		if i >= 0 {
			field = fmt.Sprintf("models[%d]", i)
		}
		return nil, e.FieldError(field, message, hint)
	}
	if err := e.checkPartModels(); err != nil {
		return nil, err
	}
	return e, nil
}

// read reads an experiment file, which may leave out its models.
func read(doc *yamldoc.Document) (*Experiment, error) {
	e := &Experiment{doc: doc}
	if err := doc.Decode(e); err != nil {
		return nil, err
	}
	if e.Library != BuiltinLibrary && e.Library != "" {
		e.Library = relative(doc.Dir, e.Library)
	}
	e.defaults() // the world depends on the library
	if err := e.check(); err != nil {
		return nil, err
	}
	if e.Providers != "" {
		e.Providers = relative(doc.Dir, e.Providers)
	}
	return e, nil
}

// SetModels replaces the models that the experiment file lists.
func (e *Experiment) SetModels(models []string) error {
	if _, message, hint := e.modelMistake(models); message != "" {
		if len(models) == 0 {
			hint = "built-in models have names that start with sim/"
		}
		return &Error{File: "experiment " + e.Name, Message: message, Hint: hint}
	}
	named := e.Levels
	e.Models, e.Levels, e.modelsChosen = nil, nil, true
	for _, m := range models {
		if level, ok := named[m]; ok {
			if e.Levels == nil {
				e.Levels = make(map[string]Level)
			}
			e.Levels[m] = level
			e.Models = append(e.Models, m)
			continue
		}
		name, err := e.addLevel(ModelSpec{Name: m}, "models")
		if err != nil {
			return err
		}
		e.Models = append(e.Models, name)
	}
	return nil
}

// SetProviders replaces the providers file that the experiment file names. A
// relative path is relative to the working directory.
func (e *Experiment) SetProviders(path string) { e.Providers = relative(".", path) }

// modelMistake checks a list of models. If it finds a mistake, it returns the
// index of the wrong model, or -1 if the list as a whole is wrong, together
// with a message and a hint. The message is empty if the list is fine.
func (e *Experiment) modelMistake(models []string) (i int, message, hint string) {
	if len(models) == 0 {
		return -1, "no models are listed",
			"write models: [sim/listed] to try it without a key; built-in models start with sim/"
	}
	for i, m := range models {
		included := func(p PartSpec) bool { return e.takes(p, m) }
		base, _ := SplitLevel(e.Base(m))
		var wrong *sim.NameError
		switch {
		case strings.TrimSpace(m) != m || m == "":
			return i, fmt.Sprintf("%q is not a valid model name", m), ""
		case slices.Index(models, m) < i:
			return i, fmt.Sprintf("model %s is listed twice", m),
				"to run every trial twice, write repeats: 2"
		case errors.As(sim.CheckName(base), &wrong):
			return i, wrong.Message, wrong.Hint
		case !slices.ContainsFunc(e.parts(), included):
			return i, fmt.Sprintf("no part of the experiment includes model %s", m),
				"add the model to the models of a part, or remove it"
		}
	}
	return -1, "", ""
}

// relative returns the absolute form of a path written in a file in dir.
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
		e.Name = strings.TrimSuffix(filepath.Base(e.doc.Name), filepath.Ext(e.doc.Name))
	}
	if !e.has("seed") {
		e.Seed = DefaultSeed
	}
	orElse(&e.World, e.usualWorld())
	orElse(&e.Library, BuiltinLibrary)
	orElse(&e.Protocol, assay.Native)
	orElse(&e.Tools, e.usualTools())
	orElse(&e.SeveralCalls, execute)
	e.turnDefaults()
	if e.Limits.Request == 0 {
		e.Limits.Request = DefaultRequest
	}
	if e.Limits.Trial == 0 {
		e.Limits.Trial = DefaultTrial
	}
	e.loopDefaults()
	e.stopDefaults()
	e.fill(&e.Factors, "", Factors{
		Variants: Names{"plain"}, Difficulties: Names{e.usualDifficulty()}, TaskTypes: Names{All},
		Reliabilities: []float64{0.8}, TasksPerType: e.usualTasks(), Repeats: 1,
	})
	for i := range e.Parts {
		e.fill(&e.Parts[i].Factors, fmt.Sprintf("parts[%d].", i), e.Factors)
	}
}

func orElse(s *string, value string) {
	if *s == "" {
		*s = value
	}
}

// has reports whether the file sets the field.
func (e *Experiment) has(field string) bool {
	node := e.node(field)
	return node != nil && node.Tag != "!!null"
}

// node returns the value of a field, or nil if the file does not have the
// field.
func (e *Experiment) node(field string) *yaml.Node { return e.source().Node("$." + field) }

var nameText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

const nameHint = "use up to 100 letters, digits, dots, dashes and underscores"

func (e *Experiment) check() error {
	if !nameText.MatchString(e.Name) {
		return e.FieldError("name", fmt.Sprintf("%q is not a valid name", e.Name), nameHint)
	}
	for _, one := range []struct {
		field, what, got string
		known            []string
	}{
		{"world", "world", e.World, world.Names},
		{"protocol", "protocol", e.Protocol, assay.Protocols},
		{"tools", "tool setting", e.Tools, assay.ToolSettings},
		{
			"several_calls", "setting of several_calls", e.SeveralCalls,
			[]string{execute, assay.RefuseSeveral},
		},
		{"save", "setting of save", cmp.Or(e.Save, SaveTurns), []string{SaveTurns, SaveAttempts}},
		{
			"confidence", "setting of confidence", cmp.Or(e.Confidence, NoConfidence),
			[]string{AskConfidence, NoConfidence},
		},
	} {
		if err := e.checkNames(one.field, one.what, []string{one.got}, one.known); err != nil {
			return err
		}
	}
	if err := e.checkTurns(); err != nil {
		return err
	}
	if err := e.checkFactors(&e.Factors, ""); err != nil {
		return err
	}
	for _, check := range []func() error{
		e.checkReplays, e.checkParts, e.checkSeverities, e.checkFailures, e.checkModelFaults, e.checkLoops,
		e.checkSpending, e.checkStop, e.checkWorkers, e.checkUser, e.setSpecs,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (e *Experiment) checkNames(field, what string, got, known []string) error {
	for _, name := range got {
		if !slices.Contains(known, name) {
			return e.FieldError(e.place(field, name), fmt.Sprintf("unknown %s %q", what, name),
				assay.NameHint(name, known))
		}
	}
	return nil
}

func (e *Experiment) checkWhole(field string, n, most int) error {
	if n < 1 || n > most {
		return e.FieldError(field, fmt.Sprintf("%s is %d, want 1 to %d", field, n, most), "")
	}
	return nil
}

// maxReplays bounds the replays of a trial. Further repeats say more than further replays.
const maxReplays = 1000

func (e *Experiment) checkReplays() error {
	if e.Replays >= 0 && e.Replays <= maxReplays {
		return nil
	}
	return e.FieldError("replays", fmt.Sprintf("replays is %d, want 0 to %d", e.Replays, maxReplays),
		"it counts how often each trial is played once more, besides its first time")
}

// place returns the path of a name in a field that holds a list or a single
// name.
func (e *Experiment) place(field, name string) string {
	for i := range 1000 {
		path := fmt.Sprintf("%s[%d]", field, i)
		node := e.node(path)
		if node == nil {
			break
		}
		if node.Value == name {
			return path
		}
	}
	return field
}

// checkSpending checks the limits on tokens and dollars. A limit that the file
// does not set is 0.
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
			return e.FieldError(n.field,
				fmt.Sprintf("%s is %v, want a number above 0", n.field,
					n.value), "remove it if there should be no limit")
		}
	}
	return nil
}

// checkUser returns an error if a model should speak where nobody listens.
func (e *Experiment) checkUser() error {
	if e.User == "" || world.Of(e.World).Environments {
		return nil
	}
	return e.source().AtKey("$", "user", "the world "+e.World+" has no user who talks to the agent",
		"remove this field; docs/environments.md has the environments with users")
}

// Asked returns the models that are asked: the listed ones, and those beside them.
func (e *Experiment) Asked() []string {
	all := slices.Clip(e.Models)
	for _, model := range e.Beside() {
		if !slices.Contains(all, model) {
			all = append(all, model)
		}
	}
	return all
}

// Beside returns the models that are asked for something else than to act: to speak as the user, and to
// judge.
func (e *Experiment) Beside() (models []string) {
	if e.User != "" {
		models = append(models, e.User)
	}
	for _, j := range e.Judges {
		models = append(models, j.Model)
	}
	return models
}

// aside reports whether a model is asked, and is none of the listed ones.
func (e *Experiment) aside(model string) bool {
	return slices.Contains(e.Beside(), model) && !slices.Contains(e.Models, model)
}

// ModelError returns an error that points at a model in the file or at the flag that chose it.
func (e *Experiment) ModelError(model, message, hint string) error {
	field, i := "models", slices.Index(e.listed, e.Unrevised(model))
	switch {
	case i >= 0:
		field = fmt.Sprintf("models[%d]", i)
	case model == e.User && e.aside(model):
		field = "user"
	case e.aside(model):
		return &Error{File: e.Library, Message: message + ", which judges its tasks", Hint: hint}
	case e.modelsChosen:
		return &Error{File: "--model", Message: message, Hint: hint}
	}
	return e.FieldError(field, message, hint)
}

// FieldError returns an error that points at a field.
func (e *Experiment) FieldError(field, message, hint string) error {
	return e.source().At("$."+field, message, hint)
}

// source returns the document that errors point into. It is empty if the
// experiment was read from the store.
func (e *Experiment) source() *yamldoc.Document {
	if e.doc == nil {
		return yamldoc.Absent("experiment " + e.Name)
	}
	return e.doc
}

// Folders returns the folders of the experiment's file and of its library's, as far as they are known.
func (e *Experiment) Folders() (dirs []string) {
	if e.doc != nil {
		if dir, err := filepath.Abs(e.doc.Dir); err == nil {
			dirs = append(dirs, dir)
		}
	}
	if library, err := filepath.Abs(e.Library); err == nil {
		if info, err := os.Stat(library); err == nil && !info.IsDir() {
			dirs = append(dirs, filepath.Dir(library))
		}
	}
	return dirs
}
