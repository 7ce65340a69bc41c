package yamldoc_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/yamldoc"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

type file struct {
	Name  string `yaml:"name"`
	Seed  int    `yaml:"seed"`
	Parts []part `yaml:"parts"`
	Spare part   `yaml:"spare"`
}

type part struct {
	Variants []string `yaml:"variants"`
	Parts    []part   `yaml:"parts"`
}

// TestUnknownFieldsAreAllNamed checks that one error names all unknown fields of a mapping, the
// first one first, every time.
func TestUnknownFieldsAreAllNamed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nmae: x\nseed: 1\nsede: 2\n": "f.yaml:1:1: unknown field \"nmae\"\n  1 | nmae: x\n    | ^\n" +
			"hint: did you mean name?\n" +
			`line 3 has an unknown field, too: "sede"; did you mean seed?`,
		"name: x\nqqq: 2\nzzz: 2\n": "f.yaml:2:1: unknown field \"qqq\"\n  2 | qqq: 2\n    | ^\n" +
			"hint: known are name, parts, seed, spare, variants\n" +
			`line 3 has an unknown field, too: "zzz"; known are name, parts, seed, spare, variants`,
		"name: x\nparts:\n  - variants: [a]\n  - {variats: [b], parts: [{vriants: [c]}]}\n": "f.yaml:4:6: " +
			"unknown field \"variats\"",
		"parts: [{seed: 1}]\n": "f.yaml:1:10: unknown field \"seed\"\n  1 | parts: [{seed: 1}]\n" +
			"    |          ^\nhint: it is a field of the file, not of this mapping; move it to the left margin",
		"variants: [a]\n": "f.yaml:1:1: unknown field \"variants\"\n  1 | variants: [a]\n" +
			"    | ^\nhint: it is a field of parts or spare; move it there",
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

// TestTextsStayAsWritten checks that a text without quotes is not taken for a number or a date.
func TestTextsStayAsWritten(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"1.10", "007", "0x1F", "1_000", "2024-01-01", "a\tb", "<<", "yes"} {
		var into struct {
			Name   string         `yaml:"name"`
			Inputs map[string]any `yaml:"inputs"`
		}
		source := "name: " + text + "\ninputs: {1.50: 2024-01-01, on: 1e3}\n"
		doc, err := yamldoc.Parse("f.yaml", []byte(source), yamldoc.Help{})
		if err == nil {
			err = doc.Decode(&into)
		}
		want := map[string]any{"1.50": "2024-01-01", "on": 1000.0}
		if err != nil || into.Name != text || !maps.Equal(into.Inputs, want) {
			t.Errorf("%q: got %q, %v, %v", text, into.Name, into.Inputs, err)
		}
	}
}

// TestSyntaxErrors checks that errors point at the mistake.
func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a: 1\nname: \"x\nb: 2\n":        "2:7: the quotes that begin here do not end",
		"a: 1\nname x\nb: 2\n":           "2:1: no colon follows this name",
		"a: [b\nc: d\n":                  "2:2: missing ',' or ']', in the list that begins in line 1",
		"a: [\r\n\r\n":                   "1:5: a value is expected here",
		"a:\n\tb: 1\n":                   "2:1: a tab cannot be used here",
		"a: @b\n":                        "1:4: a text cannot begin with '@'",
		"\ufeffa: b\na: c\n":             "2:1: field \"a\" is already set in line 1",
		"a: b\n---\na: b\n":              "2:1: the file has several YAML documents, want one",
		"a: *b\n":                        "1:4: anchors and aliases are not supported",
		"<<: {a: b}\n":                   "1:1: anchors and aliases are not supported",
		"a: x\u2028y\n":                  "1:5: the control character \\u2028 cannot be used",
		"a: [1, 18446744073709551616]\n": "1:8: the number has too many digits to stay exact",
		"? [a]\n: b\n":                   "1:3: the name of a field must be text",
	} {
		_, err := yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{})
		if err == nil || !strings.HasPrefix(err.Error(), "f.yaml:"+want+"\n") {
			t.Errorf("%q: error = %v\nwant %s", text, err, want)
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

// TestNumbersAreFinite checks that numbers which JSON cannot have are refused where they stand.
func TestNumbersAreFinite(t *testing.T) {
	t.Parallel()
	for value, fine := range map[string]bool{
		".inf": false, "-.Inf": false, ".nan": false,
		"1.5": true, "-1_000.5": true, ".5": true, "1e-999": true, "\".inf\"": true, "inf": true,
	} {
		_, err := yamldoc.Parse("f.yaml", []byte("a: {b: ["+value+"]}\n"), yamldoc.Help{})
		if text := fmt.Sprint(err); fine != (err == nil) || !fine && !strings.Contains(text, "f.yaml:1:9: the number is not finite") {
			t.Errorf("%s: %v", value, err)
		}
	}
}
