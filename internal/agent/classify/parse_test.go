package classify_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/agent/classify"
)

func TestParse(t *testing.T) {
	t.Parallel()
	const plain = `{"category": "timeout", "confidence": 0.5, "reason": "late"}`
	reason := func(text string) classify.Opinion {
		return classify.Opinion{Category: "timeout", Confidence: .5, Reason: text}
	}
	late := reason("late")
	for _, tc := range []struct {
		name, reply string
		want        classify.Opinion
	}{
		{"as requested", plain, late},
		{"in a fence", "```json\n" + plain + "\n```", late},
		{"with surrounding text", "Sure {I think}: " + plain + " Hope {this} helps! {", late},
		{
			"after a draft of the format",
			`{"category": <one of the nine names>, "confidence": 0..1} so: ` + plain, late,
		},
		{"after other objects", `{} {"tool": "x"} {"confidence": 1} [1] ` + plain, late},
		{"in an object", `{"answer": ` + plain + `}`, late},
		{"in a list", `[` + plain + `]`, late},
		{"in a box", `\boxed{` + plain + `}`, late},
		{"twice", plain + "\n" + plain, late},
		{
			"with a trailing comma",
			"{\"category\": \"timeout\", \"confidence\": 0.5, \"reason\": \"late\",\n}", late,
		},
		{
			"with other members",
			`{"evidence": [{"turn": 3}], "category": "timeout", "confidence": 0.5, "reason": "late"}`,
			late,
		},
		{
			"with names in capitals",
			`{"Category": "Timeout", "CONFIDENCE": 0.5, "Reason": "late"}`, late,
		},
		{"a label", `{"category": "timout_errors", "confidence": 0.5, "reason": "late"}`, late},
		{
			"an answer in the reason",
			`{"category": "timeout", "confidence": 0.5, "reason": "not {\"category\": \"other\", \"confidence\": 1}"}`,
			reason(`not {"category": "other", "confidence": 1}`),
		},
		{
			"a comma in the reason",
			`{"category": "timeout", "confidence": 0.5, "reason": "a,}"}`, reason("a,}"),
		},
		{
			"with another inside", `{"category": "timeout", "confidence": 0.5, "reason": "late", ` +
				`"or": [{"category": "other", "confidence": 0.1}]}`, late,
		},
		{"no reason", `{"category": "timeout", "confidence": 0.5}`, reason("")},
		{"reason null", `{"category": "timeout", "confidence": 0.5, "reason": null}`, reason("")},
		{"after long thoughts", strings.Repeat("Hm. ", 100_000) + plain, late},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := classify.Parse(tc.reply)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestConfidence(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{
		"0": 0, "1": 1, "0.85": .85, "85": .85, "100": 1, "1.5": .015, "8.5e1": .85,
		`"0.85"`: .85, `"85"`: .85, `"85%"`: .85,
		`" 85 % "`: .85, `"1%"`: .01, `"0.5%"`: .005, `"0%"`: 0, `"100%"`: 1,

		"-0.1": -1, "100.5": -1, "1e9": -1, "null": -1, `""`: -1, `"high"`: -1, `"NaN"`: -1,
		`"Inf"`: -1, `"null"`: -1, "true": -1,
		"[0.5]": -1, "{}": -1, `"%"`: -1, `"85%%"`: -1, `"101%"`: -1, `"-1%"`: -1, `"0.5 of 1"`: -1,
	} {
		o, err := classify.Parse(`{"category": "other", "confidence": ` + text + `, "reason": "r"}`)
		switch {
		case want < 0 && err == nil:
			t.Errorf("confidence %s is parsed as %v, want an error", text, o.Confidence)
		case want >= 0 && (err != nil || o.Confidence != want):
			t.Errorf("confidence %s is parsed as %v, %v, want %v", text, o.Confidence, err, want)
		}
	}
}

func TestUnreadable(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, reply, want string }{
		{"nothing", "", "no JSON object with a category"},
		{"words", "The category is timeout, confidence 0.9.", "no JSON object with a category"},
		{
			"no category", `{"confidence": 0.9, "reason": "timeout"}`,
			"no JSON object with a category",
		},
		{
			"cut off", `{"category": "timeout", "confidence": 0.9, "reason": "la`,
			"no JSON object with a category",
		},
		{"no confidence", `{"category": "timeout", "reason": "late"}`, "the confidence is missing"},
		{
			"confidence null", `{"category": "timeout", "confidence": null}`,
			"the confidence is missing",
		},
		{
			"an answer before long thoughts",
			`{"category": "timeout", "confidence": 0.5}` + strings.Repeat(" Hm.", 100_000),
			"no JSON object with a category",
		},
		{"category null", `{"category": null, "confidence": 0.9}`, `"" is none of the categories`},
		{
			"category a list", `{"category": ["timeout"], "confidence": 0.9}`,
			"the category is no text",
		},
		{
			"unknown category", `{"category": "bad luck", "confidence": 0.9}`,
			`"bad luck" is none of the categories`,
		},
		{
			"two categories", `{"category": "timeout|other", "confidence": 0.9}`,
			`"timeout|other" is none of the categories`,
		},
		{
			"two answers",
			`{"category": "timeout", "confidence": 0.9} {"category": "other", "confidence": 0.9}`,
			"several answers that differ",
		},
		{
			"two confidences",
			`{"category": "timeout", "confidence": 0.9} {"category": "timeout", "confidence": 0.8}`,
			"several answers that differ",
		},
		{
			"one readable of two",
			`{"category": "timeout", "confidence": 0.9} {"category": "??", "confidence": 0.9}`,
			`"??" is none of the categories`,
		},
		{
			"another inside a broken one",
			`{"category": "timeout", "confidence": 0.9, "no": {"category": "other", "confidence": 0.9},}`,
			"several answers that differ",
		},
		{
			"confidence above 100", `{"category": "timeout", "confidence": 900}`,
			"the confidence 900 is no number from 0 to 1",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			o, err := classify.Parse(tc.reply)
			if err == nil || err.Error() != tc.want || o != (classify.Opinion{}) {
				t.Errorf("%+v, %v, want the error %s", o, err, tc.want)
			}
		})
	}
}

