//go:build !race

package yamldoc_test

import (
	"bytes"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/assay-eval/assay/internal/task/yamldoc"
	"github.com/assay-eval/assay/internal/task/yamldoc/yamldoctest"
)

// nested returns a value within depth mappings or lists.
var nested = map[string]func(depth int) string{
	"brackets": func(n int) string { return strings.Repeat("[", n) + "a" + strings.Repeat("]", n) },
	"braces":   func(n int) string { return strings.Repeat("{a: ", n) + "a" + strings.Repeat("}", n) },
	"line":     func(n int) string { return strings.Repeat("- ", n) + "a" },
	"lines": func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(strings.Repeat(" ", i) + "a:\n")
		}
		return b.String()
	},
	"mixed": func(n int) string {
		return strings.Repeat("- ", n/2) + strings.Repeat("[", n-n/2) + strings.Repeat("]", n-n/2)
	},
	"below a field": func(n int) string {
		var b strings.Builder
		for i := range (n - 1) / 2 {
			fmt.Fprintf(&b, "%sa:\n%[1]s- b: 1\n%[1]s  c: 2\n", strings.Repeat("  ", i))
		}
		return b.String()
	},
}

func TestDepthIsLimited(t *testing.T) {
	t.Parallel()
	for name, text := range nested {
		for depth, deep := range map[int]bool{90: false, 100: false, 102: true, 20_000: true} {
			if name == "lines" || name == "below a field" {
				depth = min(depth, 1000) // the text grows with the square
			}
			_, err := yamldoc.Parse("f.yaml", []byte(text(depth)), yamldoc.Help{})
			got := err != nil && strings.Contains(err.Error(), "nested more than 100 levels deep")
			if got != deep {
				t.Errorf("%s, %d levels deep: error = %v", name, depth, err)
			}
		}
	}
	want := "f.yaml:2:104: nested more than 100 levels deep\n"
	_, err := yamldoc.Parse("f.yaml", []byte("a: 1\nb: "+nested["brackets"](101)), yamldoc.Help{})
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error = %v\nwant %s", err, want)
	}
}

// TestWideFiles checks that files with many values, but few levels, can be read.
func TestWideFiles(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"fields": numbered("field_%d: value\n", 15_000),
		"tasks":  "tasks:\n" + strings.Repeat("- id: a\n  calls:\n  - tool: x\n    arguments: {a: 1}\n", 1500),
		"flow":   "a: [" + strings.Repeat("[1, [2]], ", 5000) + "]\n",
		"prose":  "a: |\n" + strings.Repeat("  some text, with (few) signs; it is \"long\" - as prose is\n", 12_000),
		"base64": "a: " + strings.Repeat("QUJD+/09", 100_000) + "\n",
	} {
		if _, err := yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestHostileFiles checks that each ends in an error of at most 1 KB that has a place and no
// control characters, or can be read. While it is read, the heap grows by at most 64 MB and 24
// times the size of the file.
func TestHostileFiles(t *testing.T) {
	size := 2 << 20
	if testing.Short() {
		size = 1 << 17
	}
	for name, text := range yamldoctest.YAML(size) {
		var doc *yamldoc.Document
		var err error
		limit := 64<<20 + 24*int64(len(text))
		grown := growth(limit, func() {
			if doc, err = yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{}); err == nil {
				err = doc.Decode(new(file))
			}
		})
		if grown > limit {
			t.Errorf("%s: the heap grows by %d MB", name, grown>>20)
		}
		if err == nil {
			continue
		}
		if message := err.Error(); len(message) > 1024 || !strings.HasPrefix(message, "f.yaml:") ||
			bytes.ContainsAny([]byte(message), "\x00\x07\x08\x1b\x7f\r") {
			t.Errorf("%s: %d bytes: %q", name, len(message), message)
		}
	}
}

// growth returns by how much the heap grows during a function, which should need no more than a
// number of bytes.
func growth(limit int64, do func()) int64 {
	debug.FreeOSMemory()
	before := heap()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(before + limit))
	do()
	return heap() - before
}

func heap() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapSys - m.HeapReleased)
}

// TestLargeTasksFile checks that a file of 10 MB with 200,000 values can be read.
func TestLargeTasksFile(t *testing.T) {
	n := 22_300
	if testing.Short() {
		n /= 10
	}
	prose := strings.Repeat("words of prose, with a comma in 40 bytes ", 7)
	text := "tasks:\n" + numbered(
		"- id: task-%[1]d\n  prompt: \"Book flight %[1]d. "+prose+"\"\n  tools: [a, b]\n  judge:\n"+
			"    calls:\n    - tool: book\n      arguments: {flight: %[1]d, seat: 12A}\n"+
			"    state: {sum: %[1]d}\n", n)
	var tasks struct {
		Tasks []map[string]any `yaml:"tasks"`
	}
	limit := 64<<20 + 12*int64(len(text))
	grown := growth(limit, func() {
		doc, err := yamldoc.Parse("f.yaml", []byte(text), yamldoc.Help{})
		if err == nil {
			err = doc.Decode(&tasks)
		}
		if err != nil || len(tasks.Tasks) != n {
			t.Errorf("%d tasks, error = %v", len(tasks.Tasks), err)
		}
	})
	if grown > limit {
		t.Errorf("%d MB: the heap grows by %d MB", len(text)>>20, grown>>20)
	}
}
