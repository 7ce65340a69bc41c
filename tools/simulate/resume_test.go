package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestRecordGoesOn checks that a simulation that was killed in the middle of a line has the worlds before it,
// and that worlds of another program are not among them.
func TestRecordGoesOn(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "worlds.jsonl")
	var want []uint64
	for seed := uint64(7); seed < 10; seed++ {
		k, known, err := openRecord(path)
		if err != nil {
			t.Fatal(err)
		}
		var got []uint64
		for _, r := range known {
			got = append(got, r.Seed)
			if r.Requests != 1000 || len(r.Wrong) != int(r.Seed%2) {
				t.Errorf("seed %d became %+v", r.Seed, r)
			}
		}
		if !slices.Equal(got, want) {
			t.Fatalf("the file has the seeds %v, want %v", got, want)
		}
		r := &result{Seed: seed, Requests: 1000, Story: []string{"long"}, Wrong: make([]string, seed%2)}
		if err := k.add(r); err != nil {
			t.Fatal(err)
		}
		if _, err := k.file.WriteString(`{"seed":99`); err != nil {
			t.Fatal(err)
		}
		if err := k.file.Close(); err != nil {
			t.Fatal(err)
		}
		want = append(want, seed)
	}
	for _, text := range []string{`{"program":"0123"}` + "\n", "no record, and no end of a line"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _, err := openRecord(path)
		if left, _ := os.ReadFile(path); err == nil || string(left) != text {
			t.Errorf("%q is taken for a record, and became %q", text, left)
		}
	}
}
