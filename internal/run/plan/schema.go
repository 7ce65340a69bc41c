package plan

import _ "embed"

//go:embed experiment.schema.json
var experimentSchema string

//go:embed providers.schema.json
var providersSchema string

// ExperimentSchema returns the JSON schema, draft 2020-12, of experiment
// files, for editors. What it allows, [Load] reads, but for what needs other
// files or the environment and what parts have to do with each other and with
// the rest; Load reads a little more, such as quoted numbers.
func ExperimentSchema() []byte { return []byte(experimentSchema) }

// ProvidersSchema returns the JSON schema, draft 2020-12, of providers files,
// for editors. It stands to [LoadProviders] as [ExperimentSchema] to [Load].
func ProvidersSchema() []byte { return []byte(providersSchema) }
