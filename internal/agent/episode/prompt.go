package episode

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"text/template"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/workflow"
	"github.com/assay-eval/assay/internal/task/world"
	"github.com/assay-eval/assay/internal/task/world/own"
)

//go:embed templates/*.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"inc":     func(i int) int { return i + 1 },
	"join":    strings.Join,
	"percent": func(p float64) string { return fmt.Sprintf("%.4g", 100*p) },
	"json":    func(v any) string { return string(encode(v)) },
}).ParseFS(templateFiles, "templates/*.tmpl"))

// TemplatesHash identifies the wording of everything that an episode writes to a model, apart from
// the texts of library, task and world. It goes into every result.
var TemplatesHash = hashTemplates()

// A Template is one of the files with the texts for models.
type Template struct{ Name, Text string }

// Templates returns the templates, sorted by name.
func Templates() []Template {
	names, err := fs.Glob(templateFiles, "templates/*.tmpl")
	if err != nil {
		panic("episode: templates: " + err.Error())
	}
	var all []Template
	for _, name := range names {
		b, err := templateFiles.ReadFile(name)
		if err != nil {
			panic("episode: templates: " + err.Error())
		}
		all = append(all, Template{name, string(b)})
	}
	return all
}

func hashTemplates() string {
	h := sha256.New()
	for _, t := range Templates() {
		fmt.Fprintf(h, "%s %d\n%s", t.Name, len(t.Text), t.Text)
	}
	fmt.Fprintf(h, "plans %s\n", workflow.Version)
	b, err := json.Marshal(discoverFunctions)
	if err != nil {
		panic("episode: functions: " + err.Error())
	}
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// GivenPlan returns the plan that a trial's variant shows to the model, or nil if it shows no plan.
// It fails if the flaw does not apply to the task. Such a trial is never planned.
func GivenPlan(
	catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) (*workflow.Plan, error) {
	if !assay.ShowsPlan(trial.Variant) {
		return nil, nil
	}
	if d := world.Of(trial.World); d.OwnTools {
		return ownPlan(catalog, trial, task)
	}
	flaw, flawed := assay.FlawOf(trial.Variant)
	if plain, _ := assay.PlainOf(trial.Variant); plain != assay.Optimal && !flawed {
		return nil, nil
	}
	plan := workflow.For(catalog, trial.World, task)
	if flawed {
		var ok bool
		if plan, ok = workflow.Flawed(catalog, plan, task, flaw, trial.Severity, trial.Seed); !ok {
			return nil, fmt.Errorf("flaw %s does not apply to task %s", flaw, task.ID)
		}
	}
	return &plan, nil
}

// ownPlan returns the plan of a variant of a task with tools that users wrote: the task's reference
// plan, one with a flaw, or one that they wrote for the variant.
func ownPlan(
	catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) (*workflow.Plan, error) {
	plan, ok := workflow.Own(catalog, trial, task)
	if !ok {
		return nil, fmt.Errorf("task %s has no variant %s", task.ID, trial.Variant)
	}
	return plan, nil
}

// Opening returns the messages with which an episode begins. It fails like [GivenPlan].
func Opening(
	catalog *assay.Catalog, trial *assay.Trial, task *assay.Task,
) ([]assay.Message, error) {
	o, err := newOpening(catalog, trial, task)
	if err != nil {
		return nil, err
	}
	return o.messages, nil
}

// introduce returns the messages with which an episode begins.
func (e *episode) introduce(plan *workflow.Plan) []assay.Message {
	trial, in := e.trial, world.Of(e.trial.World)
	_, authority := assay.PlainOf(trial.Variant)
	data := struct {
		Task             *assay.Task
		Inputs, Expected string
		Turns, Calls     int
		Discover, Tags   bool
		Arguments, Think bool
		One, Faults      bool
		OwnTools, Talk   bool
		EndWord          string
		Tools            []toolDetails
		Plan             *workflow.Plan
		Authority        string
		Reliability      float64
	}{
		Task: e.task, Inputs: pretty(e.task.Inputs),
		Turns: trial.Setting.Turns, Calls: trial.Calls,
		Discover:  trial.Tools == assay.Discover,
		Tags:      trial.Protocol == assay.Tags,
		Arguments: in.References,
		Think:     trial.Variant == assay.CoT,
		One:       trial.SeveralCalls == assay.RefuseSeveral,
		Faults:    trial.Faults != "",
		Plan:      e.offer.plan(plan),
		OwnTools:  in.OwnTools,
		Talk:      in.Environments,
		Authority: authority,
		// A dependency that is missing, or a failure before, may change it.
		Reliability: in.Chance(trial.Reliability),
		EndWord:     own.EndWordOf(e.task),
	}
	if trial.World == world.PilotName { // elsewhere, it would give the last tool away
		data.Expected = pretty(e.task.Expected)
	}
	if data.Tags && !data.Discover {
		for _, t := range e.catalog.All() {
			if e.mayUse(t.Name) {
				data.Tools = append(data.Tools, details(trial.World, e.offer.of(), t))
			}
		}
	}
	system := "system.tmpl"
	if data.OwnTools {
		system = "own.tmpl"
	}
	rules := render(system, data)
	if e.offer != nil {
		rules += "\n\n" + e.offer.adapter.Note()
	}
	return []assay.Message{
		{Role: assay.System, Content: rules},
		{Role: assay.User, Content: render("task.tmpl", data)},
	}
}

// nudge answers a reply without an action. It names only tools that have succeeded.
func (e *episode) nudge(claimed bool, left int) assay.Message {
	data := struct {
		Claimed, Tags bool
		Succeeded     []string
		Calls, Left   int
		EndWord       string
	}{
		claimed, e.trial.Protocol == assay.Tags, e.world.Succeeded(), e.callsLeft(), left,
		own.EndWordOf(e.task),
	}
	return assay.Message{Role: assay.User, Content: render("nudge.tmpl", data)}
}

func render(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic("episode: template " + name + ": " + err.Error())
	}
	return strings.TrimSpace(b.String())
}

// pretty indents JSON for a reader. It returns "" for an empty text, null and an empty object.
func pretty(raw json.RawMessage) string {
	if s := strings.TrimSpace(string(raw)); s == "" || s == "null" || s == "{}" {
		return ""
	}
	var b bytes.Buffer
	if err := json.Indent(&b, raw, "", "  "); err != nil {
		return string(raw)
	}
	return b.String()
}
