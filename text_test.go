package assay_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
)

// TestCutsKeepCharacters checks that both ends of a text are as long as they may be, and that they
// are valid.
func TestCutsKeepCharacters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("aé€😀"))).Draw(t, "text")
		n := rapid.IntRange(-1, len(text)+1).Draw(t, "n")
		head, tail := assay.Head(text, n), assay.Tail(text, n)
		if !strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
			t.Fatalf("Head %q, Tail %q", head, tail)
		}
		for _, part := range []string{head, tail} {
			longest := min(len(text), max(0, n))
			if len(part) > longest || len(part)+utf8.UTFMax <= longest || !utf8.ValidString(part) {
				t.Fatalf("%q is cut to %q, which has %d of %d bytes", text, part, len(part), n)
			}
		}
	})
}
