package plan

// A Budget bounds what a run spends; 0 for no bound. Dollars count only where
// models have prices.
type Budget struct {
	USD    float64 `yaml:"usd" json:"usd,omitempty"`
	Tokens int     `yaml:"tokens" json:"tokens,omitempty"`
}

// Budgets bound one run: all of it, each of its models and each of its cells.
type Budgets struct {
	Budget   `yaml:",inline"`
	PerModel Budget `yaml:"per_model" json:"per_model,omitzero"`
	PerCell  Budget `yaml:"per_cell" json:"per_cell,omitzero"`
}
