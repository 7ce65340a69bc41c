package main

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/task/library"
)

func newSchema(p *process) *cobra.Command {
	schemas := map[string]func() []byte{
		"environment": library.EnvironmentSchema,
		"experiment":  plan.ExperimentSchema,
		"providers":   plan.ProvidersSchema,
		"tasks":       library.TasksSchema,
		"tools":       library.ToolsSchema,
	}
	names := slices.Sorted(maps.Keys(schemas))
	return &cobra.Command{
		Use:   "schema environment|experiment|providers|tasks|tools",
		Short: "Print the JSON schema of a kind of file",
		Long: `Schema prints a JSON schema. Editors use it to complete and check the file. Many
editors find it through a comment on the first line:

  # yaml-language-server: $schema=experiment.schema.json`,
		Example: `  assay library schema experiment > experiment.schema.json
  assay library schema providers > providers.schema.json
  assay library schema tasks > tasks.schema.json`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			schema, ok := schemas[args[0]]
			if !ok {
				return usageError("unknown schema %q\nhint: %s",
					args[0], assay.NameHint(args[0], names))
			}
			_, err := p.out.Write(schema())
			return err
		},
	}
}
