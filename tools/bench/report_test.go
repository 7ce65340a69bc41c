package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWriteText(t *testing.T) {
	t.Parallel()
	r := report{Program: "v1", System: "linux/amd64", Cores: 2, Rows: []row{
		row{Number: "1", What: "calls", Unit: perSecond, Value: 2165.4}.beside(5242),
		row{Number: "1", What: "share", Unit: share, Value: 0.413}.atLeast(0.5),
		row{Number: "3", What: "first request", Unit: seconds, Value: 0.0794}.
			below(5).because("of %d trials", 7),
		row{Number: "3", What: "memory", Unit: megabytes, Value: 499.96}.below(500),
		row{Number: "5", What: "lost", Value: 0}.zero(),
		row{Number: "5", What: "duplicated", Value: 2}.zero(),
	}}
	var b strings.Builder
	if err := r.writeText(&b); err != nil {
		t.Fatal(err)
	}
	want := `
                  value    bare client  target
1  calls          2165/s   5242/s
1  share          41.3 %                ≥ 50 %    missed
3  first request  0.079 s               < 5 s     reached
3  memory         500 MB                < 500 MB  reached
5  lost           0                     = 0       reached
5  duplicated     2                     = 0       missed

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

func TestRowJSONKeepsZeroAndFalse(t *testing.T) {
	t.Parallel()
	r := row{Number: "2a", What: "w", Unit: share}.beside(0).atLeast(0.85)
	got, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"number":"2a","what":"w","value":0,"unit":"share","limit":0,` +
		`"aim":{"relation":"≥","bound":0.85,"reached":false}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestAims(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		row  row
		want bool
	}{
		{row{Value: 0.5}.atLeast(0.5), true},
		{row{Value: 0.49}.atLeast(0.5), false},
		{row{Value: 5}.below(5), false},
		{row{Value: 4.9}.below(5), true},
		{row{}.zero(), true},
		{row{Value: 1}.zero(), false},
		{row{Value: -1}.zero(), false},
	} {
		name := fmt.Sprint(tc.row.Value, tc.row.Aim.Relation, tc.row.Aim.Bound)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.row.Aim.Reached != tc.want {
				t.Errorf("reached is %v, want %v", tc.row.Aim.Reached, tc.want)
			}
		})
	}
}
