package legacy_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/assay-eval/assay/internal/result/legacy"
)

const realFile = "../../../../shared/data/legacy/master_database_2025-08-30.json"

func realBytes(t *testing.T) []byte {
	t.Helper()
	data, err := os.ReadFile(realFile)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the original's database is not at %s", realFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestRealRules(t *testing.T) {
	t.Parallel()
	db := read(t, string(realBytes(t)))
	rules := make(map[string]int)
	for _, a := range db.Aggregates {
		rules[fmt.Sprint(a.Rule, " usable ", a.Usable)]++
	}
	if diff := cmp.Diff(map[string]int{
		"as_stored usable true": 175, "as_stored usable false": 1, "doubled usable true": 81,
		"partly_doubled usable true": 8, "perhaps_doubled usable true": 106,
	}, rules); diff != "" {
		t.Errorf("leaves by rule (-want +got):\n%s", diff)
	}
}

// TestRealTable compares corrected counts with a re-analysis of the original's
// database that was made by hand. It has full/partial success in percent and,
// in brackets, the number of tests, pooled over task types, at the rate 0.8.
func TestRealTable(t *testing.T) {
	t.Parallel()
	db := read(t, string(realBytes(t)))
	pooled := make(map[string]legacy.Counts)
	for _, a := range db.Aggregates {
		if c, ok := a.Counts(); ok && a.Rate == "0.8" {
			k := a.Model + " " + a.Difficulty + " " + a.Variant
			sum := pooled[k]
			sum.Add(c)
			pooled[k] = sum
		}
	}
	want := make(map[string]string)
	fill := func(difficulty string, variants []string, table string) {
		for line := range strings.Lines(strings.TrimSpace(table)) {
			cells := strings.Split(strings.TrimSpace(line), " | ")
			for i, v := range variants {
				want[cells[0]+" "+difficulty+" "+v] = cells[i+1]
			}
		}
	}
	fill("easy", []string{
		"flawed_sequence_disorder", "flawed_tool_misuse", "flawed_parameter_error",
		"flawed_missing_step",
		"flawed_redundant_operations", "flawed_logical_inconsistency", "flawed_semantic_drift",
	}, `
DeepSeek-V3-0324 | 28.0/71.0 (100) | 3.8/93.3 (105) | 52.6/47.4 (152) | 52.5/46.5 (198) | 3.0/95.5 (198) | 48.5/51.5 (198) | 50.5/49.5 (198)
DeepSeek-R1-0528 | 19.5/78.5 (195) | 2.5/93.9 (197) | 40.4/59.6 (198) | 47.0/51.0 (198) | 3.0/96.0 (198) | 46.0/53.0 (100) | 33.0/66.0 (100)
Llama-3.3-70B-Instruct | 23.0/70.0 (100) | 4.0/90.9 (99) | 36.7/60.1 (158) | 47.0/50.0 (100) | 3.0/87.0 (100) | 28.0/61.0 (100) | 38.0/56.0 (100)
qwen2.5-3b-instruct | 0.0/0.0 (198) | 0.0/9.8 (102) | 0.0/8.8 (102) | 0.0/4.2 (96) | 0.0/20.6 (97) | 0.0/9.4 (96) | 0.0/8.1 (111)
qwen2.5-7b-instruct | 0.0/11.6 (129) | 0.0/1.0 (99) | 0.0/10.1 (99) | 0.0/13.1 (99) | 0.0/0.0 (142) | 0.0/8.3 (108) | 0.0/18.8 (80)
qwen2.5-14b-instruct | 0.0/11.9 (42) | 0.0/1.0 (99) | 1.0/10.1 (99) | 1.0/2.0 (99) | 0.0/6.1 (99) | 2.0/8.1 (99) | 0.0/5.1 (99)
qwen2.5-32b-instruct | 0.0/0.0 (42) | 0.0/2.0 (99) | 0.0/1.0 (99) | 0.0/1.0 (99) | 0.0/0.0 (99) | 0.0/2.0 (99) | 0.0/0.0 (108)
qwen2.5-72b-instruct | 0.0/0.0 (198) | 0.0/0.0 (102) | 0.0/0.0 (99) | 0.0/0.0 (114) | 0.0/0.0 (141) | 0.0/0.0 (114) | 0.0/0.0 (108)
`)
	scale := []string{"optimal"}
	fill("very_easy", scale, `
qwen2.5-3b-instruct | 0.0/8.6 (162)
qwen2.5-7b-instruct | 0.0/6.0 (200)
qwen2.5-14b-instruct | 1.2/6.2 (160)
qwen2.5-32b-instruct | 0.0/0.0 (85)
qwen2.5-72b-instruct | 0.0/0.0 (129)
`)
	fill("medium", scale, `
qwen2.5-3b-instruct | 0.0/15.3 (177)
qwen2.5-7b-instruct | 0.0/1.0 (199)
qwen2.5-14b-instruct | 0.0/7.0 (200)
qwen2.5-32b-instruct | 0.0/4.0 (200)
qwen2.5-72b-instruct | 0.0/0.0 (199)
`)
	// The re-analysed file is a later version of this one, in which these tests
	// had been repeated and others added. It has 54.1/44.3 (185) in the first
	// line, 47.5/51.5 (198) in the second, 27.3/69.7 (198) in the third, then
	// 8.7 (69), 6.1 (99), 7.1 (99), 0 (99) and 0 (99).
	fill("easy", scale, `
DeepSeek-V3-0324 | 57.5/42.5 (174)
DeepSeek-R1-0528 | 16.2/31.3 (198)
Llama-3.3-70B-Instruct | 36.1/61.7 (180)
qwen2.5-3b-instruct | 0.0/17.0 (153)
qwen2.5-7b-instruct | 0.0/2.8 (144)
qwen2.5-14b-instruct | 0.0/6.9 (144)
qwen2.5-32b-instruct | 0.0/2.1 (144)
qwen2.5-72b-instruct | 0.0/0.0 (145)
`)
	got := make(map[string]string)
	for k, c := range pooled {
		n := float64(c.Total)
		got[k] = fmt.Sprintf("%.1f/%.1f (%d)",
			100*float64(c.Full)/n, 100*float64(c.Partial)/n, c.Total)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("full/partial (n) by model, difficulty and prompt (-want +got):\n%s", diff)
	}
}

