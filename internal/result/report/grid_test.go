package report_test

import (
	"encoding/json"

	"github.com/assay-eval/assay/internal/result/report"
	"github.com/assay-eval/assay/internal/result/stat"
)

// rows returns the rows of a grid as its JSON has them, so that tests read what other programs do.
func rows[T any](g *report.Grid) (all []T) {
	b, err := json.Marshal(g)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(b, &all); err != nil {
		panic(err)
	}
	return all
}

// plain returns a value as its JSON has it.
func plain(v any) (out any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		panic(err)
	}
	return out
}

// The objects in the JSON of grids.
type (
	row struct {
		Model           string        `json:"model"`
		Variant         string        `json:"variant"`
		Severity        string        `json:"severity"`
		Difficulty      string        `json:"difficulty"`
		Reliability     float64       `json:"reliability"`
		Planned         int           `json:"planned"`
		Done            int           `json:"done"`
		Faults          int           `json:"faults"`
		Full            int           `json:"full_success"`
		Partial         int           `json:"partial_success"`
		Failed          int           `json:"failure"`
		FullRate        float64       `json:"full_success_rate"`
		FullInterval    stat.Interval `json:"full_success_95"`
		PartialRate     float64       `json:"partial_success_rate"`
		PartialInterval stat.Interval `json:"partial_success_95"`
		FailureRate     float64       `json:"failure_rate"`
		FailureInterval stat.Interval `json:"failure_95"`
		DesignEffect    float64       `json:"design_effect"`

		Best           *float64       `json:"best_possible"`
		BestMeasured   int            `json:"best_measured"`
		OfBest         *float64       `json:"of_best"`
		OfBestInterval *stat.Interval `json:"of_best_95"`
		MeanTurns      float64        `json:"mean_turns"`
		CostUSD        float64        `json:"cost_usd"`
	}
	metrics struct {
		Model        string       `json:"model"`
		Done         int          `json:"done"`
		Success      report.Share `json:"success"`
		Full         report.Share `json:"full_success"`
		Partial      report.Share `json:"partial_success"`
		Failure      report.Share `json:"failure"`
		Weighted     float64      `json:"weighted_success"`
		MeanTurns    float64      `json:"mean_turns"`
		ToolCoverage float64      `json:"mean_coverage"`
		Ordered      report.Share `json:"order_correct"`
	}
	effort struct {
		Model       string       `json:"model"`
		CostPerFull *float64     `json:"cost_per_full_success"`
		Precision   float64      `json:"precision"`
		Unwanted    report.Share `json:"unwanted_effects"`
		WrongData   report.Share `json:"broken_lineage"`
		WrongDataAt string       `json:"broken_at"`
	}
	exposure struct {
		Done      int `json:"done"`
		Scheduled int `json:"faults_scheduled"`
		Met       int `json:"faults_met"`
	}
	pilotRow struct {
		Model    string       `json:"model"`
		Variant  string       `json:"variant"`
		Done     int          `json:"done"`
		Executor report.Share `json:"executor"`
		Batch    report.Share `json:"batch"`
	}
)
