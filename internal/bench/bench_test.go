package bench_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/bench"
)

func TestWriteText(t *testing.T) {
	t.Parallel()
	r := bench.Report{Program: "v1", System: "linux/amd64", Cores: 2, Rows: []bench.Row{
		bench.Row{Number: "1", What: "calls a second", Unit: bench.PerSecond, Value: 2165.4}.Beside(5242),
		bench.Row{Number: "1", What: "share", Unit: bench.Share, Value: 0.413}.AtLeast(0.5),
		bench.Row{Number: "3", What: "first request", Unit: bench.Seconds, Value: 0.0794}.Below(5).Because("of %d trials", 7),
		bench.Row{Number: "3", What: "memory", Unit: bench.Megabytes, Value: 499.96}.Below(500),
		bench.Row{Number: "5", What: "lost", Value: 0}.None(),
		bench.Row{Number: "5", What: "doubled", Value: 2}.None(),
	}}
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `
                   value    bare client  aim
1  calls a second  2165/s   5242/s
1  share           41.3 %                ≥ 50 %    missed
3  first request   0.079 s               < 5 s     reached
3  memory          500 MB                < 500 MB  reached
5  lost            0                     = 0       reached
5  doubled         2                     = 0       missed

3, first request: of 7 trials

assay v1 on linux/amd64, 2 cores
`
	var got strings.Builder
	got.WriteString("\n")
	for line := range strings.Lines(b.String()) {
		got.WriteString(strings.TrimRight(line, " \n") + "\n")
	}
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestRowAsJSON: a figure of zero and an aim that was missed are there.
func TestRowAsJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(bench.Row{Number: "2a", What: "w", Unit: bench.Share}.Beside(0).AtLeast(0.85))
	if err != nil {
		t.Fatal(err)
	}
	want := `{"number":"2a","what":"w","value":0,"unit":"share","limit":0,"aim":{"relation":"≥","bound":0.85,"reached":false}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAims(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		row  bench.Row
		want bool
	}{
		{bench.Row{Value: 0.5}.AtLeast(0.5), true},
		{bench.Row{Value: 0.49}.AtLeast(0.5), false},
		{bench.Row{Value: 5}.Below(5), false},
		{bench.Row{Value: 4.9}.Below(5), true},
		{bench.Row{}.None(), true},
		{bench.Row{Value: 1}.None(), false},
		{bench.Row{Value: -1}.None(), false},
	} {
		if tc.row.Aim.Reached != tc.want {
			t.Errorf("%v %s %v: reached is %v, want %v", tc.row.Value, tc.row.Aim.Relation, tc.row.Aim.Bound, tc.row.Aim.Reached, tc.want)
		}
	}
}
