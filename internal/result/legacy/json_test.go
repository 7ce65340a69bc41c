package legacy_test

import (
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/result/legacy"
)

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
		"not UTF-8": {
			"{\"version\": \"3.0\",\n\"models\": {\"a\": 1, \"gp\xfft\": 1}}",
			"2:23|UTF-8|0xff",
		},
		"cut rune":   {"{\"é\xc3\": 1}", "1:4|UTF-8|0xc3"},
		"LFS":        {"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"},
		"array":      {`[]`, "not contain an object|hint:"},
		"no version": {`{"models": {}}`, "no version|3.0"},
		"version 2":  {`{"version": "2.0", "models": {}}`, `"2.0"|"3.0"`},
		"version 3":  {`{"version": 3.0, "models": {}}`, "3.0"},
		"no models":  {`{"version": "3.0"}`, "no models"},
		"a number":   {`1`, "not contain an object"},
		"null":       {`null`, "not contain an object"},
		"model":      {`{"version": "3.0", "models": {"m": {"by_prompt_type": {"cot": 1}}}}`, "models/m/cot is not an object"},
		"models":     {`{"version": "3.0", "models": []}`, "models is not an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, err := legacy.Read("db.json", strings.NewReader(tt.text))
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
	_, err := legacy.Read("db.json", strings.NewReader("{\n  \"version\": ?}"))
	want := "db.json:2:14: invalid character '?' looking for beginning of value\n" +
		"  2 |   \"version\": ?}\n    |              ^"
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
}

func TestByteOrderMarkIsSkipped(t *testing.T) {
	t.Parallel()
	read(t, "\ufeff"+file(good))
}
