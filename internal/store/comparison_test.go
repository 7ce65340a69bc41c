package store_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/store"
)

// TestComparisonsAreImports checks that a comparison of a judge is found among other imports, and in a copy
// of its store.
func TestComparisonsAreImports(t *testing.T) {
	t.Parallel()
	db, path := create(t)
	want := []store.Comparison{{Judge: "m", Prompt: "p", Labels: 40, Agreed: 31}, {Judge: "m", Prompt: "q", Labels: 2}}
	for i, body := range []any{want[0], []int{1}, want[1]} {
		text, err := json.Marshal(body)
		must(t, err)
		kind := store.JudgeAgreement
		if i == 1 {
			kind = "another"
		}
		must(t, db.Import(t.Context(), store.Import{
			Kind: kind, Name: "labels.csv", SHA256: fmt.Sprintf("%064d", i), At: time.Now().UTC(), Body: text,
		}))
	}
	copied := openReadOnly(t, path)
	for name, db := range map[string]*store.DB{"store": db, "reopened": copied} {
		got, err := db.Comparisons(t.Context())
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
