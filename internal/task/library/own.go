package library

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
	"github.com/assay-eval/assay/internal/task/mcp"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// IsTaskFile reports whether a library's name is the name of a YAML file of tasks.
func IsTaskFile(name string) bool {
	ext := strings.ToLower(filepath.Ext(name))
	return ext == ".yaml" || ext == ".yml"
}

// CatalogOf returns the tools of a library file. They are empty for the built-in library, and if
// there is no such file.
func CatalogOf(path string) *assay.Catalog {
	if path == "" || path == BuiltinName {
		return assay.NewCatalog(nil)
	}
	l, err := Open(context.Background(), path)
	if err != nil {
		return assay.NewCatalog(nil) // whoever opens the library reports why
	}
	defer l.Close()
	return l.Catalog()
}

// MayHave reports whether a library file has tasks at a difficulty. The built-in library has them at
// all, and so may a file that cannot be read.
func MayHave(path, difficulty string) bool {
	if path == "" || path == BuiltinName {
		return true
	}
	l, err := Open(context.Background(), path)
	if err != nil {
		return true // whoever opens the library reports why
	}
	defer l.Close()
	var found int
	err = l.db.QueryRow(`SELECT 1 FROM tasks WHERE difficulty = ? LIMIT 1`, difficulty).Scan(&found)
	return !errors.Is(err, sql.ErrNoRows)
}

// openTasks compiles a YAML file of tasks to a private library file and opens it.
func openTasks(ctx context.Context, path string) (*Library, error) {
	o, err := readTasks(ctx, path)
	if err != nil {
		return nil, err
	}
	meta := Meta{Name: o.name, Source: o.source}
	return compiled(ctx, path, meta, o.catalog, withoutErrors(slices.Values(o.tasks)))
}

// An ownLibrary is the content of a file of tasks and its file of tools.
type ownLibrary struct {
	name, source string
	catalog      *assay.Catalog
	tasks        []assay.Task
}

// A taskDocument is a YAML file of tasks.
type taskDocument struct {
	Name    string         `yaml:"name"`
	Tools   string         `yaml:"tools"`
	System  string         `yaml:"system"`
	EndWord string         `yaml:"end_word"`
	Base    string         `yaml:"base"`
	State   map[string]any `yaml:"state"`
	Judge   opinion        `yaml:"judge"`
	Tasks   []taskEntry    `yaml:"tasks"`
}

// A taskEntry is one task of a YAML file. Missing fields are as in the file around it.
type taskEntry struct {
	ID         string                  `yaml:"id"`
	Type       string                  `yaml:"type"`
	Difficulty string                  `yaml:"difficulty"`
	Prompt     string                  `yaml:"prompt"`
	Inputs     map[string]any          `yaml:"inputs"`
	State      map[string]any          `yaml:"state"`
	Setup      []callEntry             `yaml:"setup"`
	Observe    map[string]callEntry    `yaml:"observe"`
	Tools      []string                `yaml:"tools"`
	System     string                  `yaml:"system"`
	EndWord    string                  `yaml:"end_word"`
	Judge      *judgeEntry             `yaml:"judge"`
	Plan       []callEntry             `yaml:"plan"`
	Answer     string                  `yaml:"answer"`
	Variants   map[string]variantEntry `yaml:"variants"`
	Phrasings  map[string]string       `yaml:"phrasings"`
}

// A variantEntry is a flawed instruction that a user wrote.
type variantEntry struct {
	Instruction string      `yaml:"instruction"`
	Plan        []callEntry `yaml:"plan"`
	Answer      string      `yaml:"answer"`
}

// tasksHelp is for files of tasks and of tools.
var tasksHelp = yamldoc.Help{
	Missing: assay.HintCheckPath,
	Empty:   assay.HintNewTasks,
}

// readTasks reads a file of tasks, or one that names an environment.
func readTasks(ctx context.Context, path string) (*ownLibrary, error) {
	doc, err := yamldoc.Read(path, tasksHelp)
	switch {
	case err != nil:
		return nil, err
	case doc.Node("$.environment") != nil:
		return readEnvironment(ctx, doc)
	}
	return readOwn(ctx, doc)
}

