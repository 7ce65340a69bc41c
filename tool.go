package assay

import (
	"encoding/json"
	"io"
	"slices"
	"sync"
	"time"
)

// A Tool is one simulated API of a task library.
type Tool struct {
	Name        string      `json:"name"`
	Category    string      `json:"category"`
	Operation   string      `json:"operation"`
	Description string      `json:"description"`
	Parameters  []Parameter `json:"parameters"`
	Returns     []Return    `json:"returns"`
	// Errors are the only errors with which a call of this tool can fail.
	Errors []ToolError `json:"errors"`
	// Dependencies are the names of tools that should have succeeded earlier.
	Dependencies []string `json:"dependencies"`
	// Effect describes the change by a successful call, such as "sends a message". It is empty if
	// the tool only reads.
	Effect string `json:"effect,omitempty"`
	// Severity is the harm of that change where a task did not ask for it. It is empty if nobody stated
	// it; a world may have a rule for such tools.
	Severity Harm `json:"severity,omitempty"`
	// Schema is the JSON schema of the arguments, if somebody wrote one. It replaces Parameters.
	Schema json.RawMessage `json:"schema,omitempty"`
	// Reliability is multiplied by the trial's. 0 means 1.
	Reliability float64 `json:"reliability,omitempty"`
	// Faults is the tool's own mix of faults, as spelled by [FaultMix.String]. It replaces the
	// trial's.
	Faults string `json:"faults,omitempty"`
	// StandsFor is the tool whose work this one does as well, from the same data. No tool depends on
	// either of them.
	StandsFor string `json:"stands_for,omitempty"`
}

// A Parameter is one argument of a [Tool]. Type is a JSON schema type.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	// Default is the value of an optional parameter that is left out. It may be nil.
	Default any `json:"default,omitempty"`
}

// A Return is one field of a tool's result. Type is a JSON schema type.
type Return struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Description string `json:"description"`
}

// A ToolError is one way in which a tool can fail.
type ToolError struct {
	Code        string `json:"code"`
	Description string `json:"description"`
}

// A Catalog holds the tools of a library in a fixed order and finds them by name. It is
// immutable and safe for concurrent use.
type Catalog struct {
	tools  []Tool
	byName map[string]int
	script Script
	server *MCPServer

	once    sync.Once
	derived any

	mu      sync.Mutex
	runtime io.Closer // serves all attempts; nil until the first needs it
}

// A Script is the source of tools and checks that somebody wrote. Name is its file's.
type Script struct {
	Name, Source string
	// Base is the JSON object that the states of all tasks begin with. It may have megabytes,
	// because all attempts share it. Tasks have what their states add.
	Base json.RawMessage `json:",omitempty"`
}

// An MCPServer names a server of tools: a command that speaks MCP over its standard streams, or the
// URL of a server that speaks Streamable HTTP. Each attempt gets a separate process or session.
type MCPServer struct {
	// Command is the program and its arguments. In them and in Set, {scratch} stands for the
	// separate directory of each attempt, and {dir} for Dir.
	Command []string `json:"command,omitempty" yaml:"command"`
	URL     string   `json:"url,omitempty" yaml:"url"`
	// Env names the environment variables that the command gets beside PATH, HOME and the like.
	Env []string `json:"env,omitempty" yaml:"env"`
	// Set gives the command more variables. A server that keeps its state in a file that it chooses
	// shares it between attempts, unless a variable moves the file to {scratch}.
	Set map[string]string `json:"set,omitempty" yaml:"set"`
	// Sandbox is "bubblewrap" if the command runs in a room, and otherwise "none" or "". There it sees the
	// system, what its command needs and Read, whose paths may be relative to Dir; its separate directory is
	// nowhere else; and it has no network unless Network is "open".
	Sandbox string   `json:"sandbox,omitempty" yaml:"sandbox"`
	Read    []string `json:"read,omitempty" yaml:"read"`
	Network string   `json:"network,omitempty" yaml:"network"`
	// Key names the environment variable with the key of a URL, which is sent as a bearer token.
	Key string `json:"key,omitempty" yaml:"key"`
	// Timeout limits the start and each call. 0 stands for the default.
	Timeout time.Duration `json:"timeout,omitempty" yaml:"timeout"`
	// Concurrency is the largest number of attempts at a time. 0 stands for the default.
	Concurrency int `json:"concurrency,omitempty" yaml:"concurrency"`
	// Dir is the folder of the file that names the server.
	Dir string `json:"dir,omitempty" yaml:"-"`

	// OpenEnv means that the server is an environment that speaks OpenEnv over a WebSocket. One
	// program, in whose command {port} stands for a free port, serves a session to each attempt.
	OpenEnv bool `json:"openenv,omitempty" yaml:"-"`
	// Answer is the action that hands over what an agent says to the user of an environment. In its
	// texts, {answer} stands for the words. Without it, they are not handed over.
	Answer json.RawMessage `json:"answer,omitempty" yaml:"-"`
}

