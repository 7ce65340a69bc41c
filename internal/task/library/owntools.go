package library

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/toolkit"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// ValidName reports whether a name of a type, variant or phrasing is valid.
func ValidName(name string) bool { return typeText.MatchString(name) }

var typeText = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,59}$`)

// A toolDocument is a YAML file of tools.
type toolDocument struct {
	File  string           `yaml:"file"`
	MCP   *assay.MCPServer `yaml:"mcp"`
	Tools []toolEntry      `yaml:"tools"`
}

// A toolEntry is one tool of a YAML file.
type toolEntry struct {
	Name        string       `yaml:"name"`
	Description string       `yaml:"description"`
	Parameters  any          `yaml:"parameters"`
	Effect      string       `yaml:"effect"`
	Severity    assay.Harm   `yaml:"severity"`
	Errors      []errorEntry `yaml:"errors"`
	Reliability *float64     `yaml:"reliability"`
	// Faults are the shares of the kinds of the tool's faults.
	Faults assay.FaultMix `yaml:"faults"`
	// A tool may be written as OpenAI has it: in Chat Completions within function, in Responses
	// beside a type. Strict has no effect.
	Type     string         `yaml:"type"`
	Function *functionEntry `yaml:"function"`
	Strict   bool           `yaml:"strict"`
}

// A functionEntry is a tool as OpenAI's Chat Completions have it.
type functionEntry struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Parameters  any    `yaml:"parameters"`
	Strict      bool   `yaml:"strict"`
}

// An errorEntry is an error with which a tool fails by chance.
type errorEntry struct {
	Code        string `yaml:"code"`
	Description string `yaml:"description"`
}

// ownTools are the tools of a YAML file with their script and server.
type ownTools struct {
	catalog *assay.Catalog
	kit     *toolkit.Kit
}

func readOwnTools(ctx context.Context, path string) (*ownTools, error) {
	doc, err := yamldoc.Read(path, tasksHelp)
	if err != nil {
		return nil, err
	}
	var file toolDocument
	if err := doc.Decode(&file); err != nil {
		return nil, err
	}
	if file.File == "" && file.MCP == nil {
		return nil, doc.At("$", "the file names neither a script nor a server",
			"write file: tools.star, or mcp: with a command")
	}
	var script assay.Script
	var program *toolkit.Program
	if file.File != "" {
		if script, err = readScript(doc, file.File); err != nil {
			return nil, err
		}
		if program, err = toolkit.Compile(script); err != nil {
			return nil, brokenScript(beside(doc, file.File), script.Source, err)
		}
	}
	read := func(i int) (assay.Tool, error) { return ownTool(doc, i, &file.Tools[i], program) }
	if file.MCP != nil {
		served, err := describeServer(ctx, doc, &file)
		if err != nil {
			return nil, err
		}
		read = func(i int) (assay.Tool, error) { return servedTool(doc, i, &file.Tools[i], served) }
	}
	var tools []assay.Tool
	for i := range file.Tools {
		t, err := read(i)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(tools, func(o assay.Tool) bool { return o.Name == t.Name }) {
			return nil, doc.At(fmt.Sprintf("$.tools[%d].name", i),
				fmt.Sprintf("another tool is named %s", t.Name), "rename one of them")
		}
		tools = append(tools, t)
	}
	if len(tools) == 0 {
		return nil, doc.At("$", "the file has no tools", "add a list of them: tools:")
	}
	o := &ownTools{catalog: assay.NewCatalog(tools).With(script, file.MCP)}
	o.kit, err = toolkit.Of(o.catalog)
	return o, err
}

// brokenScript returns the error of a script that cannot be used, with its place in the file.
func brokenScript(path, source string, err error) error {
	var e *toolkit.ScriptError
	if !errors.As(err, &e) {
		return err
	}
	out := &yamldoc.Error{File: path}
	out.Line, out.Column, out.Message = e.Place()
	lines := strings.Split(source, "\n")
	if out.Line >= 1 && out.Line <= len(lines) {
		out.Excerpt = strings.TrimSuffix(lines[out.Line-1], "\r")
	}
	return out
}

// maxScript is the size limit of scripts, which are written by hand.
const maxScript = 1 << 20

func readScript(doc *yamldoc.Document, name string) (assay.Script, error) {
	path := beside(doc, name)
	info, err := os.Stat(path)
	if err == nil && (!info.Mode().IsRegular() || info.Size() > maxScript) {
		err = fmt.Errorf("not a regular file of at most %d bytes", maxScript)
	}
	var source []byte
	if err == nil {
		source, err = os.ReadFile(path)
	}
	switch {
	case errors.Is(err, os.ErrNotExist):
		return assay.Script{}, doc.At("$.file", "there is no file "+path, "check the path")
	case err != nil:
		return assay.Script{}, doc.At("$.file", err.Error(), "")
	}
	return assay.Script{Name: filepath.Base(name), Source: string(source)}, nil
}

// maxBase is the size limit of the file that states begin with.
const maxBase = 16 << 20

// withBase returns a catalog whose states begin with a JSON file, if the document names one.
func withBase(doc *yamldoc.Document, name string, catalog *assay.Catalog) (*assay.Catalog, error) {
	if name == "" {
		return catalog, nil
	}
	if catalog.Server() != nil {
		return nil, doc.At("$.base", "the tools have a base, but their state is the server's",
			"write setup: with calls that bring the server into that state")
	}
	file, err := readJSON(beside(doc, name), maxBase, true)
	if err != nil {
		return nil, doc.At("$.base", err.Error(), "")
	}
	var base bytes.Buffer
	if err := json.Compact(&base, file.text); err != nil {
		return nil, err // readJSON has checked the syntax
	}
	script := catalog.Script()
	script.Base = base.Bytes()
	catalog = catalog.With(script, nil)
	kit, err := toolkit.Of(catalog)
	if err == nil {
		err = kit.Begin(nil).Err()
	}
	if err != nil {
		return nil, doc.At("$.base", fmt.Sprintf("%s: %v", name, err), "")
	}
	return catalog, nil
}

func ownTool(
	doc *yamldoc.Document, i int, e *toolEntry, program *toolkit.Program,
) (assay.Tool, error) {
	at := func(field, message, hint string) error {
		return doc.At(fmt.Sprintf("$.tools[%d]%s", i, field), message, hint)
	}
	switch f := e.Function; {
	case e.Type != "" && e.Type != "function":
		return assay.Tool{}, at(".type", fmt.Sprintf("unknown type of tool %q", e.Type),
			"remove it, or write function")
	case f != nil && (e.Name != "" || e.Description != "" || e.Parameters != nil):
		return assay.Tool{}, at(".function", "this tool has a name, a description or parameters twice",
			"remove those beside function")
	case f != nil:
		e.Name, e.Description, e.Parameters = f.Name, f.Description, f.Parameters
	}
	t := assay.Tool{
		Name: e.Name, Description: e.Description, Effect: e.Effect,
		Parameters: []assay.Parameter{}, Returns: []assay.Return{}, Errors: []assay.ToolError{},
		Dependencies: []string{},
	}
	switch {
	case t.Name == "":
		return t, at("", "this tool has no name", "add name: with that of its function")
	case !program.Has(t.Name):
		return t, at(".name", fmt.Sprintf("the script has no function %s", t.Name),
			assay.NameHint(t.Name, program.Functions()))
	case len(program.Parameters(t.Name)) == 0:
		return t, at(".name", fmt.Sprintf("the function %s has no parameter for the state", t.Name),
			fmt.Sprintf("write def %s(state): …", t.Name))
	case t.Description == "":
		return t, at("", fmt.Sprintf("tool %s has no description", t.Name),
			"add description: models choose tools by it")
	}
	if err := chances(at, e, &t); err != nil {
		return t, err
	}
	err := harms(at, e, &t)
	if err != nil {
		return t, err
	}
	if t.Schema, err = schemaOf(e.Parameters, program.Parameters(t.Name)[1:]); err != nil {
		return t, at(".parameters", err.Error(), "")
	}
	if _, err := toolkit.CompileSchema(t.Schema); err != nil {
		return t, at(".parameters", err.Error(), "")
	}
	if t.Parameters, err = parametersOf(t.Schema); err != nil {
		return t, at(".parameters", err.Error(), "")
	}
	return t, nil
}

// chances reads how a tool fails by chance.
func chances(at func(field, message, hint string) error, e *toolEntry, t *assay.Tool) error {
	if word := strings.ToLower(t.Effect); slices.Contains([]string{"no", "none", "false", "off"}, word) {
		return at(".effect", fmt.Sprintf("%q is not an effect", t.Effect),
			"remove it if the tool changes nothing, or say what it changes")
	}
	if e.Reliability != nil && *e.Reliability == 0 {
		return at(".reliability", "a tool of reliability 0 never works", "write a number above 0, or remove the tool")
	}
	if t.Reliability = *cmp.Or(e.Reliability, new(float64)); t.Reliability < 0 || t.Reliability > 1 {
		return at(".reliability", fmt.Sprintf("reliability %v is not between 0 and 1", t.Reliability),
			"it is multiplied by that of the experiment")
	}
	err := e.Faults.Check()
	for kind, share := range e.Faults {
		if kind.Rule().Attacks && share > 0 {
			err = fmt.Errorf("a tool cannot choose the kind %s", kind)
		}
		if kind.Rule().Rereads && share > 0 && t.Effect != "" {
			err = fmt.Errorf("a tool with an effect cannot have the kind %s: nobody can call it again to learn the truth", kind)
		}
	}
	if err != nil {
		return at(".faults", err.Error(), "for example faults: {after: 0.25, before: 0.75}")
	}
	if t.Faults = e.Faults.String(); t.Faults == "" && len(e.Faults) > 0 {
		t.Faults = "before=1" // whatever the mix of the trial is
	}
	for k, f := range e.Errors {
		if f.Code == "" {
			return at(fmt.Sprintf(".errors[%d]", k), "this error has no code",
				"for example {code: TIMEOUT, description: The service did not answer}")
		}
		t.Errors = append(t.Errors, assay.ToolError(f))
	}
	return nil
}

// harms reads how bad the tool's effect is where nobody asked for it.
func harms(at func(field, message, hint string) error, e *toolEntry, t *assay.Tool) error {
	if t.Severity = e.Severity; t.Severity == "" {
		return nil
	}
	if message, hint := unknownHarm(e.Severity); message != "" {
		return at(".severity", message, hint)
	}
	if t.Effect == "" {
		return at(".severity", fmt.Sprintf("tool %s has a severity, but no effect", t.Name),
			"add effect: with what a call changes; a call that only reads can have a severity in forbidden:")
	}
	return nil
}

// unknownHarm returns what is wrong with a severity, or "".
func unknownHarm(h assay.Harm) (message, hint string) {
	if slices.Contains(assay.Harms, h) {
		return "", ""
	}
	var names []string
	for _, known := range assay.Harms {
		names = append(names, string(known))
	}
	return fmt.Sprintf("unknown severity %q", h), assay.NameHint(string(h), names)
}

// schemaOf returns the JSON schema of a tool's arguments. Parameters are a schema of an object, or
// the schemas of its members by name, or nil: then the function's own parameters count.
func schemaOf(parameters any, function []toolkit.Parameter) (json.RawMessage, error) {
	object, ok := parameters.(map[string]any)
	if parameters != nil && !ok {
		return nil, errors.New("parameters are a mapping: a JSON schema, or one for each name")
	}
	if object["type"] == "object" {
		return jsonOf(object), nil
	}
	schema := map[string]any{"type": "object", "additionalProperties": false}
	properties, required := make(map[string]any), []string{}
	if parameters == nil {
		for _, p := range function {
			properties[p.Name] = map[string]any{}
		}
	}
	for name, property := range object {
		properties[name] = property
		if !slices.ContainsFunc(function, func(p toolkit.Parameter) bool { return p.Name == name }) {
			return nil, fmt.Errorf("the function has no parameter %s", name)
		}
	}
	for _, p := range function {
		if _, listed := properties[p.Name]; p.Required {
			if !listed {
				return nil, fmt.Errorf("the function needs %s, which is not listed", p.Name)
			}
			required = append(required, p.Name)
		}
	}
	schema["properties"], schema["required"] = properties, required
	return jsonOf(schema), nil
}

// parametersOf returns the members of a schema, for people and for searches.
func parametersOf(schema json.RawMessage) ([]assay.Parameter, error) {
	var s struct {
		Properties map[string]struct {
			Type        any    `json:"type"`
			Description string `json:"description"`
		} `json:"properties"`
		Required []string `json:"required"`
	}
	if err := json.Unmarshal(schema, &s); err != nil {
		return nil, errors.New("the properties of the schema are not a mapping of schemas")
	}
	parameters := []assay.Parameter{}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		typ, _ := p.Type.(string) // others, such as a list of types, are left to the schema
		parameters = append(parameters, assay.Parameter{
			Name: name, Type: typ, Description: p.Description,
			Required: slices.Contains(s.Required, name),
		})
	}
	return parameters, nil
}

// jsonOf returns the value of a YAML document as JSON, or nil for a nil map.
func jsonOf(v map[string]any) json.RawMessage {
	if v == nil {
		return nil
	}
	text, err := json.Marshal(v)
	if err != nil {
		panic("library: value of a file as JSON: " + err.Error())
	}
	return text
}

// merge returns a mapping with the members of two. Mappings in both are merged, and otherwise the
// second one wins.
func merge(a, b map[string]any) map[string]any {
	if a == nil && b == nil {
		return nil
	}
	all := maps.Clone(a)
	if all == nil {
		all = make(map[string]any)
	}
	for name, v := range b {
		x, both := all[name].(map[string]any)
		y, mapping := v.(map[string]any)
		if both && mapping {
			v = merge(x, y)
		}
		all[name] = v
	}
	return all
}
