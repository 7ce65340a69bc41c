package report

import (
	"regexp"
	"strconv"
	"strings"
)

// sized splits a model's name at its number of parameters, as in qwen2.5-7b-instruct. active
// matches the parameters that a mixture of experts uses for a token, as in Qwen3-235B-A22B.
var (
	sized  = regexp.MustCompile(`(?i)^(.*?)(\d+(?:\.\d+)?)b(?:$|([-_.:@].*)$)`)
	active = regexp.MustCompile(`(?i)[-_]a\d+(?:\.\d+)?b($|[-_.:@])`)
)

// Family returns a name that all models of a family share, and the model's parameters in
// billions. It returns false if the model's name does not state its size.
func Family(model string) (family string, billions float64, ok bool) {
	m := sized.FindStringSubmatch(active.ReplaceAllString(model, "$1"))
	if m == nil {
		return "", 0, false
	}
	billions, err := strconv.ParseFloat(m[2], 64)
	return strings.ToLower(m[1] + "*" + m[3]), billions, err == nil
}
