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

// refuses returns the one of names that e refuses as a parameter, or "". If the message has
// several of them, refuses returns the first in the message, or the first in names if they start
// at the same place.
func (e *APIError) refuses(names ...string) string {
	if e.Param != "" {
		if slices.Contains(names, e.Param) && refusal.MatchString(e.Code+" "+e.Message) {
			return e.Param
		}
		return ""
	}
	if !refusal.MatchString(e.Message) || !parameterish.MatchString(e.Message) {
		return ""
	}
	found, first := "", len(e.Message)
	for _, name := range names {
		if i := strings.Index(e.Message, name); i >= 0 && i < first {
			found, first = name, i
		}
	}
	return found
}
