package adapter

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"time"
)

// formats are other formats of values. Each swaps the values in the tools' own format with those in the
// offered one, so that all values stay different from each other: where a number is offered as a text,
// a text that is a number is offered as that number.
type formats struct {
	yes, no string
	dates   dateFormat
}

// A dateFormat is a way to write dates that no date in the ISO format is written in.
type dateFormat struct {
	layout, named, example string
	pattern                *regexp.Regexp
}

var (
	answers = [][2]string{{"yes", "no"}, {"Y", "N"}, {"on", "off"}}
	dates   = []dateFormat{
		dateIn("02/01/2006", "DD/MM/YYYY"), dateIn("02.01.2006", "DD.MM.YYYY"), dateIn("01/02/2006", "MM/DD/YYYY"),
		dateIn("2006/01/02", "YYYY/MM/DD"),
	}
	isoDate = dateIn(time.DateOnly, "YYYY-MM-DD")
	// A time of day has hours from 0 to 23, or from 1 to 12 with AM or PM.
	ownTime     = regexp.MustCompile(`^([01]\d|2[0-3]):([0-5]\d(?::[0-5]\d)?)$`)
	offeredTime = regexp.MustCompile(`^(1[0-2]|[1-9]):([0-5]\d(?::[0-5]\d)?) ([AP]M)$`)
	numeral     = regexp.MustCompile(`^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?$`)
	// The rest of a moment is a time and perhaps a zone.
	ownRest     = regexp.MustCompile(`^[T ]\d\d:\d\d`)
	offeredRest = regexp.MustCompile(`^(?: |, )\d\d:\d\d`)
)

// dateIn describes a layout for package time.
func dateIn(layout, named string) dateFormat {
	digits := regexp.MustCompile(`\d`)
	pattern := digits.ReplaceAllString(regexp.QuoteMeta(layout), `\d`)
	example := time.Date(2025, time.December, 31, 0, 0, 0, 0, time.UTC).Format(layout)
	return dateFormat{layout, named, example, regexp.MustCompile(pattern)}
}

func drawFormats(dice *rand.Rand) *formats {
	words := answers[dice.IntN(len(answers))]
	return &formats{words[0], words[1], dates[dice.IntN(len(dates))]}
}

// swap returns a result in the other formats. It is its own inverse.
func (f *formats) swap(v value) value {
	return v.mapped(nil, func(v value) value {
		for _, swap := range []func(value) (value, bool){swapNumber, f.swapBoolean, f.swapText} {
			if other, ok := swap(v); ok {
				return other
			}
		}
		return v
	})
}

// swapNumber swaps numbers and their texts.
func swapNumber(v value) (value, bool) {
	switch {
	case v.kind == number:
		return stringOf(v.text), true
	case v.kind == text && numeral.MatchString(v.text) && json.Valid([]byte(v.text)):
		return value{kind: number, text: v.text}, true
	}
	return v, false
}

// swapBoolean swaps true and false with two words.
func (f *formats) swapBoolean(v value) (value, bool) {
	switch {
	case v.kind == boolean && v.text == "true":
		return stringOf(f.yes), true
	case v.kind == boolean:
		return stringOf(f.no), true
	case v.kind == text && (v.text == f.yes || v.text == f.no):
		return boolOf(v.text == f.yes), true
	}
	return v, false
}

// swapText swaps dates, moments and times of day.
func (f *formats) swapText(v value) (value, bool) {
	if v.kind != text {
		return v, false
	}
	if other, ok := swapTime(v.text); ok {
		return stringOf(other), true
	}
	if date, rest, ok := rewrite(v.text, isoDate, f.dates); ok {
		if after, ok := strings.CutPrefix(rest, "T"); ok {
			return stringOf(date + " " + after), true
		}
		if after, ok := strings.CutPrefix(rest, " "); ok {
			return stringOf(date + ", " + after), true
		}
		return stringOf(date), true
	}
	if date, rest, ok := rewrite(v.text, f.dates, isoDate); ok {
		if after, ok := strings.CutPrefix(rest, ", "); ok {
			return stringOf(date + " " + after), true
		}
		if after, ok := strings.CutPrefix(rest, " "); ok {
			return stringOf(date + "T" + after), true
		}
		return stringOf(date), true
	}
	return v, false
}

