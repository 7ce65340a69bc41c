package legacy_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/result/export"
	"github.com/assay-eval/assay/internal/result/legacy"
)

func TestMixed(t *testing.T) {
	t.Parallel()
	warm := .7
	for name, change := range map[string]func(*assay.Attempt){
		"world":         func(a *assay.Attempt) { a.World = "pilot" },
		"severity":      func(a *assay.Attempt) { a.Severity = "severe" },
		"protocol":      func(a *assay.Attempt) { a.Protocol = "tags" },
		"tools":         func(a *assay.Attempt) { a.Tools = "all" },
		"turn_limit":    func(a *assay.Attempt) { a.Setting.Turns = 20 },
		"call_limit":    func(a *assay.Attempt) { a.Calls = 20 },
		"sampling":      func(a *assay.Attempt) { a.Sampling.Temperature = &warm },
		"token_limit":   func(a *assay.Attempt) { a.Tokens = 9 },
		"cost_limit":    func(a *assay.Attempt) { a.USD = .5 },
		"several_calls": func(a *assay.Attempt) { a.SeveralCalls = assay.RefuseSeveral },
		"persistence":   func(a *assay.Attempt) { a.Persistence = .5 },
		"burst":         func(a *assay.Attempt) { a.Burst = .5 },
		"loops":         func(a *assay.Attempt) { a.Loops = "off" },
		"score_version": func(a *assay.Attempt) { a.ScoreVersion = "assay-1" },
		"reliability":   func(a *assay.Attempt) { a.Reliability = .80001 },
	} {
		cell := easy("flawed_missing_step")
		cell.Severity = "light"
		a, b := outcome("1", cell, assay.FullSuccess, ""), outcome("2", cell, assay.FullSuccess, "")
		change(&b)
		var out bytes.Buffer
		_, err := legacy.WriteV3(&out, all([]assay.Attempt{a, b}))
		var mixed *legacy.MixedError
		if !errors.As(err, &mixed) {
			t.Errorf("%s: error %v, want a MixedError", name, err)
			continue
		}
		if len(mixed.Varies) != 1 || mixed.Varies[0].Field != name ||
			len(mixed.Varies[0].Values) != 2 {
			t.Errorf("%s: varies %+v", name, mixed.Varies)
		}
		if !strings.Contains(err.Error(), name+" (") ||
			mixed.SameRules() != (name == "score_version") {
			t.Errorf("%s: error %q", name, err)
		}
		where, err := export.ParseWhere(mixed.Where())
		if err != nil || !where.Has(&a) || where.Has(&b) {
			t.Errorf("%s: %q does not select attempts that can be pooled: %v",
				name, mixed.Where(), err)
		}
		if out.Len() > 0 {
			t.Errorf("%s: %d bytes were written", name, out.Len())
		}
	}
}

// TestMixedWorlds checks that there is no hint to rescore if the worlds differ,
// because that would not make their rules equal.
func TestMixedWorlds(t *testing.T) {
	cell := easy("cot")
	a, b := outcome("1", cell, assay.FullSuccess, ""), outcome("2", cell, assay.FullSuccess, "")
	b.World, b.ScoreVersion = "pilot", "pilot-9"
	_, err := legacy.WriteV3(io.Discard, all([]assay.Attempt{a, b}))
	var mixed *legacy.MixedError
	if !errors.As(err, &mixed) || !strings.Contains(err.Error(), "score_version (") ||
		mixed.SameRules() {
		t.Errorf("error %v", err)
	}
}

// TestMixedWhere checks that the attempts that the error suggests to select can
// be written and include the first one.
func TestMixedWhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var attempts []assay.Attempt
		for i := range rapid.IntRange(1, 12).Draw(t, "attempts") {
			a := outcome(fmt.Sprint(i), easy("v"), assay.FullSuccess, "")
			a.Severity = rapid.SampledFrom([]string{"", "light", "severe"}).Draw(t, "severity")
			a.Reliability = rapid.SampledFrom([]float64{.8, .80001, .800012, .9}).Draw(t,
				"reliability")
			a.SeveralCalls = rapid.SampledFrom([]string{"", assay.RefuseSeveral}).Draw(t, "several")
			a.Loops = rapid.SampledFrom([]string{"", "none", "repeat=3 search=3!"}).Draw(t, "loops")
			warm, most := .7, 10
			a.Sampling = rapid.SampledFrom([]assay.Sampling{
				{},
				{Temperature: &warm},
				{Temperature: &warm, MaxTokens: &most},
			}).Draw(t, "sampling")
			attempts = append(attempts, a)
		}
		_, err := legacy.WriteV3(io.Discard, all(attempts))
		var mixed *legacy.MixedError
		if !errors.As(err, &mixed) {
			return
		}
		where, err := export.ParseWhere(mixed.Where())
		if err != nil || !where.Has(&attempts[0]) {
			t.Fatalf("%q: %v", mixed.Where(), err)
		}
		chosen := slices.DeleteFunc(slices.Clone(attempts),
			func(a assay.Attempt) bool { return !where.Has(&a) })
		if n, err := legacy.WriteV3(io.Discard, all(chosen)); err != nil || n != len(chosen) {
			t.Fatalf("%q: %d of %d trials, %v", mixed.Where(), n, len(chosen), err)
		}
	})
}

// TestNotMixed checks that attempts that belong together can be written
// together.
func TestNotMixed(t *testing.T) {
	t.Parallel()
	plain := easy("optimal")
	flawed := plain
	flawed.Variant, flawed.Severity = "flawed_missing_step", "light"
	a, b := outcome("1", plain, assay.FullSuccess, ""), outcome("2", flawed, assay.FullSuccess, "")
	c := outcome("3", plain, assay.FullSuccess, "")
	warm, same := .7, .7
	a.Sampling.Temperature, b.Sampling.Temperature, c.Sampling.Temperature = &warm, &same, &warm
	c.Repeat = 2
	if got := len(read(t, written(t, []assay.Attempt{a, b, c})).Aggregates); got != 2 {
		t.Errorf("%d leaves, want 2", got)
	}
	// A fault does not count, even if its setting differs.
	fault := outcome("4", plain, "", "")
	fault.World, fault.FaultKind = "pilot", assay.FaultKinds[0]
	written(t, []assay.Attempt{a, b, c, fault})
}
