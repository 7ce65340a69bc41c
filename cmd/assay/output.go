package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/assay-eval/assay"
)

// sanitize replaces every character that a terminal would obey, and line ends.
func sanitize(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// A sanitizedError has a sanitized message with the same lines.
type sanitizedError struct{ error }

func (e sanitizedError) Unwrap() error { return e.error }

func (e sanitizedError) Error() string {
	lines := strings.Split(e.error.Error(), "\n")
	for i, line := range lines {
		lines[i] = sanitize(line)
	}
	return strings.Join(lines, "\n")
}

// unread returns a phrase with the number of unreadable attempts, or "" for 0.
func unread(n int) string {
	if n == 0 {
		return ""
	}
	return assay.Counted(n, "attempt") + " cannot be read or proved"
}

// firstOf returns the first items of a long list, and writes how long the list is.
func firstOf[T any](b *strings.Builder, all []T, what string) []T {
	const most = 20
	if len(all) <= most {
		return all
	}
	fmt.Fprintf(b, "%d %s; --json lists all\n", len(all), what)
	return all[:most]
}

// print prints a result as JSON or as text.
func (p *process) print(asJSON bool, result fmt.Stringer) error {
	return p.either(asJSON, result, func() { fmt.Fprint(p.out, result) })
}

// either prints a result as JSON, or else calls text, which prints it as text. [run] reports errors
// of writing.
func (p *process) either(asJSON bool, result any, text func()) error {
	if asJSON {
		return json.NewEncoder(p.out).Encode(result)
	}
	text()
	return nil
}