// readOwn reads a file of tasks, its file of tools, and their script and server.
func readOwn(ctx context.Context, doc *yamldoc.Document) (*ownLibrary, error) {
	var file taskDocument
	if err := doc.Decode(&file); err != nil {
		return nil, err
	}
	if file.Tools == "" {
		return nil, doc.At("$", "the file names no tools", "write tools: tools.yaml")
	}
	if _, err := os.Stat(beside(doc, file.Tools)); errors.Is(err, os.ErrNotExist) {
		return nil, doc.At("$.tools", "there is no file "+beside(doc, file.Tools), "check the path")
	}
	tools, err := readOwnTools(ctx, beside(doc, file.Tools))
	if err != nil {
		return nil, err
	}
	if tools.catalog, err = withBase(doc, file.Base, tools.catalog); err != nil {
		return nil, err
	}
	if tools.kit, err = toolkit.Of(tools.catalog); err != nil {
		return nil, err
	}
	o := &ownLibrary{
		name:    cmp.Or(file.Name, nameOf(doc)),
		source:  "tasks of " + filepath.Base(doc.Name) + " with the tools of " + filepath.Base(file.Tools),
		catalog: tools.catalog,
	}
	r := taskReader{doc: doc, file: &file, tools: tools, seen: make(map[TaskKey]bool)}
	for i := range file.Tasks {
		task, err := r.task(i)
		if err == nil {
			err = r.place(i, &task)
		}
		if err != nil {
			return nil, err
		}
		o.tasks = append(o.tasks, task)
	}
	if len(o.tasks) == 0 {
		return nil, doc.At("$", "the file has no tasks", "add a list of them: tasks:")
	}
	return o, nil
}

// nameOf returns the name of a library whose file states none.
func nameOf(doc *yamldoc.Document) string {
	file := filepath.Base(doc.Name)
	return strings.TrimSuffix(file, filepath.Ext(file))
}

// beside returns a path that is written in a document.
func beside(doc *yamldoc.Document, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(doc.Dir, path)
}

// A taskReader turns the entries of a file into tasks.
type taskReader struct {
	doc   *yamldoc.Document
	file  *taskDocument
	tools *ownTools
	seen  map[TaskKey]bool
}

// at returns an error that points into the i-th task.
func (r *taskReader) at(i int, field, message, hint string) error {
	return r.doc.At(fmt.Sprintf("$.tasks[%d]%s", i, field), message, hint)
}

func (r *taskReader) task(i int) (assay.Task, error) {
	e := &r.file.Tasks[i]
	t := assay.Task{
		ID: assay.TaskID(e.ID), Type: cmp.Or(e.Type, "task"),
		Difficulty: cmp.Or(e.Difficulty, "easy"), Description: strings.TrimSpace(e.Prompt),
		Tools:   e.Tools,
		System:  strings.TrimSpace(cmp.Or(e.System, r.file.System)),
		EndWord: cmp.Or(e.EndWord, r.file.EndWord),
	}
	if err := r.check(i, &t); err != nil {
		return t, err
	}
	t.Inputs = jsonOf(e.Inputs)
	t.State = r.state(i)
	if len(t.State) > toolkit.MaxSize {
		return t, r.at(i, ".state", fmt.Sprintf("the state of task %s has more than %d bytes as JSON",
			t.ID, toolkit.MaxSize), "write it to a JSON file and name that: base: state.json")
	}
	err := r.around(i, e, &t)
	if err != nil {
		return t, err
	}
	if t.Judge, err = r.judge(i, e.Judge); err != nil {
		return t, err
	}
	t.Required = assay.Called(t.Judge.Calls)
	if e.Plan != nil || e.Answer != "" {
		ref, err := r.reference(i, ".plan", variantEntry{Plan: e.Plan, Answer: e.Answer}, r.fits)
		if err != nil {
			return t, err
		}
		t.Reference = &ref
	}
	if t.Phrasings, err = phrasingsOf(r.doc, i, &t, e.Phrasings); err != nil {
		return t, err
	}
	for name, v := range e.Variants {
		if t.Variants == nil {
			t.Variants = make(map[string]assay.Reference)
		}
		if t.Variants[name], err = r.variant(i, name, v); err != nil {
			return t, err
		}
	}
	return t, nil
}