// isOwn reports whether a text is a date, moment or time of day in the tools' own format.
func (f *formats) isOwn(s string) bool {
	_, _, ok := rewrite(s, isoDate, f.dates)
	return ok || ownTime.MatchString(s)
}

// rewrite writes the date that a text is, or that it begins with if it is a moment, in another format.
// One of the formats is [isoDate].
func rewrite(s string, from, to dateFormat) (date, rest string, ok bool) {
	n := len(from.layout)
	if len(s) < n {
		return "", "", false
	}
	t, err := time.Parse(from.layout, s[:n])
	pattern := offeredRest
	if from.layout == isoDate.layout {
		pattern = ownRest
	}
	if err != nil || t.Format(from.layout) != s[:n] || s[n:] != "" && !pattern.MatchString(s[n:]) {
		return "", "", false
	}
	return t.Format(to.layout), s[n:], true
}

func swapTime(s string) (string, bool) {
	if m := ownTime.FindStringSubmatch(s); m != nil {
		var hour int
		_, _ = fmt.Sscan(strings.TrimPrefix(m[1], "0"), &hour) // "" leaves 0
		half := "AM"
		if hour >= 12 {
			half = "PM"
		}
		return fmt.Sprintf("%d:%s %s", (hour+11)%12+1, m[2], half), true
	}
	if m := offeredTime.FindStringSubmatch(s); m != nil {
		var hour int
		_, _ = fmt.Sscan(m[1], &hour)
		hour %= 12
		if m[3] == "PM" {
			hour += 12
		}
		return fmt.Sprintf("%02d:%s", hour, m[2]), true
	}
	return "", false
}

// note says how values of any parameter and field are written.
func (f *formats) note() string {
	return fmt.Sprintf("Dates are written as %s (%s) and times of day as 2:30 PM.", f.dates.named, f.dates.example)
}

var (
	namedDate = regexp.MustCompile(`(?i)\b(?:YYYY-MM-DD|ISO[- ]?8601)\b`)
	namedTime = regexp.MustCompile(`(?i)\bHH:MM(?::SS)?\b`)
	anyTime   = regexp.MustCompile(`\b(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d)?\b`)
	saidTime  = regexp.MustCompile(`\b(?:1[0-2]|[1-9]):[0-5]\d(?::[0-5]\d)? [AP]M\b`)
)

// described returns a description with the offered formats of dates and times.
func (f *formats) described(s string) string {
	s = namedDate.ReplaceAllLiteralString(s, f.dates.named)
	s = namedTime.ReplaceAllLiteralString(s, "h:MM AM/PM")
	return within(within(s, isoDate, f.dates), dateFormat{pattern: anyTime}, dateFormat{})
}

// said is the inverse for dates and times in what an agent says.
func (f *formats) said(s string) string {
	return within(within(s, f.dates, isoDate), dateFormat{pattern: saidTime}, dateFormat{})
}

// within rewrites the dates within a text that no digit is next to. Without a layout, it rewrites
// times.
func within(s string, from, to dateFormat) string {
	var b strings.Builder
	done := 0
	for _, at := range from.pattern.FindAllStringIndex(s, -1) {
		old := s[at[0]:at[1]]
		other, ok := swapTime(old)
		if from.layout != "" {
			other, _, ok = rewrite(old, from, to)
		}
		if ok && !digitAt(s, at[0]-1) && !digitAt(s, at[1]) {
			b.WriteString(s[done:at[0]] + other)
			done = at[1]
		}
	}
	return b.String() + s[done:]
}

func digitAt(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }
