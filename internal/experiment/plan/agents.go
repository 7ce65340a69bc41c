package plan

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/agent/bridge"
	"github.com/assay-eval/assay/internal/model/sim"
	"github.com/assay-eval/assay/internal/task/child"
	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// An AgentSpec describes a foreign agent in a providers file: a program, a service or a preset.
type AgentSpec struct {
	Command []string `yaml:"command"`
	// ACP is the command of a program that speaks the Agent Client Protocol.
	ACP []string `yaml:"acp"`
	URL string   `yaml:"url"`
	// Next is the command, or the URL, that hears further messages of the user.
	Next Names `yaml:"next"`
	// Headers are sent to the URL. ${NAME} stands for an environment variable.
	Headers map[string]string `yaml:"headers"`
	// Listen is the address of the tools and the model, and PublicURL the one that the agent gets.
	Listen    string `yaml:"listen"`
	PublicURL string `yaml:"public_url"`
	// Preset names a known agent; see [bridge.Presets].
	Preset string `yaml:"preset"`
	// Model is the model of the same file, or the built-in model, that serves the agent.
	Model string `yaml:"model"`
	// Timeout is the time that the agent may take itself, without waiting for its model.
	Timeout Duration `yaml:"timeout"`
	// Env names the environment variables that the program gets besides PATH, HOME and the like.
	Env Names `yaml:"env"`
	// Concurrency is the largest number of attempts at a time.
	Concurrency int `yaml:"concurrency"`
	// Sandbox says whether the program runs in a room, Read names what it sees there besides what its
	// command needs, and Network what it can reach besides its tools and its model: closed or open.
	Sandbox bridge.Sandbox `yaml:"sandbox"`
	Read    Names          `yaml:"read"`
	Network string         `yaml:"network"`
	Limits  AgentLimits    `yaml:"limits"`
}

// AgentLimits bound what an attempt of an agent uses of the machine, in its room. A limit that is 0 is that
// of [child.DefaultLimits].
type AgentLimits struct {
	Memory    Size `yaml:"memory"`
	Disk      Size `yaml:"disk"`
	Processes int  `yaml:"processes"`
}

// sandboxes are the names of [bridge.Sandboxes].
var sandboxes = func() (names []string) {
	for _, s := range bridge.Sandboxes {
		names = append(names, string(s))
	}
	return names
}()

// networks are what an agent in a room can reach, the default first.
var networks = []string{"closed", "open"}

// The defaults of an agent.
const (
	DefaultAgentTimeout     = Duration(10 * time.Minute)
	DefaultAgentConcurrency = 8
	maxAgents               = 1000 // at a time
	maxProcesses            = 100_000
)

// Agent returns the agent that the file describes.
func (p *Providers) Agent(name string) bridge.Agent {
	s := p.Agents[name]
	a := s.started(p.doc.Dir)
	a.Name, a.Pass, a.Model = name, s.Env, s.Model
	a.Timeout = time.Duration(s.timeout())
	a.Headers, a.Listen, a.Public = s.Headers, s.Listen, s.PublicURL
	a.Limits = child.Limits{
		Memory: int64(s.Limits.Memory), Disk: int64(s.Limits.Disk), Processes: s.Limits.Processes,
	}
	for _, text := range s.Headers {
		for _, ref := range envReference.FindAllStringSubmatch(text, -1) {
			a.Keys = append(a.Keys, ref[1])
		}
	}
	return a
}

// started returns how the agent of a providers file in a folder is started.
func (s AgentSpec) started(dir string) bridge.Agent {
	a := bridge.Agent{
		Command: append(s.Command, s.ACP...), ACP: len(s.ACP) > 0, URL: s.URL, Next: s.Next.but(noNext),
		Sandbox: s.Sandbox, Read: s.Read, OpenNetwork: s.Network == "open",
	}
	if abs, err := filepath.Abs(dir); err == nil { // otherwise the working directory is gone
		dir = abs
	}
	a.Hidden = []string{dir} // it has keys' names at least, and mostly the experiment
	if s.Preset != "" {
		return a.At(dir).WithPreset(s.Preset)
	}
	return a.At(dir)
}

