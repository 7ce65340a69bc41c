package budget

// A Budget bounds the spending of a run. Zero means no bound. Dollars count only for models that
// have a price.
type Budget struct {
	USD    float64 `yaml:"usd" json:"usd,omitempty"`
	Tokens int     `yaml:"tokens" json:"tokens,omitempty"`
}

// Budgets bound a whole run, each of its models and each of its cells.
type Budgets struct {
	Budget   `yaml:",inline"`
	PerModel Budget `yaml:"per_model" json:"per_model,omitzero"`
	PerCell  Budget `yaml:"per_cell" json:"per_cell,omitzero"`
}