// TestAnswersReadBack checks that a well-formed answer is parsed correctly, with any text without
// braces around it.
func TestAnswersReadBack(t *testing.T) {
	t.Parallel()
	words := rapid.StringMatching(`[^{}]*`)
	reasons := rapid.OneOf(rapid.String(), rapid.StringMatching(`[{}",:\\ a]*`))
	rapid.Check(t, func(t *rapid.T) {
		want := classify.Opinion{
			Category:   rapid.SampledFrom(classify.Categories).Draw(t, "category"),
			Confidence: rapid.Float64Range(0, 1).Draw(t, "confidence"),
			Reason:     reasons.Filter(utf8.ValidString).Draw(t, "reason"),
		}
		reply := words.Draw(t, "before") + string(encode(t, want)) + words.Draw(t, "after")
		if got, err := classify.Parse(reply); err != nil || got != want {
			t.Fatalf("Parse(%q) = %+v, %v, want %+v", reply, got, err, want)
		}
	})
}

// FuzzParse checks that no reply causes a panic, that an opinion is one of the nine categories
// with a confidence in [0,1], and that it is parsed back unchanged.
func FuzzParse(f *testing.F) {
	for _, reply := range []string{
		"", "{", `{"category": "timeout", "confidence": "85%", "reason": "late",}`,
		`{"category":"x"}`,
		"```json\n{\"category\": \"other\", \"confidence\": 1}\n```",
		`{"a": {"category": "other", "confidence": 0.5}} {"category": "Other Errors", "confidence": 50}`,
		`{"category":{"category":"other"}}`, strings.Repeat(`{"a":`, 100),
		`{"category": "dependancy", "confidence": 1e-400}`,
		`{"category": "order", "confidence": -0, "reason": "\ud800"}`,
		"{\"category\": \"tool\xffselection\", \"confidence\": .5}",
	} {
		f.Add(reply)
	}
	f.Fuzz(func(t *testing.T, reply string) {
		o, err := classify.Parse(reply)
		if err != nil {
			if o != (classify.Opinion{}) {
				t.Errorf("an opinion next to the error %v: %+v", err, o)
			}
			return
		}
		known := slices.Contains(classify.Categories, o.Category)
		if !known || !(o.Confidence >= 0 && o.Confidence <= 1) || !utf8.ValidString(o.Reason) {
			t.Errorf("Parse(%q) = %+v", reply, o)
		}
		if again, err := classify.Parse(string(encode(t, o))); err != nil || again != o {
			t.Errorf("%+v is parsed back as %+v, %v", o, again, err)
		}
	})
}

func encode(t interface{ Fatal(...any) }, o classify.Opinion) []byte {
	b, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}
