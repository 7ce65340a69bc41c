package own

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// within reports whether an answer has a text, in whatever case. If the text is a number, one of the
// answer's numbers has its value: "40" is in "40 euros", "€40." and "40.00", but not in "140",
// "-40", "40.5" or "40,000". Otherwise, the text is there as it is written, and no number in it is
// a part of another one.
func within(answer, text string) bool {
	answer, text = plainMinus(answer), strings.TrimSpace(plainMinus(text))
	if isNumber.MatchString(text) && strings.ContainsAny(text, "0123456789") {
		return slices.Contains(numbers(answer), numbers(text)[0])
	}
	for at := 0; ; at++ {
		i := strings.Index(answer[at:], text)
		if i < 0 {
			return false
		}
		at += i
		if !continues(answer[:at], text) && !continues(text, answer[at+len(text):]) {
			return true
		}
	}
}

// plainMinus returns a text in lower case with the usual sign for a minus.
func plainMinus(text string) string {
	return strings.ReplaceAll(strings.ToLower(text), "\u2212", "-")
}

// A number has its thousands apart by commas, apostrophes or narrow spaces, or not at all. After a
// point, three digits may be thousands, too, so they are compared as they are written.
var (
	isNumber = regexp.MustCompile(`^[-+]?(\d+|\d{1,3}(,\d{3})+)?(\.\d+)?$`)
	// digits matches a number, or several that only commas separate.
	digits    = regexp.MustCompile(`\d+([.,'_\x{a0}\x{2009}\x{202f}]\d+)*(e[-+]?\d+)?`)
	groups    = regexp.MustCompile(`^\d{1,3}([,'_\x{a0}\x{2009}\x{202f}]\d{3})+(\.\d+)?$`)
	one       = regexp.MustCompile(`^\d+(\.\d+)?$`)
	separator = regexp.MustCompile(`[,'_\x{a0}\x{2009}\x{202f}]`)
)

// numbers returns the numbers in a text, each in the spelling that all of its spellings share.
func numbers(text string) (all []string) {
	for _, at := range digits.FindAllStringIndex(text, -1) {
		run, before := text[at[0]:at[1]], text[:at[0]]
		if rest, ok := strings.CutSuffix(before, "."); ok && startsNumber(rest) {
			run, before = "0."+run, rest
		}
		sign := ""
		if negative(before) {
			sign = "-"
		}
		if groups.MatchString(run) {
			run = separator.ReplaceAllString(run, "")
		}
		for _, part := range strings.Split(run, ",") {
			if one.MatchString(part) {
				all = append(all, sign+shortest(part))
			}
			sign = ""
		}
	}
	return all
}

// shortest drops zeros behind the point. A number with zeros in front is a code, and stays as it is.
func shortest(number string) string {
	whole, fraction, _ := strings.Cut(number, ".")
	if len(fraction) == 3 && len(whole) <= 3 && whole != "0" {
		return number
	}
	if fraction = strings.TrimRight(fraction, "0"); fraction == "" {
		return whole
	}
	return whole + "." + fraction
}

// startsNumber reports whether a point behind a text begins a number.
func startsNumber(before string) bool {
	last, _ := utf8.DecodeLastRuneInString(before)
	return before == "" || unicode.IsSpace(last) || unicode.Is(unicode.Sc, last) || strings.ContainsRune("-–+(", last)
}

// negative reports whether a number behind a text has a minus, perhaps before the sign of a
// currency. A hyphen joins the number to a word or another number.
func negative(before string) bool {
	before = strings.TrimRightFunc(before, func(r rune) bool { return unicode.Is(unicode.Sc, r) })
	last, size := utf8.DecodeLastRuneInString(before)
	if last != '-' && last != '–' {
		return false
	}
	joined, _ := utf8.DecodeLastRuneInString(before[:len(before)-size])
	return !wordRune(joined) && joined != '-'
}

var (
	endsInDigit     = regexp.MustCompile(`\d\.?$`)
	beginsWithDigit = regexp.MustCompile(`^\.?\d`)
	endsInGroup     = regexp.MustCompile(`\d[,'_\x{a0}\x{2009}\x{202f}]?$`)
	beginsWithGroup = regexp.MustCompile(`^[,'_\x{a0}\x{2009}\x{202f}]?\d{3}(?:\D|$)`)
	beginsWithMoney = regexp.MustCompile(`^\p{Sc}*\.?\d`)
	nothingMore     = regexp.MustCompile(`^\.00?(?:\D|$)`)
)

// continues reports whether a number goes on from one text to the next. A comma separates three
// digits of a number, or the numbers of a list.
func continues(a, b string) bool {
	return endsInDigit.MatchString(a) && beginsWithDigit.MatchString(b) && !nothingMore.MatchString(b) ||
		endsInGroup.MatchString(a) && beginsWithGroup.MatchString(b) ||
		negative(a) && beginsWithMoney.MatchString(b)
}
