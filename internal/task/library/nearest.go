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
