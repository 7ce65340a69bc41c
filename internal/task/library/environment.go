package library

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/sync/errgroup"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/child"
	"github.com/assay-eval/assay/internal/task/environment"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// An environmentDocument is a YAML file that names an environment of OpenEnv and its tasks. A task
// is an environmentEntry, or a word of the command that prints the tasks.
type environmentDocument[T any] struct {
	Name        string            `yaml:"name"`
	Environment *environmentPlace `yaml:"environment"`
	System      string            `yaml:"system"`
	Answer      map[string]any    `yaml:"answer"`
	Success     string            `yaml:"success"`
	Security    string            `yaml:"security"`
	Effects     []string          `yaml:"effects"`
	Tools       []toolEntry       `yaml:"tools"`
	Tasks       []T               `yaml:"tasks"`
}

// An environmentPlace is how an environment is reached.
type environmentPlace struct {
	Command  []string          `yaml:"command"`
	URL      string            `yaml:"url"`
	Env      []string          `yaml:"env"`
	Set      map[string]string `yaml:"set"`
	Key      string            `yaml:"key"`
	Timeout  time.Duration     `yaml:"timeout"`
	Sessions int               `yaml:"sessions"`
}

// An environmentEntry is one task of an environment.
type environmentEntry struct {
	ID         string             `yaml:"id"`
	Type       string             `yaml:"type"`
	Difficulty string             `yaml:"difficulty"`
	Prompt     string             `yaml:"prompt"`
	System     string             `yaml:"system"`
	Reset      map[string]any     `yaml:"reset"`
	Plan       []environmentCall  `yaml:"plan"`
	Answer     string             `yaml:"answer"`
	Later      []environment.Tool `yaml:"later_tools"`
	Phrasings  map[string]string  `yaml:"phrasings"`
}

// An environmentCall is a call of a plan. Turn is the message of the user that it belongs to, from
// 1. If it is missing, the call belongs to the same message as the one before.
type environmentCall struct {
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
	Turn      int            `yaml:"turn"`
}

// The success of an environment unless its file states another one, and the effect of a tool that
// is listed as having one.
const (
	usualSuccess = "reward >= 1"
	usualEffect  = "changes something"
)

// IsEnvironment reports whether a YAML file names an environment.
func IsEnvironment(path string) bool {
	doc, err := yamldoc.Read(path, tasksHelp)
	return err == nil && doc.Node("$.environment") != nil
}

// readEnvironment reads a file with an environment, which it starts to ask for the tools and the
// first message of each task.
func readEnvironment(ctx context.Context, doc *yamldoc.Document) (*ownLibrary, error) {
	r := &environmentReader{ctx: ctx, doc: doc}
	if n := doc.Node("$.tasks[0]"); n != nil && n.Kind == yaml.ScalarNode {
		var file environmentDocument[string]
		if err := doc.Decode(&file); err != nil {
			return nil, err
		}
		r.file = environmentDocument[environmentEntry]{
			file.Name, file.Environment, file.System, file.Answer, file.Success, file.Security, file.Effects,
			file.Tools, nil,
		}
		if err := r.print(file.Tasks); err != nil {
			return nil, err
		}
	} else if err := doc.Decode(&r.file); err != nil {
		return nil, err
	}
	if r.file.Tasks == nil {
		return nil, doc.At("$", "the file has no tasks",
			"add a list of them, or a command that prints it: tasks: [python, env.py, tasks]")
	}
	return r.read()
}

// An environmentReader turns the entries of a file, or of the output of its command, into tasks.
type environmentReader struct {
	ctx     context.Context
	doc     *yamldoc.Document
	printed []*yamldoc.Document // each has a task, if a command printed them
	exact   []exactEntry        // the same tasks
	file    environmentDocument[environmentEntry]
	config  *assay.MCPServer
	tasks   []assay.Task
	offers  [][]assay.Tool // by task
}

// An exactEntry has the values of a task that a command printed, with numbers as they are written:
// in Python, 2.0 is not 2.
type exactEntry struct {
	Reset json.RawMessage
	Plan  []struct{ Arguments json.RawMessage }
}

