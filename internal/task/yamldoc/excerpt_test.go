package yamldoc_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// TestExcerptsAreShort checks that an error has few short lines, however long the line of the file
// is, and that the caret is below the character that it points at.
func TestExcerptsAreShort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		before := strings.Repeat("ä", rapid.IntRange(0, 400).Draw(t, "before"))
		after := strings.Repeat("b", rapid.IntRange(0, 400).Draw(t, "after"))
		e := &yamldoc.Error{
			File: "f", Line: 7, Column: utf8.RuneCountInString(before) + 1,
			Message: strings.Repeat("m", rapid.IntRange(0, 900).Draw(t, "message")),
			Excerpt: before + "X" + after,
		}
		lines := strings.Split(e.Error(), "\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines: %s", len(lines), e)
		}
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > 450 {
				t.Fatalf("a line has %d characters: %s", n, line)
			}
		}
		excerpt, caret := []rune(lines[1]), []rune(lines[2])
		if len(excerpt) > 130 || excerpt[len(caret)-1] != 'X' {
			t.Fatalf("%s", e)
		}
	})
}
