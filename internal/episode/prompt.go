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
	"github.com/assay-eval/assay/internal/workflow"
)

// The settings of how a model meets the tools.
const (
	// Discover gives the model three functions with which it finds, reads
	// about and executes the library's tools.
	Discover = "discover"
	// Listed makes each tool of the library a function of its own.
	Listed = "listed"
)

// The variants: how the task is put to the model.
const (
	Baseline = "baseline" // the task alone
	CoT      = "cot"      // the task and the advice to think step by step
	Optimal  = "optimal"  // the task and the reference plan
)

// Variants lists the variants, in the order of every table.
var Variants = []string{Baseline, CoT, Optimal}

//go:embed templates/*.tmpl
var templateFiles embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"inc":     func(i int) int { return i + 1 },
	"join":    strings.Join,
	"percent": func(p float64) string { return fmt.Sprintf("%.4g", 100*p) },
}).ParseFS(templateFiles, "templates/*.tmpl"))

// TemplatesHash identifies the wording of everything that an episode says to a
// model, beside what library, task and world say. It goes into every result.
var TemplatesHash = hashTemplates()

func hashTemplates() string {
	h := sha256.New()
	names, err := fs.Glob(templateFiles, "templates/*.tmpl")
	if err != nil {
		panic("episode: templates: " + err.Error())
	}
	for _, name := range names {
		b, err := templateFiles.ReadFile(name)
		if err != nil {
			panic("episode: templates: " + err.Error())
		}
		fmt.Fprintf(h, "%s %d\n%s", name, len(b), b)
	}
	b, err := json.Marshal(discoverFunctions)
	if err != nil {
		panic("episode: functions: " + err.Error())
	}
	h.Write(b)
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// opening returns the messages with which an episode begins.
func opening(trial assay.Trial, task assay.Task, catalog *assay.Catalog) []assay.Message {
	data := struct {
		Task             assay.Task
		Inputs, Expected string
		Turns            int
		Discover, Think  bool
		Plan             *workflow.Plan
	}{
		Task: task, Inputs: pretty(task.Inputs), Expected: pretty(task.Expected),
		Turns: trial.Setting.Turns, Discover: trial.Tools == Discover, Think: trial.Variant == CoT,
	}
	if trial.Variant == Optimal {
		plan := workflow.Reference(catalog, task, trial.Reliability)
		data.Plan = &plan
	}
	return []assay.Message{
		{Role: assay.System, Content: render("system.tmpl", data)},
		{Role: assay.User, Content: render("task.tmpl", data)},
	}
}

// nudge answers a reply without a call. It names no tool.
func nudge(claimed bool, left int) assay.Message {
	data := struct {
		Claimed bool
		Left    int
	}{claimed, left}
	return assay.Message{Role: assay.User, Content: render("nudge.tmpl", data)}
}

func render(name string, data any) string {
	var b strings.Builder
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
		panic("episode: template " + name + ": " + err.Error())
	}
	return strings.TrimSpace(b.String())
}

// pretty indents JSON for a reader; nothing and an empty object give "".
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