func (s AgentSpec) program(file string) map[string]string {
	if s.Preset != "" && !slices.Contains(bridge.Presets(), s.Preset) {
		return nil
	}
	return s.started(filepath.Dir(file)).Program()
}

func (s AgentSpec) timeout() Duration { return cmp.Or(s.Timeout, DefaultAgentTimeout) }

// Most returns the largest number of attempts of the agent at a time.
func (s AgentSpec) Most() int { return cmp.Or(s.Concurrency, DefaultAgentConcurrency) }

// ways counts the ways to start the agent that the file gives.
func (s AgentSpec) ways() (n int) {
	for _, set := range []bool{len(s.Command) > 0, len(s.ACP) > 0, s.URL != "", s.Preset != ""} {
		if set {
			n++
		}
	}
	return n
}

var webAddress = regexp.MustCompile(`^https?://`)

// checkAgents checks the agents of the file. Programs are only looked for when they are to run.
func (p *Providers) checkAgents(getenv func(string) (string, bool)) error {
	models := append(p.Models(), sim.Names...)
	for _, name := range slices.Sorted(maps.Keys(p.Agents)) {
		s, place := p.Agents[name], "$.agents."+strconv.Quote(name)
		switch {
		case slices.Contains(p.Models(), name):
			return p.doc.AtKey("$.agents", name, fmt.Sprintf("%s is a model and an agent", name),
				"results are filed under the name, so give one of them another name")
		case s.ways() != 1:
			return p.doc.At(place,
				fmt.Sprintf("agent %s needs one of command, acp, url and preset", name),
				"for example command: [python, agent.py]")
		case s.Preset != "" && !slices.Contains(bridge.Presets(), s.Preset):
			return p.doc.At(place+".preset", fmt.Sprintf("unknown preset %q", s.Preset),
				assay.NameHint(s.Preset, bridge.Presets()))
		case s.Model == "":
			return p.doc.At(place, fmt.Sprintf("agent %s needs a model", name),
				"write model: with a model of this file, which the agent reaches through Assay")
		case !slices.Contains(models, s.Model) && !sim.Is(s.Model):
			return p.doc.At(place+".model", fmt.Sprintf("no provider of this file serves model %s",
				s.Model), assay.NameHint(s.Model, models))
		case s.URL != "" && !webAddress.MatchString(s.URL):
			return p.doc.At(place+".url", "the address does not start with http:// or https://", "")
		case len(s.Next) > 0 && len(s.ACP) > 0:
			return p.doc.At(place+".next", "an agent that speaks ACP hears further messages by itself",
				"remove next")
		case len(s.Next) > 0 && s.Preset != "":
			return p.doc.At(place+".next", "a preset knows how its agent goes on", "remove next")
		case s.URL != "" && len(s.Next.but(noNext)) > 0 && (len(s.Next) > 1 || !webAddress.MatchString(s.Next[0])):
			return p.doc.At(place+".next", "a service hears the next message at an address",
				"for example next: http://127.0.0.1:9000/next")
		case s.Concurrency < 0 || s.Concurrency > maxAgents:
			return p.doc.At(place+".concurrency",
				fmt.Sprintf("concurrency is %d, want 1 to %d", s.Concurrency, maxAgents), "")
		}
		if err := cmp.Or(p.checkAddresses(place, s), p.checkSandbox(place, s), p.checkHeaders(place+".headers", s.Headers,
			getenv)); err != nil {
			return err
		}
		for i, v := range s.Env {
			if !variableText.MatchString(v) {
				return p.doc.At(fmt.Sprintf("%s.env[%d]", place, i),
					"this is not the name of an environment variable",
					"write the variable's name; its value comes from Assay's own environment")
			}
		}
	}
	return nil
}

