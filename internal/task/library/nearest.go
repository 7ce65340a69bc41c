package library

import (
	"fmt"

	"github.com/assay-eval/assay/internal/nearest"
)

// suggest returns "; did you mean X?" with the valid word that is nearest to
// word, or nothing where none is near.
func suggest(word string, valid []string) string {
	if near := nearest.Name(word, valid); near != "" {
		return fmt.Sprintf("; did you mean %s?", near)
	}
	return ""
}
