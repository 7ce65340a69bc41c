package export

import (
	"fmt"
	"slices"
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/nearest"
)

// A Where chooses attempts by their fields. The zero value chooses all.
type Where struct {
	terms []term
}

type term struct {
	column column[assay.Attempt]
	not    bool
	values []string
}

// ParseWhere reads conditions of the form FIELD=VALUE or FIELD!=VALUE, of which all
// have to hold. A value may be several, with commas between them, of which one has to
// fit. Fields are those of [Columns], and values as in CSV.
func ParseWhere(conditions []string) (w Where, err error) {
	for _, text := range conditions {
		name, value, ok := strings.Cut(text, "=")
		if !ok {
			return Where{}, fmt.Errorf("%q is no condition\nhint: write FIELD=VALUE, such as model=gpt-4o or level=failure,partial_success, or FIELD!=VALUE", text)
		}
		t := term{not: strings.HasSuffix(name, "!"), values: strings.Split(value, ",")}
		name = strings.TrimSuffix(name, "!")
		at := slices.IndexFunc(attemptColumns, func(c column[assay.Attempt]) bool { return c.name == name })
		if at < 0 {
			err := fmt.Errorf("no field is named %q", name)
			if hint := nearest.Hint(name, Columns()); hint != "" {
				err = fmt.Errorf("%w\nhint: %s", err, hint)
			}
			return Where{}, err
		}
		t.column = attemptColumns[at]
		w.terms = append(w.terms, t)
	}
	return w, nil
}

// Has tells whether an attempt is chosen.
func (w Where) Has(a *assay.Attempt) bool {
	for _, t := range w.terms {
		text, err := t.column.get(a)
		if err != nil || slices.Contains(t.values, text) == t.not {
			return false
		}
	}
	return true
}
