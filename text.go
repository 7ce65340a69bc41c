package assay

import "unicode/utf8"

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
