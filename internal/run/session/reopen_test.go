package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/experiment/job"
	"github.com/assay-eval/assay/internal/experiment/plan"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/store"
)

// oddExperiment draws an experiment file with the odd values that files may have. Some are refused.
func oddExperiment(t *rapid.T) string {
	of := func(what string, all ...string) string { return rapid.SampledFrom(all).Draw(t, what) }
	share := func(what string) string {
		return of(what, "0", "-0", "-0.0", "-.0", "-1e-400", "1e-320", "5e-324", "0.1", "1e-7", "0.30000000000000004",
			".5", "1", "1.0", "+1", "0.99999999999999999", "010", "1e400", "~", "\"-0.0\"")
	}
	text := func(what string) string {
		return of(what, "a", "1.10", "-0.0", "007", "\"a b\"", "\"a\\tb\"", "\"a\\u0000b\"", "\"é\\U0001F600\"", "\"\\uFFFE\"",
			"\"'\\\"\\\\\"", "2024-01-01", "yes", "null", "\" a\"", "\"\\u202E\"", "1e400", "\"\"", "\"e\\u0301\"")
	}
	whole := func(what string) string {
		return of(what, "1", "+2", "2.0", "1e0", "0", "-0", "001", "9223372036854775807")
	}
	var b strings.Builder
	maybe := func(format string, value func(string) string) {
		if rapid.IntRange(0, 5).Draw(t, "has "+format) == 5 {
			fmt.Fprintf(&b, format+"\n", value(format))
		}
	}
	b.WriteString("variants: [optimal]\ntask_types: [simple_task]\ntasks_per_type: 1\n")
	maybe("reliabilities: [%s]", share)
	maybe("repeats: %s", whole)
	maybe("seed: %s", func(string) string {
		return of("seed", "0", "-0", "-1", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1e18")
	})
	if rapid.Bool().Draw(t, "failures") {
		b.WriteString("failures:\n  burst: 0\n")
		maybe("  persistence: %s", share)
		maybe("  kinds: {before: 1, after: %s}", share)
	}
	if rapid.Bool().Draw(t, "limits") {
		b.WriteString("limits:\n  turns: 12\n")
		maybe("  tokens: %s", whole)
		maybe("  usd: %s", share)
		maybe("  trial: %s", func(string) string { return of("trial", "1e3s", "10m", "010m", "1h0m0.5s", "2540400h10m10s") })
	}
	model := "sim/mute"
	fmt.Fprintf(&b, "models:\n- name: %s\n", model)
	maybe("  temperature: %s", share)
	maybe("  top_p: %s", share)
	maybe("  seed: %s", whole)
	maybe("  revision: %s", text)
	maybe("  label: %s", text)
	maybe("  extra: {x: %s}", share)
	maybe("  extra: {x: [null, {%s: 1}]}", text)
	return b.String()
}

// TestWhatIsStoredCanBeOpened checks that what a run accepted and stored can always be read again:
// the store is undamaged, and the next run finds every trial of its file done.
func TestWhatIsStoredCanBeOpened(t *testing.T) {
	t.Parallel()
	n := 120
	if testing.Short() {
		n = 30
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "s.db")
	db, err := store.Open(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	open := func(i int, text string) *job.Job {
		file := filepath.Join(dir, fmt.Sprintf("e%d.yaml", i))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		e, err := plan.Load(file)
		if err != nil {
			return nil
		}
		j, err := job.Open(t.Context(), e, 2)
		if err != nil {
			return nil
		}
		t.Cleanup(func() { _ = j.Close() })
		return j
	}
	run := func(j *job.Job, text string) *session.Summary {
		s, err := session.New(j, session.Options{
			Store: path, Program: "test", Host: "here", Display: new(recorder), Env: os.LookupEnv,
		})
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		sum, err := s.Run(t.Context(), db)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		return sum
	}
	files := rapid.Custom(oddExperiment)
	var accepted []int
	for i := range n {
		text := files.Example(i)
		if j := open(i, text); j != nil {
			accepted = append(accepted, i)
			if sum := run(j, text); sum.Unfinished() != 0 {
				t.Errorf("%d unfinished\n%s", sum.Unfinished(), text)
			}
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if db, err = store.Open(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	clean := func(*store.Stored) []store.Problem { return nil }
	found := func(p store.Problem) { t.Error(p) }
	if _, err := db.Verify(t.Context(), clean, found, func(int, int) {}); err != nil {
		t.Fatal(err)
	}
	for _, i := range accepted {
		if sum := run(open(i, files.Example(i)), files.Example(i)); sum.Requests > 0 {
			t.Errorf("the next run has %d requests\n%s", sum.Requests, files.Example(i))
		}
	}
	if len(accepted) < n/10 || len(accepted) == n {
		t.Errorf("%d of %d files are accepted", len(accepted), n)
	}
}
