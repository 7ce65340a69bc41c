//go:build !race

package library_test

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/library"
	"github.com/assay-eval/assay/internal/task/phrasing"
)

// A wordingReader finds the steps of tasks in their texts, by the wordings of a difficulty.
type wordingReader []stepPattern

// A stepPattern finds a step. Its groups are the values that the wording has. Literal is the wording's
// longest part without values, in lower case, because few texts need the regular expression.
type stepPattern struct {
	verb, literal string
	re            *regexp.Regexp
}

// values are the patterns of marks. The values of most count for a task; those without a group do not,
// because where records and files are named first depends on the order of the text.
var values = map[string]string{
	"file": `(?:the file(?: \S+\.\w+)?)`, "of": `(?: of \S+\.\w+)?`,
	"things":  `(?:[a-z]+ ?){1,4}?(?: of [A-Z][a-z]+ 20\d\d)?`,
	"minutes": `(\d+)`, "hours": `(\d+)`, "horizon": `(\d+)`, "runs": `(\d+)`, "time": `(\d\d:\d\d)`,
	"in": `([A-Z]+)`, "out": `([A-Z]+)`, "prefix": `([A-Z]+)`, "system": `([\w-]+)`, "target": `([\w-]+)`,
	"value": `([\w-]+)`, "label": `([\w-]+(?: [\w-]+)?)`, "measure": `([\w-]+(?: [\w-]+){0,2}?)`,
	"team": `([\w-]+(?: [\w-]+){0,3}?)`, "condition": `([\w-]+(?: [\w-]+){0,3}? is (?:at least )?[\w-]+)`,
}

var (
	markInText = regexp.MustCompile(`\{\w+\}`)
	markText   = regexp.MustCompile(`\\\{(\w+)\\\}`)
)

func newWordingReader(wordings map[string][]string) (r wordingReader) {
	for verb, list := range wordings {
		for _, w := range list {
			text := markText.ReplaceAllStringFunc(regexp.QuoteMeta(w), func(mark string) string {
				return cmp.Or(values[strings.Trim(mark, `\{}`)], `(\S+?)`)
			})
			literal := slices.MaxFunc(markInText.Split(strings.ToLower(w), -1), func(a, b string) int {
				return len(a) - len(b)
			})
			r = append(r, stepPattern{verb, literal, regexp.MustCompile(`(?i)\b` + text + `(?:[.,;?]? |[.,;?]?$)`)})
		}
	}
	return r
}

// read returns the steps of a text in their order, each with its values. Of wordings that overlap, the
// longest counts.
func (r wordingReader) read(text string) (steps []string) {
	type found struct {
		at   []int
		step string
	}
	var all []found
	lower := strings.ToLower(text)
	for _, p := range r {
		if !strings.Contains(lower, p.literal) {
			continue
		}
		for _, at := range p.re.FindAllStringSubmatchIndex(text, -1) {
			step := p.verb
			for i := 2; i < len(at); i += 2 {
				step += " " + strings.TrimSuffix(text[at[i]:at[i+1]], " and") // of the next step
			}
			all = append(all, found{at[:2], step})
		}
	}
	slices.SortFunc(all, func(a, b found) int { return (b.at[1] - b.at[0]) - (a.at[1] - a.at[0]) })
	var kept []found
	for _, f := range all {
		if !slices.ContainsFunc(kept, func(k found) bool { return f.at[0] < k.at[1]-1 && k.at[0] < f.at[1]-1 }) {
			kept = append(kept, f)
		}
	}
	slices.SortFunc(kept, func(a, b found) int { return a.at[0] - b.at[0] })
	for _, f := range kept {
		steps = append(steps, f.step)
	}
	return steps
}

// ordered returns the steps of a text in the order in which they are to be made. Texts that tell them
// backwards say so, and what somebody wants is the last step wherever it stands.
func (r wordingReader) ordered(text, difficulty string) []string {
	steps := r.read(text)
	if regexp.MustCompile(`^(Last of all|At the very end|As the last step), `).MatchString(text) {
		slices.Reverse(steps)
	}
	if strings.HasSuffix(difficulty, "hard") {
		slices.Sort(steps)
	}
	return steps
}

// TestPhrasingsKeepTheSteps checks that a reader finds the same steps with the same values in each text of
// built-in tasks of each scenario, and that typed ones differ from plain ones by nothing but errors that can be
// corrected. It also misses a step that is left out, and a value.
func TestPhrasingsKeepTheSteps(t *testing.T) {
	t.Parallel()
	lib, err := library.Builtin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer lib.Close()
	readers := make(map[string]wordingReader)
	for _, d := range assay.Difficulties {
		readers[d] = newWordingReader(library.Wordings(d))
	}
	n, missed := 0, 0
	for task := range oncePerWording {
		number := strings.TrimLeft(string(task.ID), "abcdefghijklmnopqrstuvwxyz-")
		if task.Wording != "" || number > "042" || testing.Short() && number > "008" { // 042 has each scenario
			continue
		}
		r := readers[task.Difficulty]
		want := r.ordered(task.Description, task.Difficulty)
		if len(want) == 0 || task.Difficulty != "very_hard" && len(want) != len(task.Required) {
			t.Errorf("%s at %s: %s\nhas %q", task.ID, task.Difficulty, task.Description, want)
		}
		for _, name := range assay.Phrasings[1:] {
			trial := assay.Trial{Task: task.ID, Cell: assay.Cell{Difficulty: task.Difficulty, Phrasing: name}}
			put, err := lib.TaskOf(t.Context(), &trial)
			if err != nil {
				t.Fatal(err)
			}
			text := put.Description
			if text == task.Description {
				t.Errorf("%s at %s, %s: %s is plain", task.ID, task.Difficulty, name, text)
			}
			if name == assay.Typed {
				text = corrected(text, task.Description)
				if text != task.Description {
					t.Errorf("%s\nis corrected to %s", put.Description, text)
				}
				continue
			}
			n++
			got := r.ordered(text, task.Difficulty)
			if !slices.Equal(got, want) {
				t.Errorf("%s at %s, %s: %s\nhas %q, want %q", task.ID, task.Difficulty, name, text, got, want)
			}
			for i := range strings.Count(text, ". ") {
				if number > "008" {
					break
				}
				sentences := strings.SplitAfter(text, ". ")
				if len(r.read(sentences[i])) > 0 {
					rest := strings.Join(slices.Delete(sentences, i, i+1), "")
					if slices.Equal(r.ordered(rest, task.Difficulty), want) {
						missed++
						t.Logf("%s: without a step: %s", name, rest)
					}
				}
			}
		}
	}
	if n < 300 || missed > 0 {
		t.Errorf("%d texts, %d steps are not missed", n, missed)
	}
}

// corrected returns a text with the words of another one that differ by one typing error.
func corrected(text, plain string) string {
	words, meant := strings.Split(text, " "), strings.Split(plain, " ")
	if len(words) != len(meant) {
		return text
	}
	for i := range words {
		if phrasing.Near(strings.Trim(words[i], ".,;:"), strings.Trim(meant[i], ".,;:")) {
			words[i] = meant[i]
		}
	}
	return strings.Join(words, " ")
}
