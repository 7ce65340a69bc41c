// Package toolkit carries out tools and checks that users write in Starlark, a small dialect of
// Python. A script has no clock, no network, no files and no chance, so the same calls always have
// the same results. Its steps and the sizes of its values are limited.
//
// The package does not know luck, faults or verdicts.
package toolkit

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"

	"github.com/assay-eval/assay"
)

// The limits of one call.
const (
	MaxSteps = 2_000_000 // about a tenth of a second
	MaxSize  = 1 << 20   // bytes of a state, of a result and of any text in between
)

// A Program is a script that has been checked. It is immutable and safe for concurrent use.
type Program struct {
	name    string
	globals starlark.StringDict
	fields  []string
}

// A ToolError is the answer of a tool that refuses a call. A script raises it by fail(code, text).
type ToolError struct{ Code, Text string }

func (e *ToolError) Error() string {
	if e.Text == "" {
		return e.Code
	}
	return e.Code + ": " + e.Text
}

// A ScriptError is a mistake in a script: the reason, and the lines that led to it.
type ScriptError struct{ Message, Trace string }

func (e *ScriptError) Error() string {
	if e.Trace == "" {
		return e.Message
	}
	return e.Message + "\n" + e.Trace
}

// place matches the place that a message or a line of a trace begins with.
var place = regexp.MustCompile(`^\s*[^:]*:(\d+):(\d+): (.*)`)

// Place returns the line and the column of the mistake, both counted from 1, and the reason. The
// line is 0 if the place is unknown.
func (e *ScriptError) Place() (line, column int, reason string) {
	reason = e.Message
	m := place.FindStringSubmatch(e.Message)
	if m != nil {
		reason = m[3]
	} else {
		lines := strings.Split(e.Trace, "\n")
		m = place.FindStringSubmatch(lines[len(lines)-1])
	}
	if m == nil {
		return 0, 0, reason
	}
	line, _ = strconv.Atoi(m[1])
	column, _ = strconv.Atoi(m[2])
	return line, column, reason
}

// Broke words where and why a function broke in one line. what names it, such as "the tool pay".
func Broke(what string, err error) string {
	text := what + " broke"
	message := err.Error()
	if script := (*ScriptError)(nil); errors.As(err, &script) {
		message = script.Message
		if script.Trace != "" {
			lines := strings.Split(script.Trace, "\n")
			at, function, _ := strings.Cut(strings.TrimSpace(lines[len(lines)-1]), ": in ")
			text += " at " + at
			if len(lines) > 1 {
				text += ", in " + function
			}
		}
	}
	return text + ": " + strings.Join(strings.Fields(message), " ")
}

var dialect = &syntax.FileOptions{Set: true}

// Compile checks a script and runs its top level.
func Compile(script assay.Script) (*Program, error) {
	predeclared := builtins()
	file, err := dialect.Parse(script.Name, script.Source, 0)
	if err != nil {
		return nil, scriptError(err)
	}
	if err := guard(file); err != nil {
		return nil, scriptError(err)
	}
	program, err := starlark.FileProgram(file, predeclared.Has)
	if err != nil {
		return nil, scriptError(err)
	}
	globals, err := program.Init(newThread(script.Name), predeclared)
	if err != nil {
		e := traced(err)
		if refusal := (*ToolError)(nil); errors.As(err, &refusal) {
			e.Message = "fail is called when the script is loaded; call it only in functions"
		}
		return nil, e
	}
	globals.Freeze()
	return &Program{name: script.Name, globals: globals, fields: fieldsIn(file)}, nil
}

