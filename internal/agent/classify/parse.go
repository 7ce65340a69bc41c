package classify

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// An Opinion is why, in a model's eyes, an attempt did not fully succeed.
type Opinion struct {
	// Category is one of [Categories].
	Category string `json:"category"`
	// Confidence is the model's own, in [0,1].
	Confidence float64 `json:"confidence"`
	Reason     string  `json:"reason"`
}

// maxRead is how many bytes of a reply are read, the last ones: an answer is
// short and comes after whatever a model thinks aloud.
const maxRead = 8 << 10

// Parse reads the opinion in a reply: the JSON object with a category, wherever
// it stands, with or without commas too many. Several of them have to say the
// same. Nothing is made up: words outside of an object do not count, a category
// has to be a [Label], and the confidence has to be there, in [0,1] or as a
// percentage. A reason may be missing.
func Parse(reply string) (Opinion, error) {
	reply = reply[max(0, len(reply)-maxRead):]
	// The text as it stands comes first, for a reason may hold such a comma.
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

// An answer is a JSON object that has a category, not yet read.
type answer struct {
	Category   json.RawMessage `json:"category"`
	Confidence json.RawMessage `json:"confidence"`
	Reason     string          `json:"reason"`
}

// answersIn finds the answers in a text, in order. Where one begins, nothing
// inside it is another.
func answersIn(text string) []answer {
	var found []answer
	for {
		start := strings.IndexByte(text, '{')
		if start < 0 {
			return found
		}
		text = text[start:]
		var a answer
		object := json.NewDecoder(strings.NewReader(text))
		if err := object.Decode(&a); err != nil || a.Category == nil {
			text = text[1:]
			continue
		}
		found = append(found, a)
		text = text[object.InputOffset():]
	}
}

func (a answer) opinion() (Opinion, error) {
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

// parseConfidence reads a share in [0,1], or a percentage: a number above 1, or
// one with a percent sign, up to 100.
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
	case err != nil || !(v >= 0 && v <= 100): // so that NaN is refused too
		return 0, fmt.Errorf("the confidence %s is no number from 0 to 1", shorten(text, 100))
	case percent || v > 1:
		return v / 100, nil
	}
	return v, nil
}
