package library

import (
	"fmt"

	"github.com/assay-eval/assay"
)

// suggest returns "; did you mean X?" with the valid word nearest to word, or "" if all are far.
func suggest(word string, valid []string) string {
	if near := assay.NearestName(word, valid); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// brief shortens a text that has names from a file, and shows characters that do not print.
func brief(text string) string {
	const most = 200
	shown := assay.Visible(assay.Head(text, most))
	if len(text) > most || len(shown) > most {
		shown = assay.Head(shown, most) + "…"
	}
	return shown
}