// checkSandbox checks what an agent may see and use of the machine.
func (p *Providers) checkSandbox(place string, s AgentSpec) error {
	sandboxed := s.Sandbox != bridge.NoSandbox && s.Sandbox != bridge.OwnUser && s.URL == ""
	why := "its sandbox is " + string(s.Sandbox)
	if s.URL != "" {
		why = "Assay does not start it"
	}
	switch {
	case s.Sandbox != "" && !slices.Contains(bridge.Sandboxes, s.Sandbox):
		return p.doc.At(place+".sandbox", fmt.Sprintf("unknown sandbox %q", s.Sandbox),
			assay.NameHint(string(s.Sandbox), sandboxes))
	case s.Sandbox != "" && s.URL != "":
		return p.doc.At(place+".sandbox", "a service has no sandbox here", "remove sandbox, because Assay "+
			"does not start the service")
	case s.Network != "" && !slices.Contains(networks, s.Network):
		return p.doc.At(place+".network", fmt.Sprintf("unknown network %q", s.Network),
			assay.NameHint(s.Network, networks))
	case s.Network == networks[0] && s.Listen != "":
		return p.doc.At(place+".network", "with listen, the agent shares the network of this machine",
			"write network: open, or remove listen")
	case len(s.Read) > 0 && !sandboxed:
		return p.doc.At(place+".read", "read has no effect, because "+why, "remove read")
	case s.Network != "" && !sandboxed:
		return p.doc.At(place+".network", "network has no effect, because "+why, "remove network")
	case s.Limits != (AgentLimits{}) && !sandboxed:
		return p.doc.At(place+".limits", "limits have no effect, because "+why, "remove limits")
	case s.Limits.Processes < 0 || s.Limits.Processes > maxProcesses:
		return p.doc.At(place+".limits.processes",
			fmt.Sprintf("processes is %d, want 1 to %d", s.Limits.Processes, maxProcesses), "")
	}
	for i, path := range s.Read {
		at := fmt.Sprintf("%s.read[%d]", place, i)
		switch filepath.Clean(path) {
		case "/", "/dev", "/proc", "/tmp":
			return p.doc.At(at, path+" is not for a room, which has its own", "name a file or folder in it")
		}
		if path == "" || strings.ContainsAny(path, "*~") {
			return p.doc.At(at, fmt.Sprintf("%q is no path", path),
				"write a file or folder, such as tools or /opt/agent; ~ and * stand for nothing here")
		}
	}
	return nil
}

// checkAddresses checks where an agent is and where it finds its tools.
func (p *Providers) checkAddresses(place string, s AgentSpec) error {
	if len(s.Headers) > 0 && s.URL == "" {
		return p.doc.At(place+".headers", "headers are for a service", "write its url, or use env")
	}
	u, err := url.Parse(s.URL)
	if err == nil && !portInRange(u) {
		return p.doc.At(place+".url", "there is no port "+u.Port(), "ports are 1 to 65535")
	}
	if err == nil && u.User != nil {
		return bare(p.doc.At(place+".url", "the address has a user, which may be a secret",
			"write it into headers as ${NAME}, where NAME is an environment variable"))
	}
	if s.PublicURL != "" && (s.Listen == "" || !webAddress.MatchString(s.PublicURL)) {
		return p.doc.At(place+".public_url", "public_url is how the agent reaches the address in listen",
			"write listen: 0.0.0.0:8700 and public_url: http://NAME:8700 with the name of this machine")
	}
	if s.Listen == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(s.Listen)
	ip, _ := netip.ParseAddr(host)
	switch {
	case err != nil:
		return p.doc.At(place+".listen", fmt.Sprintf("listen: %v", err), "for example 10.0.0.5:8700")
	case s.PublicURL == "" && (host == "" || ip.IsUnspecified()):
		return p.doc.At(place+".listen", "the agent cannot know the name of this machine",
			"write public_url: http://NAME:PORT")
	}
	return nil
}

