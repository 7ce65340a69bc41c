package nearest_test

import (
	"testing"

	"github.com/assay-eval/assay/internal/nearest"
)

func TestName(t *testing.T) {
	t.Parallel()
	known := []string{"models", "variants", "reliabilities", "name"}
	for typed, want := range map[string]string{
		"model": "models", "modles": "models", "Variants": "variants", "reliability": "reliabilities",
		"nmae": "name", "colour": "", "": "",
	} {
		if got := nearest.Name(typed, known); got != want {
			t.Errorf("Name(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestHint(t *testing.T) {
	t.Parallel()
	if got, want := nearest.Hint("modles", []string{"models"}), "did you mean models?"; got != want {
		t.Errorf("Hint() = %q, want %q", got, want)
	}
	if got, want := nearest.Hint("xyz", []string{"b", "a"}), "known are a, b"; got != want {
		t.Errorf("Hint() = %q, want %q", got, want)
	}
	if got := nearest.Hint("x", nil); got != "" {
		t.Errorf("Hint() = %q, want nothing", got)
	}
}
