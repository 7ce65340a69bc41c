package validate

import (
	"context"

	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/world"
)

// mostCareless limits the tasks that [Careless] plays, because reports wait for it.
const mostCareless = 200

// Careless returns the tasks of a library whose tools users wrote that agents solve without reading
// them, with the reasons. It plays the first tasks only, if there are many, and none if each attempt
// would start a server.
func Careless(ctx context.Context, lib *library.Library) ([]string, error) {
	if !lib.Own() || lib.Catalog().Server() != nil {
		return nil, nil
	}
	v := newValidator(lib, world.OwnName)
	v.quick = true
	err := v.playAll(ctx)
	var found []string
	for _, f := range v.proof.Findings {
		if f.Doubt == NotDiscriminating || f.Doubt == SolvedByNothing {
			found = append(found, f.String())
		}
	}
	return found, err
}

// enough reports whether no further task is to be played.
func (v *validator) enough() bool { return v.quick && v.proof.Tasks >= mostCareless }
