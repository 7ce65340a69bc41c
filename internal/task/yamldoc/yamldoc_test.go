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

// FuzzDecode checks that no file makes the reader panic, and that errors have a place.
func FuzzDecode(f *testing.F) {
	seeds := []string{
		"", "name: x", "{", "a: [1, {b: c}]", "parts: [{parts: [{x: 1}]}]", "? [a]\n: b", "- a", "seed: 1.5",
		"name: |\n  x\nseed: 2\nparts:\n  - variants: [a, 'b', \"c\"] # comment\n    parts: [{variants: [x]}]\n",
	}
	for _, seed := range yamldoctest.YAML(2000) {
		seeds = append(seeds, seed)
	}
	for _, seed := range append(seeds, yamldoctest.Mutations(500, seeds[:9]...)...) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		yamldoctest.Check(t, func() error {
			doc, err := yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{})
			if err != nil {
				return err
			}
			return doc.Decode(new(file))
		})
	})
}
