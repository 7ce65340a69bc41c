// Package yamldoctest makes files that are hard to read.
package yamldoctest

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode"
)

// Mutations returns n texts that differ from the given ones by a few random changes: parts that are
// cut off, changed, repeated, indented or nested. They are always the same. With -short, a fifth is
// enough.
func Mutations(n int, texts ...string) []string {
	if testing.Short() {
		n = (n + 4) / 5
	}
	r := rand.New(rand.NewPCG(1, 2))
	all := make([]string, n)
	for i := range all {
		all[i] = mutate(r, texts[i%len(texts)])
	}
	return all
}

func mutate(r *rand.Rand, text string) string {
	for range 1 + r.IntN(3) {
		if text == "" {
			return text
		}
		at := r.IntN(len(text))
		end := at + r.IntN(min(len(text)-at, 400))
		part := text[at:end]
		switch r.IntN(6) {
		case 0:
			text = text[:at]
		case 1:
			text = text[:at] + string([]byte{byte(r.IntN(256))}) + text[at+1:]
		case 2:
			text = text[:end] + strings.Repeat(part, 1+r.IntN(100)) + text[end:]
		case 3:
			indent := "\n" + strings.Repeat(" ", r.IntN(9))
			text = text[:at] + strings.ReplaceAll(part, "\n", indent) + text[end:]
		case 4:
			open := []string{"[", "{a: ", "- ", "? ", "!a ", "&a ", `{"a":`, "\""}[r.IntN(8)]
			text = text[:at] + strings.Repeat(open, 1<<r.IntN(13)) + text[at:]
		case 5:
			text = text[:at] + text[end:]
		}
	}
	return text
}

// placed matches errors that name a line and a column, and errors about a file as a whole.
var placed = regexp.MustCompile(`:\d+:\d+: |file is empty|file not found|` +
	`is a directory|not a directory|file name too long|registry .* is not valid:|` +
	`the object has no list`)

// Check reads a file. It reports an error that has no place, more than 1 KB or control characters,
// and a reader that allocates more than 256 MB. It returns the error.
func Check(t testing.TB, read func() error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := read()
	runtime.ReadMemStats(&after)
	// The race detector, which runs the tests of -short, makes pools drop their contents.
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 256 && !testing.Short() {
		t.Errorf("allocated %d MB in total", mb)
	}
	if err == nil {
		return nil
	}
	message := err.Error()
	control := func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\t' }
	if len(message) > 1024 || strings.ContainsFunc(message, control) ||
		!placed.MatchString(message) {
		t.Errorf("error of %d bytes: %q", len(message), message)
	}
	return err
}

