package bridge

import (
	_ "embed"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/assay-eval/assay/internal/task/child"
)

//go:embed presets.yaml
var presetFile []byte

// A preset is how a known agent is started.
type preset struct {
	Command []string          `yaml:"command"`
	ACP     []string          `yaml:"acp"`
	Next    []string          `yaml:"next"`
	Set     map[string]string `yaml:"set"`
	Files   map[string]string `yaml:"files"`
}

var presets = func() (all map[string]preset) {
	if err := yaml.Load(presetFile, &all, yaml.WithKnownFields()); err != nil {
		panic("bridge: presets: " + err.Error())
	}
	return all
}()

// Presets lists the names of the presets.
func Presets() []string { return slices.Sorted(maps.Keys(presets)) }

// WithPreset returns the agent with the program of a preset, whose home is its scratch directory.
func (a Agent) WithPreset(name string) Agent {
	p := presets[name]
	a.Command, a.Next, a.Home, a.Files = append(p.Command, p.ACP...), p.Next, "", p.Files
	a.ACP = len(p.ACP) > 0
	a.Set = maps.Clone(p.Set)
	if a.Set == nil {
		a.Set = make(map[string]string)
	}
	a.Set["HOME"] = child.Scratch
	return a
}