// fieldsIn returns the names that functions write as keys of dictionaries. Constants outside of
// functions can be data, whose keys are no names of fields.
func fieldsIn(file *syntax.File) (fields []string) {
	for _, statement := range file.Stmts {
		def, ok := statement.(*syntax.DefStmt)
		if !ok {
			continue
		}
		syntax.Walk(def, func(n syntax.Node) bool {
			entry, ok := n.(*syntax.DictEntry)
			if !ok {
				return true
			}
			if key, ok := entry.Key.(*syntax.Literal); ok {
				if name, ok := key.Value.(string); ok {
					fields = append(fields, name)
				}
			}
			return true
		})
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

func newThread(name string) *starlark.Thread {
	thread := &starlark.Thread{
		Name:  name,
		Print: func(*starlark.Thread, string) {},
		Load: func(*starlark.Thread, string) (starlark.StringDict, error) {
			return nil, errors.New("a script cannot load other files; write everything into one")
		},
	}
	thread.SetMaxExecutionSteps(MaxSteps)
	return thread
}

// scriptError words an error of the interpreter. Its trace has the user's own lines only.
func scriptError(err error) error {
	var refusal *ToolError
	if errors.As(err, &refusal) {
		return refusal
	}
	return traced(err)
}

// traced words an error with the user's own lines.
func traced(err error) *ScriptError {
	var eval *starlark.EvalError
	if !errors.As(err, &eval) {
		return &ScriptError{Message: err.Error()}
	}
	var lines []string
	for _, frame := range eval.CallStack {
		if frame.Pos.Filename() != "<builtin>" {
			lines = append(lines, fmt.Sprintf("  %s: in %s", frame.Pos, frame.Name))
		}
	}
	message := eval.Msg
	if strings.Contains(message, "too many steps") {
		message = fmt.Sprintf("the call takes more than %d steps, or too much memory", MaxSteps)
	}
	return &ScriptError{Message: message, Trace: strings.Join(lines, "\n")}
}

// Has reports whether the script defines a function.
func (p *Program) Has(name string) bool {
	if p == nil {
		return false
	}
	_, ok := p.globals[name].(*starlark.Function)
	return ok
}

// Functions returns the names of the script's functions, sorted.
func (p *Program) Functions() []string {
	var names []string
	for _, name := range p.globals.Keys() {
		if p.Has(name) {
			names = append(names, name)
		}
	}
	return names
}

// canCheck reports whether a function can be called with a state, calls and an answer.
func (p *Program) canCheck(function string) bool {
	f := p.globals[function].(*starlark.Function)
	named := f.NumParams()
	if f.HasVarargs() {
		named--
	}
	if f.HasKwargs() {
		named--
	}
	positional := named - f.NumKwonlyParams()
	for i := range named {
		if needed := f.ParamDefault(i) == nil; needed && i >= min(positional, checkArguments) {
			return false
		}
	}
	return positional >= checkArguments || f.HasVarargs()
}

// checkArguments is the number of arguments of a check.
const checkArguments = 3

// A Parameter is one of a function's. The first one of a tool is the state.
type Parameter struct {
	Name     string
	Required bool
}

// Parameters returns the parameters of a function.
func (p *Program) Parameters(function string) (parameters []Parameter) {
	f, ok := p.globals[function].(*starlark.Function)
	if !ok {
		return nil
	}
	for i := range f.NumParams() {
		name, _ := f.Param(i)
		parameters = append(parameters, Parameter{name, f.ParamDefault(i) == nil})
	}
	return parameters
}

// takes reports whether a function has a parameter of a name beside the state, or takes any.
func (p *Program) takes(function, name string) bool {
	f := p.globals[function].(*starlark.Function)
	named := f.NumParams()
	if f.HasVarargs() {
		named--
	}
	if f.HasKwargs() {
		named--
	}
	for i := range named {
		if parameter, _ := f.Param(i); parameter == name {
			return i > 0
		}
	}
	return f.HasKwargs()
}

func (p *Program) call(
	function string, args starlark.Tuple, kwargs []starlark.Tuple,
) (starlark.Value, error) {
	switch {
	case p == nil:
		return nil, &ScriptError{Message: "no script carries out " + function}
	case !p.Has(function):
		return nil, &ScriptError{Message: fmt.Sprintf("%s has no function %s", p.name, function)}
	}
	result, err := starlark.Call(newThread(p.name), p.globals[function], args, kwargs)
	if err != nil {
		return nil, scriptError(err)
	}
	return result, nil
}

// misfit words an error about the result of a function.
func (p *Program) misfit(function string, err error) error {
	f := p.globals[function].(*starlark.Function)
	return &ScriptError{err.Error(), fmt.Sprintf("  %s: in %s", f.Position(), function)}
}
