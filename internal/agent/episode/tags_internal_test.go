package episode

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// spell writes each action as its correction or its parts, for comparison.
func spell(actions []action) []string {
	var out []string
	for _, a := range actions {
		if a.wrong != nil {
			out = append(out, "wrong: "+render(a.wrong.name, a.wrong.data))
			continue
		}
		out = append(out, strings.TrimSpace(a.act.String()+" "+a.text+" "+a.arguments))
	}
	return out
}

func TestTagActions(t *testing.T) {
	t.Parallel()
	const (
		open  = "wrong: <tool_call> is not closed: write <tool_call>…</tool_call> with no other tag inside"
		stray = "wrong: </tool_call> closes nothing: write <tool_call>…</tool_call>"

		noName = "wrong: <tool_call> begins with the exact name of a tool, and its arguments follow: " +
			"<tool_call>TOOL {\"argument\": \"value\"}</tool_call>"
		noObject = "wrong: the arguments have to be one JSON object, such as {\"argument\": \"value\"}, " +
			"and neither text nor a list"
	)
	for _, tc := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"I would use file_reader(path) now, or [file_reader].", nil},
		{"<tool_call>file_reader</tool_call>", []string{"tool_call file_reader"}},
		{"first\n<tool_call>\n  file_reader\n</tool_call> then", []string{"tool_call file_reader"}},
		{
			`<tool_call>file_reader {"source": "a b"}</tool_call>`,
			[]string{`tool_call file_reader {"source": "a b"}`},
		},
		{
			"<tool_call>file_reader\n{\"source\":\n\"a\"}\n</tool_call>",
			[]string{"tool_call file_reader {\"source\":\n\"a\"}"},
		},
		{
			`<tool_call>file_reader{"source":"a"}</tool_call>`,
			[]string{`tool_call file_reader {"source":"a"}`},
		},
		{
			"<tool_search>read a file</tool_search><tool_info>file_reader</tool_info>",
			[]string{"tool_search read a file", "tool_info file_reader"},
		},
		{
			"<tool_call>a</tool_call><tool_call>b</tool_call>",
			[]string{"tool_call a", "tool_call b"},
		},

		{"<tool_call>", []string{open}},
		{"<tool_call>file_reader", []string{open}},
		{"<tool_call>file_reader<tool_call>", []string{open, open}},
		{"file_reader</tool_call>", []string{stray}},
		{"<tool_call>a<tool_call>b</tool_call>", []string{open, "tool_call b"}},
		{
			"<tool_call>a</tool_info></tool_call>",
			[]string{
				open, "wrong: </tool_info> closes nothing: write <tool_info>…</tool_info>",
				stray,
			},
		},
		{"<tool_call></tool_call>", []string{noName}},
		{
			"<tool_info> \n </tool_info>",
			[]string{"wrong: <tool_info> begins with the exact name of a tool"},
		},
		{
			"<tool_search></tool_search>",
			[]string{"wrong: tool_search needs a query: words that say what the tool should do"},
		},
		{"<tool_call>file_reader source=a</tool_call>", []string{noObject}},
		{"<tool_call>file_reader [1]</tool_call>", []string{noObject}},
		{`<tool_call>{"tool": "file_reader"}</tool_call>`, []string{noName}},

		// There is no guessing.
		{"<TOOL_CALL>file_reader</TOOL_CALL>", nil},
		{"< tool_call >file_reader</ tool_call >", nil},
		{"<tool_call name=\"x\">file_reader", nil},
	} {
		t.Run(tc.text, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, spell(tagActions(tc.text))); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
		})
	}
}

// TestTagsRoundTrip writes well-formed actions into arbitrary text without tags and reads them
// back.
func TestTagsRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		prose := rapid.StringMatching(`[a-zA-Z0-9 .,<>/\n]{0,30}`)
		var text strings.Builder
		var want []string
		for range rapid.IntRange(0, 6).Draw(t, "actions") {
			text.WriteString(noTags(prose.Draw(t, "prose")))
			kind := rapid.SampledFrom([]act{search, info, call}).Draw(t, "act")
			content := rapid.StringMatching(`[a-z_0-9.]{1,20}`).Draw(t, "content")
			if kind == call && rapid.Bool().Draw(t, "arguments") {
				args := rapid.MapOf(rapid.StringMatching(`[a-z]{1,8}`),
					rapid.StringMatching(`[a-zA-Z {}":]{0,12}`))
				b, err := json.Marshal(args.Draw(t, "values"))
				if err != nil {
					t.Fatal(err)
				}
				content += " " + string(b)
			}
			want = append(want, kind.String()+" "+content)
			text.WriteString(openTag(kind) + content + closeTag(kind))
		}
		text.WriteString(noTags(prose.Draw(t, "end")))
		if diff := cmp.Diff(want, spell(tagActions(text.String()))); diff != "" {
			t.Fatalf("%q (-want +got):\n%s", text.String(), diff)
		}
	})
}

func noTags(s string) string {
	for _, a := range []act{search, info, call} {
		s = strings.NewReplacer(openTag(a), "", closeTag(a), "").Replace(s)
	}
	return s
}

// FuzzTags checks three laws for any text: each tag is part of exactly one action, an accepted
// action occurs word for word in the text, and text around the tags makes no difference.
func FuzzTags(f *testing.F) {
	for _, s := range []string{
		"<tool_call>file_reader</tool_call>", "<tool_call>", "</tool_call>",
		"<tool_search>x</tool_search><tool_info>y</tool_info>",
		`<tool_call>a {"b": "</tool_call>"}</tool_call>`, "<tool_call><tool_call></tool_call>",
		"<<tool_call>>x</tool_call>", "<tool_call>\u00a0x\u00a0</tool_call>",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		actions := tagActions(text)
		tags, inActions := 0, 0
		for _, a := range []act{search, info, call} {
			tags += strings.Count(text, openTag(a)) + strings.Count(text, closeTag(a))
		}
		for _, a := range actions {
			inActions++
			if a.wrong != nil {
				switch a.wrong.name {
				case "open tag", "stray tag":
				default: // a pair with bad content
					inActions++
				}
				continue
			}
			inActions++
			if a.text == "" || !strings.Contains(text, a.text) ||
				!strings.Contains(text, a.arguments) {
				t.Fatalf("%q: action %+v does not occur in the text", text, a)
			}
			if a.arguments != "" {
				if _, ok := parseArguments(a.arguments); !ok {
					t.Fatalf("%q: accepted the arguments %q", text, a.arguments)
				}
			}
		}
		if tags != inActions {
			t.Fatalf("%q: %d tags, %d of them in actions %v", text, tags, inActions, spell(actions))
		}
		if diff := cmp.Diff(spell(actions), spell(tagActions("so: "+text+" done"))); diff != "" {
			t.Fatalf("%q: surrounding text changes the actions:\n%s", text, diff)
		}
	})
}
