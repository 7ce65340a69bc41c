package assay_test

import (
	"testing"

	"github.com/assay-eval/assay"
)

func TestNearestName(t *testing.T) {
	t.Parallel()
	known := []string{"models", "variants", "reliabilities", "name"}
	for typed, want := range map[string]string{
		"model": "models", "modles": "models", "Variants": "variants",
		"reliability": "reliabilities",
		"nmae":        "name", "colour": "", "": "",
	} {
		if got := assay.NearestName(typed, known); got != want {
			t.Errorf("Name(%q) = %q, want %q", typed, got, want)
		}
	}
}

func TestNameHint(t *testing.T) {
	t.Parallel()
	if got, want := assay.NameHint("modles", []string{"models"}), "did you mean models?"; got != want {
		t.Errorf("Hint() = %q, want %q", got, want)
	}
	if got, want := assay.NameHint("xyz", []string{"b", "a"}), "known are a, b"; got != want {
		t.Errorf("Hint() = %q, want %q", got, want)
	}
	if got := assay.NameHint("x", nil); got != "" {
		t.Errorf("Hint() = %q, want nothing", got)
	}
}
