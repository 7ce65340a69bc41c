package library

import (
	"fmt"

	"github.com/assay-eval/assay"
)

// suggest returns "; did you mean X?" with the valid word nearest to word, or "" if none is near.
func suggest(word string, valid []string) string {
	if near := assay.NearestName(word, valid); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}

// brief shortens a text that has names from a file.
func brief(text string) string {
	const most = 200
	if len(text) > most {
		return assay.Head(text, most) + "…"
	}
	return text
}
