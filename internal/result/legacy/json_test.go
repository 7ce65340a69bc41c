package legacy_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/assay-eval/assay/internal/result/legacy"
)

// TestTextIsReadExactly checks that texts are read as they are and that
// different texts stay different.
func TestTextIsReadExactly(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`\ud83d\ude00é`: "😀é", `\ufffd�`: "��", `\\ud800`: `\ud800`, `\u00e9\"\/`: `é"/`,
	} {
		if got := read(t,
			`{"version": "3.0", "models": {}, "created_at": "`+text+`"}`).CreatedAt; got != want {
			t.Errorf("%s was read as %q, want %q", text, got, want)
		}
	}
}

func TestReadRefusesBrokenFiles(t *testing.T) {
	t.Parallel()
	whole := file(good)
	conflict := "{\n  \"version\": \"3.0\",\n<<<<<<< HEAD\n  \"models\": {}\n=======\n" +
		"  \"models\": {}\n>>>>>>> main\n}"
	for name, tt := range map[string]struct {
		text string
		want string // separated by "|"
	}{
		"empty":     {" \n", "empty"},
		"truncated": {whole[:len(whole)-3], "truncated|9:102"},
		"in a text": {`{"version": "3.`, "1:16|truncated"},
		"in a word": {"{\"version\": \"3.0\",\n\"models\": nul", "2:14|truncated"},
		"conflict":  {conflict, "3:1|merge conflict|<<<<<<< HEAD|hint:"},
		"half a conflict": {"{\n  \"version\": \"3.0\",\n  \"models\": {},\n=======\n" +
			"  \"models\": {}\n}", "4:1|merge conflict"},
		"end of conflict": {"{\n  \"version\": \"3.0\"\n>>>>>>> main\n}", "3:1|merge conflict"},
		"trailing":        {whole + " {}", "after the end"},
		"comma": {
			"{\"version\": \"3.0\"\n \"models\": {}}",
			`2:2|after object key:value pair|"models"`,
		},
		"bare key":      {`{version: 1}`, "1:2|object key"},
		"no colon":      {`{"version" 1}`, "1:12|after object key"},
		"single quotes": {`{'version': 1}`, "1:2"},
		"word":          {`{"version": None}`, "1:13|looking for beginning of value|None"},
		"leading zero":  {`{"version": 03}`, "1:14"},
		"line end":      {"{\"ver\nsion\": 1}", "1:6|in string literal"},
		"escape":        {`{"a": "\q"}`, "1:9|escape"},
		"deep":          {strings.Repeat(`[`, 100000), "1:10001|depth"},
		"long key": {
			`{"` + strings.Repeat("k", 1100) + `": 1}`,
			"1:1103|1024 bytes",
		},
		"not UTF-8": {
			"{\"version\": \"3.0\",\n\"models\": {\"a\": 1, \"gp\xfft\": 1}}",
			"2:23|UTF-8|0xff",
		},
		"cut rune":       {"{\"é\xc3\": 1}", "1:4|UTF-8|0xc3"},
		"half a pair":    {`{"a": "x\ud800y"}`, "1:9|surrogate"},
		"the other half": {`{"a": "x\udc80"}`, "1:9|surrogate"},
		"two halves":     {`{"a": "\ud800\ud800\udc00"}`, "1:8|surrogate"},
		"LFS":            {"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"},
		"array":          {`[]`, "an array|hint:"},
		"no version":     {`{"models": {}}`, "no version|3.0"},
		"version 2":      {`{"version": "2.0", "models": {}}`, `"2.0"|"3.0"`},
		"version 3":      {`{"version": 3.0, "models": {}}`, "3.0"},
		"no models":      {`{"version": "3.0"}`, "no models"},
		"models":         {`{"version": "3.0", "models": []}`, "models is an array"},
		"leaves": {
			`{"version": "3.0", "models": {"m": {"by_prompt_type": {"optimal": {"by_tool_success_rate": {"0.8": {"by_difficulty": {"easy": {"by_task_type": {` +
				strings.Repeat(`"t": {},`, 40000) + `"t": {}` + strings.Repeat("}", 10),
			"leaves",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := legacy.Read(strings.NewReader(tt.text))
			if err == nil {
				t.Fatalf("Read() returned no error, but %+v", db)
			}
			for want := range strings.SplitSeq(tt.want, "|") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q, want it to contain %q", err, want)
				}
			}
			if len(err.Error()) > 1000 {
				t.Errorf("the error message has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestErrorShowsExcerpt(t *testing.T) {
	t.Parallel()
	_, err := legacy.Read(strings.NewReader("{\n  \"version\": ?}"))
	want := "2:14: invalid character '?' looking for beginning of value\n" +
		"    \"version\": ?}\n               ^"
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
}

func TestByteOrderMarkIsSkipped(t *testing.T) {
	t.Parallel()
	read(t, "\ufeff"+file(good))
}

// FuzzStrict checks that every accepted text is JSON, except for Python's
// words.
func FuzzStrict(f *testing.F) {
	for _, s := range []string{
		`{"a": [1, -0.5e3, "\u00e9"], "b": null}`, `{"a": 01}`, `[1,]`,
		`NaN`, "\"\x01\"", `"\ud800"`, `"\ud83d\ude00"`, "\"\xff\"", "{\"a\"\t:true}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "NaN") || strings.Contains(text, "Infinity") ||
			strings.HasPrefix(text, "\ufeff") {
			return
		}
		got := legacy.Parses([]byte(text))
		want := json.Valid([]byte(text)) && utf8.ValidString(text)
		halves := strings.Contains(strings.ToLower(text), `\ud`) // perhaps an unpaired surrogate
		// Shorter texts cannot reach the limits of depth and of keys.
		if (got && !want || !got && want && !halves) && len(text) < 60 {
			t.Errorf("%q: parsed %v, valid JSON %v", text, got, want)
		}
	})
}
