package yamldoc_test

import (
	"fmt"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// A sheet has a field of each kind that files have.
type sheet struct {
	Any     any                `yaml:"any"`
	Text    string             `yaml:"text"`
	Whole   int                `yaml:"whole"`
	Big     *int64             `yaml:"big"`
	Number  float64            `yaml:"number"`
	Share   *float64           `yaml:"share"`
	Truth   bool               `yaml:"truth"`
	Texts   []string           `yaml:"texts"`
	Numbers []float64          `yaml:"numbers"`
	Shares  map[string]float64 `yaml:"shares"`
	Names   map[string]string  `yaml:"names"`
	Steps   []struct {
		Tool string `yaml:"tool"`
	} `yaml:"steps"`
	Deep []struct {
		Any map[string]any `yaml:"any"`
	} `yaml:"deep"`
}

func read(text string) (s sheet, err error) {
	doc, err := yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{})
	if err == nil {
		err = doc.Decode(&s)
	}
	return s, err
}

// scalars is the table of docs/files.md: what a scalar without quotes means where any value can
// stand. Nil means that it is refused there and where a number is wanted.
var scalars = map[string]any{
	"7": 7, "-7": -7, "+7": 7, "0": 0, "-0": 0, "100": 100,
	"0.5": .5, ".5": .5, "5.": 5., "-1.50": -1.5, "1e3": 1000., "1E-2": .01, "0.0": 0., "-0.0": 0., "-.0": 0.,
	"-1e-999": 0., "0e5": 0.,
	"true": true, "True": true, "FALSE": false,
	"yes": "yes", "no": "no", "on": "on", "off": "off", "y": "y",
	"12:30": "12:30", "190:20:30": "190:20:30", "2024-01-01": "2024-01-01", "1.2.3": "1.2.3",
	"2024-01-01T05:06:07Z": "2024-01-01T05:06:07Z", "12A": "12A", "1-2": "1-2", "inf": "inf", "NaN": "NaN",
	"_1": "_1", "0x": "0x", "e3": "e3", "-": "-", ".": ".", "1,5": "1,5", "１２": "１２",
	"010": nil, "01234": nil, "08": nil, "00": nil, "-01": nil, "01.5": nil, "0777777777777777777777": nil,
	"0o10": nil, "0x1F": nil, "0b11": nil, "-0x1F": nil, "1_000": nil, "1_000.5": nil, "0_1": nil, "-_.0": nil, "-._0": nil, "2024_01": nil,
	"1e400": nil,
}

// TestScalars checks that a scalar means the same in every field: what it means where any value can
// stand, as a number where that is a number, and itself where the field is a text.
func TestScalars(t *testing.T) {
	t.Parallel()
	for scalar, want := range scalars {
		if strings.Contains("-.", scalar) || scalar == "1,5" {
			scalar += "x" // syntax by itself
			if want != nil {
				want = want.(string) + "x"
			}
		}
		s, err := read("text: " + scalar + "\ntexts:\n- " + scalar + "\nnames: {a: " + scalar + "}\n")
		if err != nil || s.Text != scalar || !reflect.DeepEqual(s.Texts, []string{scalar}) || s.Names["a"] != scalar {
			if !strings.Contains(scalar, ",") {
				t.Errorf("%s as text: %q, %q, %v", scalar, s.Text, s.Texts, err)
			}
		}
		for _, place := range []string{"any: %s", "deep:\n- any: {x: [{y: %s}]}"} {
			if strings.Contains(scalar, ",") && place != "any: %s" {
				continue
			}
			s, err := read(fmt.Sprintf(place+"\n", scalar))
			got := s.Any
			if s.Deep != nil {
				got = s.Deep[0].Any["x"].([]any)[0].(map[string]any)["y"]
			}
			if want == nil && err == nil || want != nil && (err != nil || !reflect.DeepEqual(got, want)) {
				t.Errorf(place+": %T %v, %v, want %T %v", scalar, got, got, err, want, want)
			}
		}
		number, isNumber := 0., true
		switch want := want.(type) {
		case int:
			number = float64(want)
		case float64:
			number = want
		default:
			isNumber = false
		}
		for place, get := range map[string]func(sheet) float64{
			"number: %s":      func(s sheet) float64 { return s.Number },
			"share: %s":       func(s sheet) float64 { return *s.Share },
			"numbers: [%s]":   func(s sheet) float64 { return s.Numbers[0] },
			"shares: {a: %s}": func(s sheet) float64 { return s.Shares["a"] },
			"whole: %s":       func(s sheet) float64 { return float64(s.Whole) },
			"big: %s":         func(s sheet) float64 { return float64(*s.Big) },
		} {
			fraction := place[0] != 's' && place[0] != 'n' && number != math.Trunc(number)
			s, err := read(fmt.Sprintf(place+"\n", scalar))
			switch fine := isNumber && !fraction; {
			case fine != (err == nil):
				t.Errorf(place+": %v, want an error: %v", scalar, err, !fine)
			case fine && (get(s) != number || math.Signbit(get(s)) != math.Signbit(number)):
				t.Errorf(place+": %v, want %v", scalar, get(s), number)
			}
		}
		truth, isTruth := want.(bool)
		if s, err := read("truth: " + scalar + "\n"); isTruth != (err == nil) || s.Truth != (truth && isTruth) {
			t.Errorf("truth: %s: %v, %v", scalar, s.Truth, err)
		}
	}
}