// state returns the state in which a task begins.
func (r *taskReader) state(i int) json.RawMessage {
	return jsonOf(merge(r.file.State, r.file.Tasks[i].State))
}

// place puts the name of the scratch directory into a task. All attempts share the name, so the
// task, its prompt and its judge are the same in each.
func (r *taskReader) place(i int, t *assay.Task) error {
	text, err := json.Marshal(t)
	if err != nil || !bytes.Contains(text, []byte(child.Scratch)) {
		return err
	}
	if s := r.tools.catalog.Server(); s == nil || len(s.Command) == 0 {
		return r.at(i, "", fmt.Sprintf("task %s names %s, but its tools have no such directory",
			t.ID, child.Scratch), "only an MCP server with a command has one for each attempt")
	}
	text = bytes.ReplaceAll(text, []byte(child.Scratch), []byte(mcp.Scratch))
	*t = assay.Task{}
	return json.Unmarshal(text, t)
}

// around reads the calls of a server's tools before and after an attempt.
func (r *taskReader) around(i int, e *taskEntry, t *assay.Task) (err error) {
	server := r.tools.catalog.Server() != nil
	switch {
	case server && t.State != nil:
		return r.at(i, "", fmt.Sprintf("task %s has a state, but the state is the server's", t.ID),
			"write setup: with calls that bring the server into that state")
	case !server && len(e.Setup)+len(e.Observe) > 0:
		return r.at(i, "", fmt.Sprintf("task %s has calls before or after the attempt, but its tools "+
			"are no server's", t.ID), "write state: instead of setup: and observe:")
	}
	path := fmt.Sprintf("$.tasks[%d]", i)
	if t.Setup, err = r.calls(path+".setup", e.Setup, r.fits); err != nil {
		return err
	}
	for name, entry := range e.Observe {
		if t.Observe == nil {
			t.Observe = make(map[string]assay.Expected)
		}
		if t.Observe[name], err = r.call(path+".observe."+name, &entry, r.fits); err != nil {
			return err
		}
	}
	return nil
}

// check checks the fields of a task that stand for themselves.
func (r *taskReader) check(i int, t *assay.Task) error {
	key := TaskKey{t.ID, t.Difficulty}
	switch {
	case t.ID == "":
		return r.at(i, "", "this task has no id", "add id: with a name of its own")
	case r.seen[key]:
		return r.at(i, ".id", fmt.Sprintf("another task is named %s", t.ID), "rename one of them")
	case t.Description == "":
		return r.at(i, "", fmt.Sprintf("task %s has no prompt", t.ID),
			"add prompt: with what a model is asked to do")
	case !slices.Contains(difficulties, t.Difficulty):
		return r.at(i, ".difficulty", fmt.Sprintf("unknown difficulty %q", t.Difficulty),
			assay.NameHint(t.Difficulty, difficulties))
	case !typeText.MatchString(t.Type):
		return r.at(i, ".type", fmt.Sprintf("%q is not a valid type", t.Type),
			"use up to 60 letters, digits, dashes and underscores")
	}
	if t.Tools != nil && len(t.Tools) == 0 {
		return r.at(i, ".tools", fmt.Sprintf("task %s lists no tools", t.ID),
			"remove this line, and it may use all of them, or list some")
	}
	r.seen[key] = true
	for k, name := range t.Tools {
		if err := r.known(fmt.Sprintf("$.tasks[%d].tools[%d]", i, k), name); err != nil {
			return err
		}
	}
	return nil
}

