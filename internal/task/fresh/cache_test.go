package fresh_test

import (
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/fresh"
)

// TestPhrasingsAreSafeForConcurrentUse asks one grammar from several goroutines. It is what the race
// detector sees of this package, because all else computes in one goroutine.
func TestPhrasingsAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	g, alone := fresh.New("1"), fresh.New("1")
	all, err := g.Tasks(2)
	if err != nil {
		t.Fatal(err)
	}
	var ids []assay.TaskID
	for task := range all {
		ids = append(ids, task.ID)
	}
	var wg sync.WaitGroup
	for _, id := range slices.Compact(ids) {
		want := alone.Phrasings(id)
		for range 2 {
			wg.Go(func() {
				if diff := cmp.Diff(want, g.Phrasings(id)); len(want) == 0 || diff != "" {
					t.Errorf("%s: %s", id, diff)
				}
			})
		}
	}
	wg.Wait()
}