// TestNumbersMeanTheSameEverywhere checks for all short runs of the characters of numbers that each
// field has the same value, or refuses it, and that the value is not -0.
func TestNumbersMeanTheSameEverywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		scalar := rapid.StringMatching(`[-+]?[0-9._xob]{1,5}(e[-+]?[0-9]{1,3})?`).Draw(t, "scalar")
		s, errAny := read("any: " + scalar + "\n")
		var want float64
		switch v := s.Any.(type) {
		case int:
			want = float64(v)
		case float64:
			want = v
		case nil:
			if errAny == nil {
				t.Fatalf("%s is nothing", scalar)
			}
		case string:
			errAny = fmt.Errorf("text")
			if v != scalar {
				t.Fatalf("%s is the text %q", scalar, v)
			}
		}
		s, err := read("number: " + scalar + "\n")
		if (err == nil) != (errAny == nil) || err == nil && (s.Number != want || math.Signbit(want) != (want < 0)) {
			t.Fatalf("%s is %v (%v), and as a number %v (%v)", scalar, want, errAny, s.Number, err)
		}
		s, err = read("whole: " + scalar + "\n")
		if whole := errAny == nil && want == math.Trunc(want) && math.Abs(want) < 1e15; whole && (err != nil || float64(s.Whole) != want) {
			t.Fatalf("%s is %v, and as a whole number %v (%v)", scalar, want, s.Whole, err)
		}
		if s, err := read("text: " + scalar + "\n"); err != nil && !strings.Contains(err.Error(), "number") || err == nil && s.Text != scalar {
			t.Fatalf("%s as text: %q, %v", scalar, s.Text, err)
		}
	})
}

