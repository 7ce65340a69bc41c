package library

import (
	_ "embed"

	"github.com/assay-eval/assay"
)

//go:embed environment.schema.json
var environmentSchema string

//go:embed tasks.schema.json
var tasksSchema string

//go:embed tools.schema.json
var toolsSchema string

// TasksSchema returns the JSON schema (draft 2020-12) of YAML files of tasks, for editors.
func TasksSchema() []byte { return []byte(tasksSchema) }

// ToolsSchema returns the JSON schema (draft 2020-12) of YAML files of tools, for editors.
func ToolsSchema() []byte {
	own := assay.ToolFaultsThat(func(r assay.ToolFaultRule) bool { return !r.Attacks })
	return []byte(assay.FillToolFaults(toolsSchema, own))
}

// EnvironmentSchema returns the JSON schema (draft 2020-12) of YAML files about environments.
func EnvironmentSchema() []byte { return []byte(environmentSchema) }
