package legacy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// The names of the original. The prompt types are the variants of package
// episode, in the order of its tables.
var (
	prompts = []string{
		"baseline", "cot", "optimal",
		"flawed_sequence_disorder", "flawed_tool_misuse", "flawed_parameter_error", "flawed_missing_step",
		"flawed_redundant_operations", "flawed_logical_inconsistency", "flawed_semantic_drift",
	}
	taskTypes    = []string{"simple_task", "basic_task", "data_pipeline", "api_integration", "multi_stage_pipeline"}
	difficulties = []string{"very_easy", "easy", "medium", "hard", "very_hard"}
	rates        = []float64{.9, .8, .7, .6}
)

const flawedPrefix = "flawed_"

// deployed are the models that the original called through several deployments
// of one name and a number.
var deployed = []string{"DeepSeek-V3-0324", "DeepSeek-R1-0528", "Llama-3.3-70B-Instruct", "grok-3"}

var canonicalModels = append(slices.Clone(deployed),
	"qwen2.5-72b-instruct", "qwen2.5-32b-instruct", "qwen2.5-14b-instruct", "qwen2.5-7b-instruct", "qwen2.5-3b-instruct")

var (
	deploymentSuffix = regexp.MustCompile(`-[0-9]$`)
	testName         = regexp.MustCompile(`(?i)^(test|dummy|mock|fake)([-_]|$)|[-_](test|dummy|mock|fake)$`)
)

// probablyIs returns the name of which model seems to be a variant, by its case
// or by the number of a deployment: one of the table, or one of earlier, which
// is keyed by the lower-case spelling. It returns "" where there is none.
func probablyIs(model string, earlier map[string]string) string {
	equal := func(name string, known []string) string {
		for _, k := range known {
			if strings.EqualFold(k, name) {
				return k
			}
		}
		return earlier[strings.ToLower(name)]
	}
	if slices.Contains(canonicalModels, model) {
		return ""
	}
	if k := equal(model, canonicalModels); k != "" && k != model {
		return k
	}
	if base := deploymentSuffix.ReplaceAllString(model, ""); base != model {
		return equal(base, deployed)
	}
	return ""
}

// parseRate reads the key of a rate. Meant is the rate of the original that
// it probably stands for, 0 where none is near; ok says that it is one.
func parseRate(key string) (value, meant float64, ok bool) {
	value, err := strconv.ParseFloat(key, 64)
	switch {
	case err != nil || !(value >= 0): // so that NaN is refused too
		return 0, 0, false
	case slices.Contains(rates, value):
		return value, value, true
	case slices.Contains(rates, value/100):
		return 0, value / 100, false
	case value > 1:
		return 0, 0, false
	}
	return value, 0, false
}

// rateKey is the original's spelling of a rate: the shortest decimal of what
// is left after four places, with one place at least.
func rateKey(rate float64) string {
	v, err := strconv.ParseFloat(strconv.FormatFloat(rate, 'f', 4, 64), 64)
	if err != nil {
		panic("legacy: rate: " + err.Error())
	}
	return decimal(v)
}

// decimal writes a number as Python does: never without a decimal point.
func decimal(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
