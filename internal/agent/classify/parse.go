package classify

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An Opinion is the reason, according to a model, why an attempt was not a full success.
type Opinion struct {
	// Category is one of [Categories].
	Category string `json:"category"`
	// Confidence is the model's own estimate, in [0,1].
	Confidence float64 `json:"confidence"`
	Reason     string  `json:"reason"`
}

// maxRead is the number of bytes read from the end of a reply. An answer is short and comes after
// any thoughts that the model writes down.
const maxRead = 8 << 10

// Parse extracts the opinion from a reply. It looks for a JSON object with a category anywhere in
// the text and tolerates trailing commas. If there are several, they have to agree. Parse does not
// guess: it ignores text outside the object, the category has to be a [Label], and the confidence
// has to be in [0,1] or a percentage. The reason is optional.
//
// The wording of its errors is part of the correction prompt.
func Parse(reply string) (Opinion, error) {
	reply = reply[max(0, len(reply)-maxRead):]
	// The unchanged text comes first, because a reason may contain such a comma.
	answers := append(answersIn(reply), answersIn(trailingComma.ReplaceAllString(reply, "$1"))...)
	if len(answers) == 0 {
		return Opinion{}, errors.New("no JSON object with a category")
	}
	opinion, err := answers[0].opinion()
	if err != nil {
		return Opinion{}, err
	}
	for _, a := range answers[1:] {
		o, err := a.opinion()
		if err != nil {
			return Opinion{}, err
		}
		if o.Category != opinion.Category || o.Confidence != opinion.Confidence {
			return Opinion{}, errors.New("several answers that differ")
		}
	}
	return opinion, nil
}

var trailingComma = regexp.MustCompile(`,(\s*})`)

// An uncheckedAnswer is a JSON object with a category, not yet checked.
type uncheckedAnswer struct {
	Category   json.RawMessage `json:"category"`
	Confidence json.RawMessage `json:"confidence"`
	Reason     string          `json:"reason"`
}

// answersIn returns the answers in a text, in order. It does not look for answers inside another
// one.
func answersIn(text string) []uncheckedAnswer {
	var found []uncheckedAnswer
	for {
		start := strings.IndexByte(text, '{')
		if start < 0 {
			return found
		}
		text = text[start:]
		var a uncheckedAnswer
		object := json.NewDecoder(strings.NewReader(text))
		if err := object.Decode(&a); err != nil || a.Category == nil {
			text = text[1:]
			continue
		}
		found = append(found, a)
		text = text[object.InputOffset():]
	}
}

func (a uncheckedAnswer) opinion() (Opinion, error) {
	var label string
	if err := json.Unmarshal(a.Category, &label); err != nil {
		return Opinion{}, errors.New("the category is no text")
	}
	category, ok := Label(label)
	if !ok {
		return Opinion{}, fmt.Errorf("%q is none of the categories", shorten(label, 100))
	}
	confidence, err := parseConfidence(a.Confidence)
	if err != nil {
		return Opinion{}, err
	}
	return Opinion{category, confidence, a.Reason}, nil
}

// parseConfidence parses a share in [0,1] or a percentage. A number is a percentage if it is above
// 1 or has a percent sign.
func parseConfidence(raw json.RawMessage) (float64, error) {
	if raw == nil || string(raw) == "null" {
		return 0, errors.New("the confidence is missing")
	}
	text, percent := string(raw), false
	var quoted string
	if json.Unmarshal(raw, &quoted) == nil {
		text, percent = strings.CutSuffix(strings.TrimSpace(quoted), "%")
	}
	v, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	switch {
	case err != nil || !(v >= 0 && v <= 100): // also true for NaN
		return 0, fmt.Errorf("the confidence %s is no number from 0 to 1", shorten(text, 100))
	case percent || v > 1:
		return v / 100, nil
	}
	return v, nil
}