// TestRefusedScalars checks the places and the advice.
func TestRefusedScalars(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"any: {zip: 01234}\n": "f.yaml:1:12: the number 01234 begins with 0\n  1 | any: {zip: 01234}\n" +
			"    |            ^\nhint: write 1234 if it is a number, or \"01234\" in quotes if it is text",
		"whole: 010\n":                 "f.yaml:1:8: the number 010 begins with 0\n  1 | whole: 010\n    |        ^\nhint: write 10 if it is a number",
		"number: 00.50\n":              "hint: write 0.50 if it is a number",
		"any: 0x1F\n":                  "0x1F can be read in several ways\n  1 | any: 0x1F\n    |      ^\nhint: write 31 if it is a number, or \"0x1F\" in quotes",
		"any: 1_000\n":                 "hint: write 1000 if it is a number, or \"1_000\" in quotes if it is text",
		"whole: \"3\"\n":               "f.yaml:1:8: a number in quotes is text",
		"truth: yes\n":                 "f.yaml:1:8: wrong type: found text, want true or false",
		"any: 1e999\n":                 "f.yaml:1:6: the number is too large",
		"text: Refund order #7 now.\n": "f.yaml:1:7: this text ends before #7 now., because # begins a comment",
		"any: !env KEY\n":              "f.yaml:1:6: the tag !env is not supported",
		"whole: !!int \"08\"":          "f.yaml:1:8: the tag !!int is not supported",
		"texts: [a, null]\n":           "f.yaml:1:12: this item of the list is empty",
		"texts: [a, ~, b]\n":           "f.yaml:1:12: this item of the list is empty",
		"texts:\n- a\n-\n- b\n":        "f.yaml:3:2: this item of the list is empty",
		"numbers: [null]\n":            "f.yaml:1:11: this item of the list is empty",
		"deep: [~]\n":                  "f.yaml:1:8: this item of the list is empty",
		"any:\n  - 1\n  -\n":           "f.yaml:3:4: this item of the list is empty",
		"shares: {a: null}\n":          "f.yaml:1:13: \"a\" has no value",
		"names:\n  a:\n":               "f.yaml:2:5: \"a\" has no value",
		"any: {sum: 1,000}\n":          "f.yaml:1:14: \"000\" has no value",
		"shares: {a: 0,5}\n":           "hint: write 0.5, or quotes",
		"shares: {a: 1,000}\n":         "hint: write 1000, or quotes",
		"shares: {a: 1,000,001}\n":     "hint: write 1000001, or quotes",
		"shares: {a: 0,5, b: 1}\n":     "hint: write 0.5, or quotes",
		"any: {a: 1, b, 5}\n":          "hint: write a colon and a value behind it",
		"names: {a: x,5}\n":            "hint: write a colon and a value behind it",
		"number: \"0,5\"\n":            "f.yaml:1:9: wrong type: found text, want a number\n  1 | number: \"0,5\"\n    |         ^\nhint: write 0.5",
		"number: 80%\n":                "hint: write 0.8",
		"numbers: [12.5%]\n":           "hint: write 0.125",
		"share: $5\n":                  "hint: write 5",
		"number: 5 USD\n":              "hint: write 5",
		"whole: 1s\n":                  "want a whole number\n  1 | whole: 1s\n    |        ^\nhint: write 1",
		"whole: 1,000 tokens\n":        "hint: write 1000",
		"texts: a\n":                   "f.yaml:1:8: wrong type: found text, want a list\n  1 | texts: a\n    |        ^\nhint: write [a]",
		"numbers: 0.5\n":               "wrong type: found a number, want a list\n  1 | numbers: 0.5\n    |          ^\nhint: write [0.5]",
		"numbers: 80%\n":               "want a list\n  1 | numbers: 80%\n    |          ^\nhint: write [0.8]",
		"deep: x\n":                    "wrong type: found text, want a list",
		"steps: [move]\n":              "f.yaml:1:9: wrong type: found text, want a mapping\n  1 | steps: [move]\n    |         ^\nhint: write {tool: move}",
	} {
		if _, err := read(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error = %v\nwant %s", text, err, want)
		}
	}
	s, err := read("any: {a: [1, null, ~], b: , c: }\ntext: !!str 5 #five\nnames: {a: \"\"}\n")
	want := map[string]any{"a": []any{1, nil, nil}, "b": nil, "c": nil}
	if err != nil || !reflect.DeepEqual(s.Any, want) || s.Text != "5" {
		t.Errorf("%v, %v", s, err)
	}
}

// TestScalarsAreDocumented checks that the table in docs/files.md says what the program does.
func TestScalarsAreDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/files.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "## Values without quotes")
	table, _, _ = strings.Cut(table, "\n## ")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 || !strings.Contains(cells[1], "`") {
			continue
		}
		rows++
		for i, scalar := range strings.Split(cells[1], "`") {
			if i%2 == 0 {
				continue
			}
			s, err := read("any: " + scalar + "\n")
			got := "an error"
			if err == nil {
				got = map[bool]string{true: "text"}[s.Any == scalar]
				switch v := s.Any.(type) {
				case int, float64:
					got = "that number"
					if v == 0 || v == 0. {
						got = "0"
					}
				case bool:
					got = "that truth value"
				case nil:
					got = "the field is as if it were not there"
				}
			}
			if means := strings.TrimSpace(cells[2]); got == "" || !strings.HasPrefix(means, got) {
				t.Errorf("%s is %v (%v); the page says %q", scalar, s.Any, err, means)
			}
		}
	}
	if rows < 6 {
		t.Errorf("%d rows", rows)
	}
}
