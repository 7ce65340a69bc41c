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
	if testName.MatchString(a.Model) {
		reasons = append(reasons, "the model is from a test of the program")
	}
	switch {
	case a.Variant == "flawed": // all flaws together
		reasons = append(reasons, "the flaw is unknown")
	case !slices.Contains(prompts, a.Variant):
		reasons = append(reasons, "the original does not have this prompt type")
	}
	if !slices.Contains(rates, a.Reliability) {
		reasons = append(reasons, "no suite has this rate")
	}
	if !slices.Contains(difficulties, a.Difficulty) {
		reasons = append(reasons, "the original does not have this difficulty")
	}
	if !slices.Contains(taskTypes, a.TaskType) {
		reasons = append(reasons, "the original does not have this task type")
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
