package lane

import (
	"reflect"
	"testing"

	"github.com/assay-eval/assay"
)

// TestEveryLimitHasARow checks that each field of a limit can be reached by its name in files, and that
// the limits with a period stand together, the longest last.
func TestEveryLimitHasARow(t *testing.T) {
	t.Parallel()
	var l Limits
	fields := reflect.ValueOf(&l).Elem()
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Tag.Get("yaml")
		if got := l.Of(assay.Bucket(name)); got != fields.Field(i).Addr().Interface().(*int) {
			t.Errorf("the limit %s has no row of its own in rules, in limits.go", name)
		}
	}
	for b, r := range rules {
		periodic := b >= requestsPerSecond && b <= requestsPerDay
		if (r.per > 0) != periodic || (r.counts != nil) != periodic || r.per > rules[requestsPerDay].per || r.unit == "" {
			t.Errorf("the row of %s is incomplete, or its index is not among those with a period", r.bucket)
		}
	}
}
