package plan

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
)

//go:embed experiment.schema.json
var experimentSchema string

//go:embed providers.schema.json
var providersSchema string

// ExperimentSchema returns the JSON schema (draft 2020-12) of experiment files,
// for editors. [Load] accepts every file that the schema allows, except for
// mistakes that a schema cannot see: in other files, in the environment, or in
// how parts relate to each other and to the rest. Load also accepts a little
// more, such as quoted numbers.
func ExperimentSchema() []byte {
	return []byte(assay.FillModelFaults(assay.FillToolFaults(experimentSchema, assay.ToolFaults)))
}

// ProvidersSchema returns the JSON schema (draft 2020-12) of providers files,
// for editors. It relates to [LoadProviders] as [ExperimentSchema] does to
// [Load].
func ProvidersSchema() []byte {
	var limits []string
	for _, b := range lane.Buckets {
		limits = append(limits, fmt.Sprintf(
			`%q: {"description": "The number of %s.", "type": "integer", "minimum": 0, "default": 0}`, b, lane.Unit(b)))
	}
	all := strings.Join(limits, ",\n            ")
	return []byte(strings.Replace(providersSchema, `"$LIMITS": {}`, "\n            "+all+"\n          ", 1))
}