// known returns an error at a path unless a tool exists.
func (r *taskReader) known(path, name string) error {
	if _, ok := r.tools.catalog.Tool(name); ok {
		return nil
	}
	return r.doc.At(path, fmt.Sprintf("unknown tool %q", name),
		assay.NameHint(name, r.tools.catalog.Names()))
}

// reference reads a plan, whose calls are definite. Check looks at each.
func (r *taskReader) reference(
	i int, field string, e variantEntry, check func(path string, e *callEntry) error,
) (assay.Reference, error) {
	path := fmt.Sprintf("$.tasks[%d]%s", i, field)
	ref := assay.Reference{
		Text: strings.TrimSpace(e.Instruction), Answer: strings.TrimSpace(e.Answer),
	}
	for k := range e.Plan {
		at := fmt.Sprintf("%s[%d]", path, k)
		if len(e.Plan[k].AnyOf) > 0 {
			return ref, r.doc.At(at, "a plan has definite calls, without any_of", "choose one of them")
		}
		call, err := r.call(at, &e.Plan[k], check)
		if err != nil {
			return ref, err
		}
		ref.Calls = append(ref.Calls, call)
	}
	return ref, nil
}

func (r *taskReader) variant(i int, name string, e variantEntry) (assay.Reference, error) {
	field := ".variants." + name
	switch {
	case slices.Contains(assay.Variants, name) || strings.HasPrefix(name, "flawed_"):
		return assay.Reference{}, r.at(i, field, name+" is the name of a built-in variant",
			"give your own variant another name")
	case !typeText.MatchString(name):
		return assay.Reference{}, r.at(i, field, fmt.Sprintf("%q is not a valid name", name),
			"use up to 60 letters, digits, dashes and underscores")
	case e.Instruction == "" && len(e.Plan) == 0:
		return assay.Reference{}, r.at(i, field, "this variant shows nothing",
			"add instruction: or plan:")
	}
	return r.reference(i, field+".plan", e, anyArguments)
}

// phrasingsOf reads the other texts of the i-th task of a file.
func phrasingsOf(
	doc *yamldoc.Document, i int, t *assay.Task, texts map[string]string,
) (map[string]string, error) {
	var all map[string]string
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		text := strings.TrimSpace(texts[name])
		message, hint := "", ""
		switch {
		case name == assay.Plain:
			message, hint = "the plain words of a task are its prompt", "remove this line"
		case !typeText.MatchString(name):
			message, hint = fmt.Sprintf("%q is not a valid name", name), "use up to 60 letters, digits, dashes and underscores"
		case text == "":
			message, hint = fmt.Sprintf("the phrasing %s of task %s is empty", name, t.ID), "write the prompt in other words"
		case text == t.Description:
			message = fmt.Sprintf("the phrasing %s of task %s is its prompt", name, t.ID)
			hint = "write it in other words"
		}
		if message != "" {
			return nil, doc.At(fmt.Sprintf("$.tasks[%d].phrasings.%s", i, name), message, hint)
		}
		if all == nil {
			all = make(map[string]string)
		}
		all[name] = text
	}
	return all, nil
}

// importOwn writes a YAML file of tasks, with its tools and their script, to a library file. It
// keeps all tasks, because a mistake in one of them is an error.
func importOwn(ctx context.Context, opts ImportOptions) (Report, error) {
	if opts.Tools != "" {
		return Report{}, errors.New("a YAML file of tasks names its tools itself\n" +
			"hint: leave out --tools")
	}
	o, err := readTasks(ctx, opts.Tasks)
	if err != nil {
		return Report{}, err
	}
	r := Report{Counts: []Count{}, Findings: []Finding{}, Read: len(o.tasks), Out: opts.Out}
	for _, t := range o.tasks {
		r.count(t)
	}
	sortCounts(r.Counts)
	r.Library = Meta{Name: opts.Name, Source: o.source, Created: opts.Created}
	err = create(ctx, opts.Out, &r.Library, o.catalog, withoutErrors(slices.Values(o.tasks)))
	if err != nil {
		return Report{}, fmt.Errorf("write library %s: %w", opts.Out, err)
	}
	return r, nil
}