// TestRealLeavesAreKept checks that no result is invented or moved. Every leaf of
// the file is read once with its stored counts, and corrected counts repeat the
// counters that had one writer.
func TestRealLeavesAreKept(t *testing.T) {
	t.Parallel()
	data := realBytes(t)
	db := read(t, string(data))
	var file any
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]bool)
	for _, a := range db.Aggregates {
		var raw map[string]any
		if err := json.Unmarshal(a.Leaf, &raw); err != nil {
			t.Fatal(err)
		}
		path := strings.Join([]string{a.Model, a.Variant, a.Rate, a.Difficulty, a.TaskType}, "/")
		if seen[path] {
			t.Errorf("%s: read twice", path)
		}
		seen[path] = true
		if diff := cmp.Diff(leafAt(file, a), any(raw)); diff != "" {
			t.Errorf("%s (-file +leaf):\n%s", path, diff)
		}
		for name, got := range map[string]int{
			"total": a.Stored.Total, "success": a.Stored.Success,
			"failed": a.Stored.Failed, "total_errors": a.Stored.Errors,
		} {
			if want := raw[name]; float64(got) != want {
				t.Errorf("%s: stored %s is %d, want %v", path, name, got, want)
			}
		}
		c := a.Corrected
		if c != nil &&
			(c.Full != a.Stored.Full || c.Partial != a.Stored.Partial ||
				c.Errors != a.Stored.Errors || c.Total >= a.Stored.Total) {
			t.Errorf("%s: corrected %+v, stored %+v", path, *c, a.Stored)
		}
		if c, ok := a.Counts(); ok &&
			(c.Total != c.Success+c.Failed || c.Success != c.Full+c.Partial ||
				c.Total != c.Full+c.Errors) {
			t.Errorf("%s: the usable counts contradict each other: %+v", path, c)
		}
	}
	if len(seen) != 371 {
		t.Errorf("%d leaves, want 371", len(seen))
	}
}

func TestRealJSON(t *testing.T) {
	t.Parallel()
	checkJSON(t, read(t, string(realBytes(t))))
}

// checkJSON checks that a database survives encoding as JSON.
func checkJSON(t testing.TB, db *legacy.Database) {
	t.Helper()
	first, err := json.Marshal(db)
	if err != nil {
		t.Fatal(err)
	}
	var back legacy.Database
	if err := json.Unmarshal(first, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(db, &back); diff != "" {
		t.Errorf("after JSON (-want +got):\n%s", diff)
	}
	again, err := json.Marshal(&back)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, again) {
		t.Error("the same database gave two JSON texts")
	}
}

// leafAt returns the leaf of an aggregate in a decoded file.
func leafAt(file any, a legacy.Aggregate) any {
	for _, key := range []string{
		"models", a.Model, "by_prompt_type", a.Variant, "by_tool_success_rate", a.Rate,
		"by_difficulty", a.Difficulty, "by_task_type", a.TaskType,
	} {
		file = file.(map[string]any)[key]
	}
	return file
}