// NewCatalog returns a catalog of the tools, in the given order. If two tools have the same
// name, lookups find the first.
func NewCatalog(tools []Tool) *Catalog {
	c := &Catalog{tools: slices.Clone(tools), byName: make(map[string]int, len(tools))}
	for i, t := range tools {
		if _, dup := c.byName[t.Name]; !dup {
			c.byName[t.Name] = i
		}
	}
	return c
}

// With returns a catalog of the same tools. A server carries them out, or a script if the server is
// nil.
func (c *Catalog) With(script Script, server *MCPServer) *Catalog {
	with := NewCatalog(c.tools)
	with.script, with.server = script, server
	return with
}

// Server returns the server that carries out the tools, or nil.
func (c *Catalog) Server() *MCPServer { return c.server }

// Own reports whether users wrote the tools: as a script, or behind a server.
func (c *Catalog) Own() bool { return c.script.Source != "" || c.server != nil }

// Script returns the source of the tools. It is empty unless somebody wrote them.
func (c *Catalog) Script() Script { return c.script }

// Derived returns the value that the first caller derived from the catalog.
func (c *Catalog) Derived(derive func(*Catalog) any) any {
	c.once.Do(func() { c.derived = derive(c) })
	return c.derived
}

// Runtime returns what serves all attempts at the catalog's tasks, such as a program. The first
// caller opens it.
func (c *Catalog) Runtime(open func() io.Closer) io.Closer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runtime == nil {
		c.runtime = open()
	}
	return c.runtime
}

// Close ends what serves all attempts. Later attempts open it anew.
func (c *Catalog) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.runtime == nil {
		return nil
	}
	err := c.runtime.Close()
	c.runtime = nil
	return err
}

// Tool returns the tool with that name.
func (c *Catalog) Tool(name string) (Tool, bool) {
	i, ok := c.byName[name]
	if !ok {
		return Tool{}, false
	}
	return c.tools[i], true
}

// All returns the tools in order. The caller must not change them.
func (c *Catalog) All() []Tool { return c.tools }

// Names returns the tools' names in order.
func (c *Catalog) Names() []string {
	names := make([]string, len(c.tools))
	for i, t := range c.tools {
		names[i] = t.Name
	}
	return names
}

// Work returns the tool by which the tasks of a library call the work of a tool: itself, or the one that it
// stands for.
func (c *Catalog) Work(name string) string {
	if t, ok := c.Tool(name); ok && t.StandsFor != "" {
		return t.StandsFor
	}
	return name
}

// Substitutes returns the tools that stand for one.
func (c *Catalog) Substitutes(name string) (all []string) {
	for i := range c.tools {
		if t := &c.tools[i]; t.StandsFor == name && name != "" {
			all = append(all, t.Name)
		}
	}
	return all
}
