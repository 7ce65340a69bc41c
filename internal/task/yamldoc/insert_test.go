package yamldoc_test

import (
	"maps"
	"testing"

	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/task/yamldoc"
)

func TestInsert(t *testing.T) {
	t.Parallel()
	for before, want := range map[string]string{
		"tasks:\n  - id: a\n    prompt: Pay.\n    judge: {}\n":                      "tasks:\n  - id: a\n    prompt: Pay.\n    phrasings: {casual: \"Pay \\\"now\\\".\"}\n    judge: {}\n",
		"tasks:\n- prompt: |\n    Pay.\n    # not yet\n\n  # of all\n  judge: {}\n": "tasks:\n- prompt: |\n    Pay.\n    # not yet\n\n  phrasings: {casual: \"Pay \\\"now\\\".\"}\n  # of all\n  judge: {}\n",
		"tasks:\n  - id: a\n    prompt: Pay.\n":                                     "tasks:\n  - id: a\n    phrasings: {casual: \"Pay \\\"now\\\".\"}\n    prompt: Pay.\n",
		"tasks:\r\n  - id: a\r\n    prompt: Pay.\r\n":                               "tasks:\r\n  - id: a\r\n    phrasings: {casual: \"Pay \\\"now\\\".\"}\r\n    prompt: Pay.\r\n",
		"tasks:\n  - id: a\n    phrasings: {terse: Pay}\n":                          "tasks:\n  - id: a\n    phrasings: {\"casual\": \"Pay \\\"now\\\".\", terse: Pay}\n",
		"tasks:\n  - id: a\n    phrasings:\n      # by Ann\n      terse: Pay\n":     "tasks:\n  - id: a\n    phrasings:\n      casual: \"Pay \\\"now\\\".\"\n      # by Ann\n      terse: Pay\n",
		"{\"tasks\": [{\"id\": \"ä\", \"prompt\": \"Pay.\"}]}":                      "{\"tasks\": [{\"phrasings\": {\"casual\": \"Pay \\\"now\\\".\"}, \"id\": \"ä\", \"prompt\": \"Pay.\"}]}",
		"tasks: [{id: ä, phrasings: {}}]":                                           "tasks: [{id: ä, phrasings: {\"casual\": \"Pay \\\"now\\\".\"}}]",
	} {
		doc, err := yamldoc.Parse("t.yaml", []byte(before), yamldoc.Help{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := doc.Insert("$.tasks[0]", "phrasings", "casual", `Pay "now".`)
		if err != nil || string(got) != want {
			t.Errorf("%s\ngave\n%s\n%v, want\n%s", before, got, err, want)
		}
	}
	for before, want := range map[string]string{
		"tasks:\n  - id: a\n":                    "t.yaml:2:5: a mapping with one field has no room for another",
		"tasks:\n  - id: a\n    phrasings: no\n": "t.yaml:3:16: phrasings is no mapping",
		"tasks: [a]\n":                           "$.tasks[0] is no mapping with fields",
	} {
		doc, err := yamldoc.Parse("t.yaml", []byte(before), yamldoc.Help{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := doc.Insert("$.tasks[0]", "phrasings", "casual", "Pay."); err == nil || len(err.Error()) < len(want) || err.Error()[:len(want)] != want {
			t.Errorf("%q: %v, want %s", before, err, want)
		}
	}
}

// TestInsertedTextIsRead holds that any text is read as it was written, and nothing else changes.
func TestInsertedTextIsRead(t *testing.T) {
	t.Parallel()
	type file struct {
		Tasks []struct {
			ID, Prompt string
			Phrasings  map[string]string
		}
	}
	sources := []string{
		"tasks:\n  - id: a\n    prompt: >\n      Pay.\n\n      # all\n    # note\n    phrasings:\n      terse: b\n  - {id: c, prompt: d}\n",
		"tasks:\n  - prompt: |\n      Pay.\n    id: a\n\n# more\n  - {\n      id: c, prompt: d,\n    }\n",
		`{"tasks": [{"id": "a", "prompt": "b", "phrasings": {"terse": "ü"}}, {"id": "c", "prompt": "é"}]}`,
	}
	read := func(t *rapid.T, source []byte) (f file) {
		doc, err := yamldoc.Parse("t.yaml", source, yamldoc.Help{})
		if err == nil {
			err = doc.Decode(&f)
		}
		if err != nil {
			t.Fatalf("%v\n%s", err, source)
		}
		return f
	}
	rapid.Check(t, func(t *rapid.T) {
		source := []byte(rapid.SampledFrom(sources).Draw(t, "source"))
		want := read(t, source)
		name := rapid.SampledFrom([]string{"casual", "null", "7", "No", "a-b"}).Draw(t, "name")
		for i, path := range []string{"$.tasks[0]", "$.tasks[1]"} {
			text := rapid.StringOf(rapid.Rune().Filter(func(r rune) bool { return r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) && r < 0xd800 })).Draw(t, "text")
			doc, err := yamldoc.Parse("t.yaml", source, yamldoc.Help{})
			if err != nil {
				t.Fatal(err)
			}
			if source, err = doc.Insert(path, "phrasings", name, text); err != nil {
				t.Fatal(err)
			}
			if want.Tasks[i].Phrasings == nil {
				want.Tasks[i].Phrasings = make(map[string]string)
			}
			want.Tasks[i].Phrasings[name] = text
		}
		got := read(t, source)
		for i, w := range want.Tasks {
			if g := got.Tasks[i]; g.ID != w.ID || g.Prompt != w.Prompt || !maps.Equal(g.Phrasings, w.Phrasings) {
				t.Fatalf("%+v, want %+v\n%s", g, w, source)
			}
		}
	})
}
