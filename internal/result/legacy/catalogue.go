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

// deployed are the models that the original called through several deployments,
// whose names end in a number.
var deployed = []string{
	"DeepSeek-V3-0324", "DeepSeek-R1-0528", "Llama-3.3-70B-Instruct", "grok-3",
}

var canonicalModels = append(slices.Clone(deployed),
	"qwen2.5-72b-instruct", "qwen2.5-32b-instruct", "qwen2.5-14b-instruct",
	"qwen2.5-7b-instruct", "qwen2.5-3b-instruct")

var (
	deploymentSuffix = regexp.MustCompile(`-[0-9]$`)
	testName         = regexp.MustCompile(
		`(?i)^(test|dummy|mock|fake)([-_]|$)|[-_](test|dummy|mock|fake)$`)
)

// probablyIs returns the known name that a model name seems to be a variant of,
// because it differs in case or has the number of a deployment. The table and earlier, which is
// keyed by lower-case spelling, hold the known names. It returns "" if no name fits.
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

// parseRate reads the key of a rate. meant is the rate of the original that an
// invalid key probably stands for, or 0.
func parseRate(key string) (value, meant float64, ok bool) {
	value, err := strconv.ParseFloat(key, 64)
	switch {
	case err != nil || !(value >= 0): // written to refuse NaN too
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
