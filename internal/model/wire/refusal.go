package wire

import (
	"regexp"
	"slices"
	"strings"
)

// refusal matches messages about a parameter that a model does not support, or
// supports only with its default value.
var refusal = regexp.MustCompile(`(?i)unsupported|not support|unrecognized|unknown|` +
	`unexpected|not permitted|not allowed|deprecated`)

// parameterish matches words that appear near the name of a parameter. It keeps
// messages that mention a temperature in another sense from being misread.
var parameterish = regexp.MustCompile(`(?i)parameter|argument|field|input|value|property|for this model`)

// Refuses returns the one of params that e refuses by name, or 0. If the message has several of
// them, Refuses returns the first in the message, or the first in params if they start at the same
// place.
func (e *APIError) Refuses(params []Param) (found ParamSet) {
	if e.Param != "" {
		i := slices.IndexFunc(params, func(p Param) bool { return p.Name == e.Param })
		if i < 0 || !refusal.MatchString(e.Code+" "+e.Message) {
			return 0
		}
		return params[i].Set
	}
	if !refusal.MatchString(e.Message) || !parameterish.MatchString(e.Message) {
		return 0
	}
	first := len(e.Message)
	for _, p := range params {
		if i := strings.Index(e.Message, p.Name); i >= 0 && i < first {
			found, first = p.Set, i
		}
	}
	return found
}
