package legacy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/assay-eval/assay"
)

// The names of the original. Its prompt types are our variants.
var (
	prompts      = assay.Variants
	taskTypes    = assay.TaskTypes
	difficulties = assay.Difficulties
	rates        = []float64{.9, .8, .7, .6}
)

var testName = regexp.MustCompile(
	`(?i)^(test|dummy|mock|fake)([-_]|$)|[-_](test|dummy|mock|fake)$`)

// foreign returns why the original has no such cell: all reasons.
func (a *Aggregate) foreign() (reasons []string) {
	allFlaws := a.Variant == "flawed" // together
	for _, c := range []struct {
		is     bool
		reason string
	}{
		{testName.MatchString(a.Model), "the model is from a test of the program"},
		{allFlaws, "the flaw is unknown"},
		{!allFlaws && !slices.Contains(prompts, a.Variant), "the original does not have this prompt type"},
		{!slices.Contains(rates, a.Reliability), "no suite has this rate"},
		{!slices.Contains(difficulties, a.Difficulty), "the original does not have this difficulty"},
		{!slices.Contains(taskTypes, a.TaskType), "the original does not have this task type"},
	} {
		if c.is {
			reasons = append(reasons, c.reason)
		}
	}
	return reasons
}

// reliabilityOf returns the value of a rate's key, or 0 if it is not a number in [0,1].
func reliabilityOf(key string) float64 {
	value, err := strconv.ParseFloat(key, 64)
	if err != nil || !(value >= 0 && value <= 1) { // written to refuse NaN too
		return 0
	}
	return value
}

// rateKey formats a rate like the original: with the shortest decimal of its
// first four places, and at least one place.
func rateKey(rate float64) string {
	v, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'f', 4, 64), 64)
	if err != nil {
		panic("legacy: rate: " + err.Error())
	}
	return decimal(v)
}

// decimal formats a number like Python, always with a decimal point.
func decimal(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