// written returns a value as a command has printed it, or else as the file has it.
func written(exact json.RawMessage, value map[string]any) json.RawMessage {
	var b bytes.Buffer
	if value == nil || json.Compact(&b, exact) != nil {
		return jsonOf(value)
	}
	return b.Bytes()
}

// longestPrint is how long a command may take to print the tasks.
const longestPrint = 5 * time.Minute

// print runs the command that prints the tasks as a list in JSON.
func (r *environmentReader) print(command []string) error {
	dir, err := filepath.Abs(r.doc.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(r.ctx, longestPrint,
		fmt.Errorf("it did not end within %s", longestPrint))
	defer cancel()
	for i := range command {
		command[i] = strings.ReplaceAll(command[i], "{dir}", dir)
	}
	output, err := child.Output(ctx, child.Command{Args: command, Dir: dir, Plain: variables(dir)})
	if err != nil {
		return r.doc.At("$.tasks", fmt.Sprintf("the command that prints the tasks failed: %v", err),
			"try it in a shell; it starts in the folder of this file")
	}
	var list []json.RawMessage
	if err := json.Unmarshal(output, &list); err != nil {
		return r.doc.At("$.tasks", "the command prints no list in JSON: "+err.Error(), "")
	}
	for i, text := range list {
		name := fmt.Sprintf("task %d that %s prints", i+1, strings.Join(command, " "))
		task, err := yamldoc.Parse(name, text, yamldoc.Help{})
		if err != nil {
			return err
		}
		var e environmentEntry
		if err := task.Decode(&e); err != nil {
			return err
		}
		var exact exactEntry
		if err := json.Unmarshal(text, &exact); err != nil {
			return err // the task is valid, so that cannot be
		}
		r.exact = append(r.exact, exact)
		r.printed, r.file.Tasks = append(r.printed, task), append(r.file.Tasks, e)
	}
	return nil
}

// variables returns Assay's own environment for a program that starts in a folder. The program has
// its own directory for temporary files.
func variables(dir string) []string {
	return append(slices.DeleteFunc(os.Environ(), func(v string) bool {
		return strings.HasPrefix(v, "TMPDIR=") || strings.HasPrefix(v, "PWD=")
	}), "PWD="+dir)
}

func (r *environmentReader) read() (*ownLibrary, error) {
	if err := r.configure(); err != nil {
		return nil, err
	}
	seen := make(map[string]bool)
	for i := range r.file.Tasks {
		t, err := r.task(i)
		if err != nil {
			return nil, err
		}
		if seen[string(t.ID)] {
			return nil, r.at(i, ".id", fmt.Sprintf("another task is named %s", t.ID), "rename one of them")
		}
		seen[string(t.ID)] = true
		r.tasks = append(r.tasks, t)
	}
	if err := r.ask(); err != nil {
		return nil, err
	}
	catalog, err := r.catalog()
	if err != nil {
		return nil, err
	}
	for i := range r.tasks {
		if err := r.known(i, catalog); err != nil {
			return nil, err
		}
	}
	return &ownLibrary{
		name:   cmp.Or(r.file.Name, nameOf(r.doc)),
		source: "tasks of the environment in " + filepath.Base(r.doc.Name), catalog: catalog, tasks: r.tasks,
	}, nil
}

// configure checks everything that concerns all tasks.
func (r *environmentReader) configure() error {
	p := r.file.Environment
	if p == nil {
		return r.doc.At("$.environment", "the environment is empty", "give it a command or a url")
	}
	dir, err := filepath.Abs(r.doc.Dir)
	if err != nil {
		return err
	}
	r.config = &assay.MCPServer{
		Command: p.Command, URL: p.URL, Env: p.Env, Set: p.Set, Key: p.Key, Timeout: p.Timeout,
		Concurrency: p.Sessions, Dir: dir, OpenEnv: true, Answer: jsonOf(r.file.Answer),
	}
	if err := environment.Check(r.config); err != nil {
		return r.doc.At("$.environment", err.Error(), "")
	}
	r.file.Success = cmp.Or(r.file.Success, usualSuccess)
	if _, err := environment.ParseCondition(r.file.Success); err != nil {
		return r.doc.At("$.success", err.Error(), "for example success: "+usualSuccess)
	}
	if _, err := environment.ParseCondition(r.file.Security); err != nil && r.file.Security != "" {
		return r.doc.At("$.security", err.Error(), "for example security: observation.security == true")
	}
	return nil
}

// at returns an error that points into the i-th task.
func (r *environmentReader) at(i int, field, message, hint string) error {
	if r.printed != nil {
		return r.printed[i].At("$"+field, message, hint)
	}
	return r.doc.At(fmt.Sprintf("$.tasks[%d]%s", i, field), message, hint)
}

func (r *environmentReader) task(i int) (assay.Task, error) {
	e := &r.file.Tasks[i]
	var exact exactEntry
	if r.exact != nil {
		exact = r.exact[i]
	}
	t := assay.Task{
		ID: assay.TaskID(e.ID), Type: cmp.Or(e.Type, "task"), Difficulty: cmp.Or(e.Difficulty, "easy"),
		Description: strings.TrimSpace(e.Prompt), System: cmp.Or(e.System, r.file.System),
		Reset: written(exact.Reset, e.Reset),
		Judge: &assay.Judge{Success: r.file.Success, Security: r.file.Security},
	}
	switch {
	case t.ID == "":
		return t, r.at(i, "", "this task has no id", "add id: with its name")
	case !slices.Contains(difficulties, t.Difficulty):
		return t, r.at(i, ".difficulty", fmt.Sprintf("unknown difficulty %q", t.Difficulty),
			assay.NameHint(t.Difficulty, difficulties))
	case !typeText.MatchString(t.Type):
		return t, r.at(i, ".type", fmt.Sprintf("%q is not a valid type", t.Type),
			"use up to 60 letters, digits, dashes and underscores")
	}
	var err error
	if t.Phrasings, err = phrasingsOf(r.doc, i, &t, e.Phrasings); err != nil {
		return t, err
	}
	if e.Plan == nil && e.Answer == "" {
		return t, nil
	}
	t.Reference = &assay.Reference{Answer: strings.TrimSpace(e.Answer)}
	turn := 1
	for k, call := range e.Plan {
		if call.Turn != 0 && call.Turn < turn {
			return t, r.at(i, fmt.Sprintf(".plan[%d].turn", k),
				fmt.Sprintf("turn %d comes after turn %d", call.Turn, turn),
				"list the calls in the order in which they are made; the first turn is 1")
		}
		turn = cmp.Or(call.Turn, turn)
		arguments := jsonOf(call.Arguments)
		if exact.Plan != nil {
			arguments = written(exact.Plan[k].Arguments, call.Arguments)
		}
		t.Reference.Calls = append(t.Reference.Calls, assay.Expected{
			Tool: call.Tool, Arguments: arguments, Turn: turn - 1,
		})
	}
	return t, nil
}

// ask begins each task once, and asks for its tools and its first message.
func (r *environmentReader) ask() (err error) {
	server := environment.New(r.config)
	defer func() { err = errors.Join(err, server.Close()) }()
	r.offers = make([][]assay.Tool, len(r.tasks))
	g, ctx := errgroup.WithContext(r.ctx)
	g.SetLimit(cmp.Or(r.config.Concurrency, environment.DefaultSessions))
	for i := range r.tasks {
		g.Go(func() error { return r.begin(ctx, server, i) })
	}
	err = g.Wait()
	if fault := (*assay.Fault)(nil); errors.As(err, &fault) && r.ctx.Err() == nil {
		return r.doc.At("$.environment", fault.Detail, "try the command in a shell; it starts in the "+
			"folder of this file")
	}
	return err
}

func (r *environmentReader) begin(
	ctx context.Context, server *environment.Server, i int,
) (err error) {
	session, err := server.Open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	t := &r.tasks[i]
	o, err := session.Reset(ctx, t.Reset, 0)
	if err != nil {
		return fmt.Errorf("task %s: %w", t.ID, err)
	}
	system, user := o.Messages()
	t.Description = cmp.Or(t.Description, strings.TrimSpace(user))
	t.System = cmp.Or(t.System, strings.TrimSpace(system))
	switch first := strings.TrimSpace(user); {
	case t.Description == "":
		return r.at(i, "", fmt.Sprintf("task %s has no prompt, and the environment begins without a "+
			"message of the user", t.ID), "add prompt: with what a model is asked to do")
	case first != "" && first != t.Description:
		return r.at(i, ".prompt", "the environment begins with another message", "remove this field")
	case first != "" && t.Phrasings != nil:
		return r.at(i, ".phrasings", fmt.Sprintf("the environment itself begins task %s with a message of the "+
			"user, whose words cannot be changed", t.ID), "remove this field")
	}
	r.offers[i], err = session.Tools(ctx)
	for _, later := range r.file.Tasks[i].Later {
		r.offers[i] = append(r.offers[i], later.Tool())
	}
	return err
}

// catalog returns the tools of all tasks, sorted by name, and lists the tools of each task.
func (r *environmentReader) catalog() (*assay.Catalog, error) {
	owner := make(map[string]int)
	tools := make(map[string]assay.Tool)
	for i, offered := range r.offers {
		for _, t := range offered {
			old, known := tools[t.Name]
			if known && (string(old.Schema) != string(t.Schema) || old.Description != t.Description) {
				return nil, r.at(i, "", fmt.Sprintf("the tool %s of task %s is different from that of task "+
					"%s", t.Name, r.tasks[i].ID, r.tasks[owner[t.Name]].ID),
					"put tasks with different tools of one name into separate files")
			}
			if !known {
				if err := valid(t); err != nil {
					return nil, r.at(i, "", fmt.Sprintf("task %s has a tool that is not valid: %v",
						r.tasks[i].ID, err), "")
				}
				tools[t.Name], owner[t.Name] = t, i
			}
			if !slices.Contains(r.tasks[i].Tools, t.Name) {
				r.tasks[i].Tools = append(r.tasks[i].Tools, t.Name)
			}
		}
		slices.Sort(r.tasks[i].Tools)
	}
	if len(tools) == 0 {
		return nil, r.doc.At("$.environment", "the environment has no tools", "")
	}
	return r.described(tools)
}

func valid(t assay.Tool) error {
	if t.Name == "" {
		return errors.New("it has no name")
	}
	_, err := toolkit.CompileSchema(t.Schema)
	return err
}

// described adds to the tools what the file says about them.
func (r *environmentReader) described(tools map[string]assay.Tool) (*assay.Catalog, error) {
	var all []assay.Tool
	for _, t := range tools {
		all = append(all, t)
	}
	slices.SortFunc(all, func(a, b assay.Tool) int { return cmp.Compare(a.Name, b.Name) })
	served := assay.NewCatalog(all)
	index := func(name string) int {
		return slices.IndexFunc(all, func(t assay.Tool) bool { return t.Name == name })
	}
	for i, name := range r.file.Effects {
		at := index(name)
		if at < 0 {
			return nil, r.doc.At(fmt.Sprintf("$.effects[%d]", i),
				fmt.Sprintf("the environment has no tool %q", name),
				assay.NameHint(name, served.Names()))
		}
		all[at].Effect = usualEffect
	}
	for i := range r.file.Tools {
		e := &r.file.Tools[i]
		if at := index(e.Name); at >= 0 && e.Effect == "" {
			e.Effect = all[at].Effect
		}
		if e.Severity != "" {
			return nil, r.doc.At(fmt.Sprintf("$.tools[%d].severity", i),
				"the environment judges its episodes, so that nothing depends on a severity", "remove this line")
		}
		t, err := servedTool(r.doc, i, e, served)
		if err != nil {
			return nil, err
		}
		all[index(e.Name)] = t
	}
	var err error
	for i := range all {
		if all[i].Parameters, err = parametersOf(all[i].Schema); err != nil {
			return nil, r.doc.At("$.environment", fmt.Sprintf("tool %s: %v", all[i].Name, err), "")
		}
	}
	return assay.NewCatalog(all).With(assay.Script{}, r.config), nil
}

// known checks that the plan of a task calls its tools.
func (r *environmentReader) known(i int, catalog *assay.Catalog) error {
	t := &r.tasks[i]
	if t.Reference == nil {
		return nil
	}
	for k, call := range t.Reference.Calls {
		if !slices.Contains(t.Tools, call.Tool) {
			return r.at(i, fmt.Sprintf(".plan[%d].tool", k),
				fmt.Sprintf("task %s has no tool %q", t.ID, call.Tool), assay.NameHint(call.Tool, t.Tools))
		}
	}
	return nil
}
