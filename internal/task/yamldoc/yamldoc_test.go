package yamldoc_test

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/yamldoc"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

type file struct {
	Name  string `yaml:"name"`
	Seed  int    `yaml:"seed"`
	Parts []part `yaml:"parts"`
}

type part struct {
	Variants []string `yaml:"variants"`
	Parts    []part   `yaml:"parts"`
}

// TestUnknownFieldsAreAllNamed checks that one error names all unknown fields of a mapping, the first
// one first, every time.
func TestUnknownFieldsAreAllNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nmae: x\nseed: 1\nsede: 2\n": "f.yaml:1:1: unknown field \"nmae\"\n  1 | nmae: x\n    | ^\n" +
			"hint: did you mean name?\n" +
			`line 3 has an unknown field, too: "sede"; did you mean seed?`,
		"name: x\nparts:\n  - variants: [a]\n  - {variats: [b], parts: [{vriants: [c]}]}\n": "f.yaml:4:6: " +
			"unknown field \"variats\"",
		"parts: [{seed: 1}]\n": "f.yaml:1:10: unknown field \"seed\"\n  1 | parts: [{seed: 1}]\n" +
			"    |          ^\nhint: it is a field of another mapping of this file; move it there",
		"name: x\nparts: [{parts: [{vriants: [c]}]}]\n": "f.yaml:2:19: unknown field \"vriants\"",
	} {
		for range 20 { // the library reports any of them
			doc, err := yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{})
			if err != nil {
				t.Fatal(err)
			}
			if err := doc.Decode(new(file)); err == nil || !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("error = %v\nwant %s", err, want)
			}
		}
	}
}

// FuzzDecode checks that no file makes the reader panic, and that errors name the file.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		"", "name: x", "{", "a: [1, {b: c}]", "parts: [{parts: [{x: 1}]}]", "? [a]\n: b", "- a", "seed: 1.5",
	} {
		f.Add(seed)
	}
	for _, seed := range yamldoctest.YAML(2000) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{})
		if err == nil {
			err = doc.Decode(new(file))
		}
		if err == nil {
			return
		}
		if message := err.Error(); !strings.Contains(message, "f.yaml") || len(message) > 1024 {
			t.Errorf("error = %v", err)
		}
	})
}