// CheckProgram returns an error if the program of an agent cannot be found.
func (p *Providers) CheckProgram(name string) error {
	a := p.Agent(name)
	if err := a.Check(); err != nil {
		return p.doc.AtKey("$.agents", name, fmt.Sprintf("agent %s cannot start: %v", name, err),
			"a path with a slash is relative to this file")
	}
	return nil
}

// noNext is the `next` of an agent that needs none, because its environment takes one answer and ends.
const noNext = "none"

// CheckNext returns an error if an agent cannot hear a user who goes on after its answer.
func (p *Providers) CheckNext(name string) error {
	s := p.Agents[name]
	if a := p.Agent(name); len(a.Next) > 0 || a.ACP || slices.Equal(s.Next, Names{noNext}) {
		return nil
	}
	return p.doc.AtKey("$.agents", name, fmt.Sprintf("agent %s cannot hear a user who goes on after its answer, "+
		"as the environment may", name), "write next: the command, or the URL, that hears a further message; or "+
		"next: none if the environment never has one")
}

// An AgentUse holds the facts about an agent that an experiment keeps. A trial's identity has all
// but the program.
type AgentUse struct {
	Model   string   `json:"model"`
	Timeout Duration `json:"timeout"`
	// Program is a copy of [bridge.Agent.Program].
	Program map[string]string `json:"program,omitempty"`
}

// FindAgents looks up which models of the experiment are agents in its providers file. Mistakes in
// that file are reported when it is read as a whole. An experiment from a store knows its agents.
func (e *Experiment) FindAgents() {
	if e.doc == nil && !e.published || e.Providers == "" {
		return
	}
	doc, err := yamldoc.Read(e.Providers, help)
	if err != nil {
		return
	}
	var agents map[string]AgentSpec
	if node := doc.Node("$.agents"); node == nil || node.Load(&agents, yaml.WithUniqueKeys(false)) != nil {
		return
	}
	e.Agents = nil
	for _, m := range e.Models {
		if spec, ok := agents[e.Base(m)]; ok {
			if e.Agents == nil {
				e.Agents = make(map[string]AgentUse)
			}
			e.Agents[e.Base(m)] = AgentUse{spec.Model, spec.timeout(), spec.program(e.Providers)}
		}
	}
}

// Served returns the name in the providers file of the model that serves a model's requests: its
// own, or that behind an agent.
func (e *Experiment) Served(model string) string {
	base := e.Base(model)
	if a, ok := e.Agents[base]; ok {
		return a.Model
	}
	return base
}

// unlisted returns a kind of fault in a mix after which calls have an argument that no schema lists, or "".
func unlisted(mix assay.FaultMix) assay.ToolFault {
	for _, kind := range assay.ToolFaultsThat(assay.ToolFaultRule.AddsArguments) {
		if mix[kind] > 0 {
			return kind
		}
	}
	return ""
}

// CheckAgents returns an error if the experiment has a setting that agents do not support.
func (e *Experiment) CheckAgents() error {
	if len(e.Agents) > 0 && e.Protocol == assay.Tags {
		return e.FieldError("protocol",
			"agents call tools over MCP, and not with tags in their texts",
			"write protocol: native")
	}
	for _, mix := range e.Failures.Kinds {
		if kind := unlisted(mix); kind != "" && len(e.Agents) > 0 && e.Tools == assay.Listed {
			return e.FieldError("failures.kinds", string(kind)+" cannot be combined with agents and listed tools, because "+
				"their frameworks refuse or drop an argument that the schema of its tool does not have",
				"write tools: discover, or leave "+string(kind)+" out")
		}
	}
	if len(e.ModelFaults) == 0 {
		return nil
	}
	for _, m := range e.Models {
		if _, agent := e.Agents[e.Base(m)]; !agent {
			return e.ModelError(m, "model_faults are for foreign agents, whose own client meets them, and "+m+
				" is none: Assay asks it, and asks again after every failure",
				"name an agent of the providers file, or remove model_faults")
		}
	}
	return nil
}