// YAML returns broken and oversized YAML files by name. The size is about the size of the largest
// in bytes.
func YAML(size int) map[string]string {
	repeat := func(text string) string { return strings.Repeat(text, size/len(text)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	half := strings.Repeat("x", size/2)
	return map[string]string{
		"aliases":           "a: &a [x, x]\n" + numbered("b%[1]d: &b%[1]d [*a, *a]\n"),
		"anchors":           repeat("&a "),
		"anchors nested":    "a: &a [*a]\n",
		"billion laughs":    laughs(),
		"block":             stairs(size, "a:"),
		"block lists":       stairs(size, "-"),
		"brackets":          "a: " + repeat("["),
		"braces":            "a: " + repeat("{a: "),
		"closed brackets":   "a: " + strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"colons":            repeat("a: "),
		"commas":            "a: [" + repeat(","),
		"comment":           "# " + repeat("x") + "\nname: x\n",
		"comments":          repeat("# x\n"),
		"control":           "name: \"\x1b[31m\x07\x08" + repeat("\x1b[2J") + "\"\n",
		"control key":       "\x1b[31mred\x1b[0m: 1\n",
		"crlf":              numbered("k%d: 1\r\n"),
		"documents":         repeat("---\n"),
		"entries":           "models: [" + repeat("a, ") + "]\n",
		"escapes":           "name: \"" + repeat("\\x1b") + "\"\n",
		"invalid utf-8":     "name: " + repeat("\xff\xfe") + "\n",
		"invalid utf-8 key": "\xff\xfe: 1\n",
		"keys":              numbered("k%d: 1\n"),
		"line":              "name: " + repeat("x") + "\n",
		"literal":           "name: |\n" + repeat("  x\n"),
		"long key":          repeat("x") + ": 1\n",
		"long name above":   half + ":\n" + strings.Repeat("- a\n", size/8),
		"long value":        "models: [a]\nvariants: [" + repeat("x") + "]\n",
		"lines":             repeat("\n"),
		"list":              repeat("- a\n"),
		"lists in a line":   repeat("- "),
		"many in brackets":  "a: [" + repeat("[],") + "]",
		"merge":             "a: &a {b: c}\n" + repeat("<<: *a\n"),
		"names in braces":   padded(size, "{", "k%d,", "}"),
		"nul":               "name: " + repeat("\x00") + "\n",
		"nul key":           "a\x00b: 1\n",
		"pairs in brackets": "a: [" + repeat("a: "),
		"question marks":    repeat("? "),
		"quote":             "name: '" + repeat("x "),
		"quotes":            repeat("'a' "),
		"spaces":            repeat(" ") + "name: x",
		"tabs":              repeat("\t") + "name: x",
		"tags":              repeat("!a "),
		"unknown fields":    "parts: [" + repeat("{x: 1}, ") + "]",
	}
}

// JSON returns broken and oversized JSON files by name, as YAML does.
func JSON(size int) map[string]string {
	repeat := func(text string) string { return strings.Repeat(text, size/len(text)) }
	var keys strings.Builder
	for i := 0; keys.Len() < size; i++ {
		fmt.Fprintf(&keys, `"k%d":1,`, i)
	}
	return map[string]string{
		"brackets":        repeat("["),
		"braces":          repeat(`{"tasks":`),
		"closed brackets": strings.Repeat("[", size/2) + strings.Repeat("]", size/2),
		"below a task":    `[{"id": "a", "inputs": ` + strings.Repeat("[", size/2) + strings.Repeat("]", size/2) + "}]",
		"commas":          "[" + repeat(","),
		"control":         "[\"\x1b[31m\x07\"]",
		"control name":    `[{"id": "\u001b[31m", "task_type": "\u001b[31mx", "required_tools": ["\u0007"]}]`,
		"empty tasks":     "[" + repeat("{},") + "{}]",
		"invalid utf-8":   "[{\"id\": \"" + repeat("\xff") + "\"}]",
		"keys":            "{" + keys.String() + `"tasks":[]}`,
		"keys of a task":  "[{" + keys.String() + `"id":"a"}]`,
		"long name":       `[{"id": "a", "task_type": "` + repeat("x") + `", "required_tools": ["x"]}]`,
		"long tool":       `[{"id": "a", "task_type": "simple_task", "description": "x", "required_tools": ["` + repeat("x") + `"]}]`,
		"nul":             repeat("\x00"),
		"numbers":         "[" + repeat("1,") + "1]",
		"spaces":          repeat(" "),
		"string":          `"` + repeat("x"),
		"tools":           "{" + strings.ReplaceAll(keys.String(), ":1", ":{}") + `"k":{}}`,
	}
}

// stairs returns lines of which each is within the one before.
func stairs(size int, text string) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat(" ", i) + text + "\n")
	}
	return b.String()
}

// padded returns a list or a mapping with as many entries as a file of the size may have.
func padded(size int, open, entry, end string) string {
	var b strings.Builder
	b.WriteString("a: " + open)
	for i := range 49_990 + size/16 {
		fmt.Fprintf(&b, entry, i)
	}
	b.WriteString(end + "\n")
	return b.String() + "b: " + strings.Repeat("x", max(0, size-b.Len())) + "\n"
}

// laughs returns a small file that would be huge if its aliases were written in full.
func laughs() string {
	text := "a0: &a0 [lol, lol]\n"
	for i := 1; i <= 30; i++ {
		text += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i, i, i-1, i-1)
	}
	return text
}
