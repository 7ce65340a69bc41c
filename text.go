package assay

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Counted words a number of things, such as "2 calls".
func Counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if strings.HasSuffix(thing, "s") {
		thing += "e"
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// Head returns the beginning of a text, at most n bytes, without a part of a character at its end.
func Head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:max(n, 0)]
}

// Tail returns the end of a text, at most n bytes, without a part of a character at its beginning.
func Tail(text string, n int) string {
	if len(text) <= n {
		return text
	}
	start := len(text) - max(n, 0)
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:]
}

// Visible returns a text in which everything that does not print is an escape, such as \x1b. Line
// breaks and tabs stay.
func Visible(text string) string {
	var b strings.Builder
	for i, r := range text {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case r == '\n' || r == '\t' || unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// The limits of messages, in bytes.
const (
	maxMessage = 1000
	maxHint    = 400
	maxLine    = 500
)

// Brief returns a visible message of at most 1 KB, with its hint.
func Brief(message string) string {
	body, hint, hinted := strings.Cut(message, "\nhint: ")
	if hinted {
		hint = fit("\nhint: "+hint, maxHint)
	}
	return fit(body, maxMessage-len(hint)) + hint
}

// fit shortens the lines of a text and leaves out the last ones.
func fit(text string, most int) string {
	const left = len("\n… and 1000000 more lines")
	var b strings.Builder
	rest := text
	for line := range strings.Lines(text) {
		shown := Visible(Head(line, maxLine))
		if len(line) > maxLine || len(shown) > maxLine {
			shown = Head(strings.TrimSuffix(shown, "\n"), maxLine-len("…\n")) + "…\n"
		}
		if b.Len()+len(shown)+left > most && b.Len() > 1 {
			fmt.Fprintf(&b, "… and %d more lines", strings.Count(strings.TrimSuffix(rest, "\n"), "\n")+1)
			return b.String()
		}
		b.WriteString(shown)
		rest = rest[len(line):]
	}
	if !strings.HasSuffix(text, "\n") {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return b.String()
}
