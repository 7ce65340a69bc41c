package report

import (
	"iter"

	"github.com/assay-eval/assay"
)

// Build returns the table of [Design.Analyze].
func (d Design) Build(
	experiment string,
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
) (*Table, error) {
	a, err := d.Analyze(experiment, trials, attempts, Beside{})
	if err != nil {
		return nil, err
	}
	return a.Table, nil
}

// Build calls [Design.Build] on the zero Design.
func Build(
	experiment string,
	trials iter.Seq[assay.Trial],
	attempts iter.Seq2[assay.Attempt, error],
) (*Table, error) {
	return Design{}.Build(experiment, trials, attempts)
}
