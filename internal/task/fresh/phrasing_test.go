//go:build !race

package fresh_test

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
	"github.com/assay-eval/assay/internal/task/fresh"
	"github.com/assay-eval/assay/internal/task/phrasing"
)

var (
	monthText    = regexp.MustCompile(`(January|February|March|April|May|June|July|August|September|October|November|December) 20\d\d`)
	sentenceEnd  = regexp.MustCompile(`[.!?)]+ +`)
	backwardText = regexp.MustCompile(`^(Last of all|At the very end|As the last step)\b`)
	wordText     = regexp.MustCompile(`[A-Za-z]+`)
	// others are the ways to say who decides in other words than plain ones.
	others = []*regexp.Regexp{
		regexp.MustCompile(`^Anyway, it's the (.+) who get to decide, and not the .+$`),
		regexp.MustCompile(`^Don't go by what the .+ say, it's what the (.+) say that counts$`),
		regexp.MustCompile(`^It's up to the (.+), so never mind the .+$`),
		regexp.MustCompile(`^The .+ aren't happy about it, but the (.+) have the last word$`),
	}
	allDeciders = slices.Concat(deciders, others)
)

// solve reads a text in any words. It knows nothing about their order, except where a text tells its
// steps from the last one: what is said about a month is where the work begins.
func (r *reader) solve(text string) ([]string, error) {
	var steps []string
	var from, origin, goal, sequel, winner string
	backward := false
	for _, sentence := range sentenceEnd.Split(strings.TrimRight(text, ".!?) "), -1) {
		var tools []string
		for _, w := range wordText.FindAllString(sentence, -1) {
			if tool, ok := r.verbs[strings.ToLower(w)]; ok && !slices.Contains(tools, tool) {
				tools = append(tools, tool)
			}
		}
		var about []string
		for _, k := range r.kinds {
			if strings.Contains(sentence, k) && !slices.Contains(about, k) {
				about = append(about, k)
			}
		}
		for _, d := range allDeciders {
			for _, form := range []string{sentence, sentence + "."} {
				if found := d.FindStringSubmatch(form); found != nil {
					winner = found[1]
				}
			}
		}
		month := strings.Contains(sentence, " 20") && monthText.MatchString(sentence) // few sentences need the latter
		switch {
		case month && len(tools) == 1:
			origin = tools[0]
		case month && len(about) == 1:
			from = about[0]
		case len(tools) == 1 && slices.Contains(about, r.takes[tools[0]]):
			backward = backward || len(steps) == 0 && backwardText.MatchString(sentence)
			steps = append(steps, tools[0])
		case len(tools) == 1:
			sequel = tools[0]
		case len(about) == 1 && !strings.Contains(text, "in the same cabinet"):
			goal = about[0]
		}
	}
	if backward {
		slices.Reverse(steps)
	}
	limits, err := r.limits(text, winner)
	if err != nil || limits == nil {
		return steps, err
	}
	to := goal
	switch {
	case len(steps) > 0:
		from, to = cmpOr(from, r.takes[steps[0]]), r.makes[steps[len(steps)-1]]
	case sequel != "":
		to = r.takes[sequel]
	}
	if origin != "" {
		from = r.makes[origin]
	}
	if from == "" || to == "" {
		return nil, fmt.Errorf("from %q to %q", from, to)
	}
	paths := r.paths(from, to, limits, 10)
	paths = slices.DeleteFunc(paths, func(p []string) bool {
		return slices.ContainsFunc(steps, func(s string) bool { return !slices.Contains(p, s) })
	})
	if len(paths) != 1 {
		return nil, fmt.Errorf("%d paths from %s to %s", len(paths), from, to)
	}
	return paths[0], nil
}

func cmpOr(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// limits returns the limits that count, or nil if the text has none.
func (r *reader) limits(text, winner string) ([]bound, error) {
	all := bounds(text)
	changes := changeText.FindAllStringSubmatch(text, -1)
	switch {
	case len(all) == 0 && winner == "" && !strings.Contains(text, "operations"):
		return nil, nil
	case len(all) == 2 && winner == "" && len(changes) == 0:
		return all, nil
	case winner == "" || len(all)+len(changes) != 4:
		return nil, errors.New("nobody decides, or a limit is missing")
	}
	for i, c := range changes {
		n := 0
		if _, err := fmt.Sscan(c[1], &n); err != nil {
			return nil, err
		}
		if c[2] == "lower" {
			n = -n
		}
		all = append(all, bound{all[i].least, all[i].number + n, all[i].of})
	}
	before := text[:limitText.FindStringIndex(text)[0]]
	if i := strings.LastIndex(before, ". "); i >= 0 {
		before = before[i:]
	}
	if regexp.MustCompile(`\b` + winner + `\b`).MatchString(before) {
		return all[:2], nil
	}
	return all[2:], nil
}

// corrected returns a text with each word that is not in the vocabulary replaced by the only one of it
// that becomes this word by one typing error.
func corrected(text string, vocabulary map[string]bool) string {
	return wordText.ReplaceAllStringFunc(text, func(w string) string {
		lower := strings.ToLower(w)
		if vocabulary[lower] {
			return w
		}
		found := make(map[string]bool)
		for i := range lower {
			found[lower[:i]+lower[i+1:]] = true
			if i > 0 {
				found[lower[:i-1]+lower[i:i+1]+lower[i-1:i]+lower[i+1:]] = true
			}
		}
		for i := range len(lower) + 1 {
			for c := 'a'; c <= 'z'; c++ {
				found[lower[:i]+string(c)+lower[i:]] = true
			}
		}
		var meant []string
		for word := range found {
			if vocabulary[word] {
				meant = append(meant, word)
			}
		}
		if len(meant) != 1 {
			return "?" + w
		}
		return w[:1] + meant[0][1:]
	})
}

// TestPhrasingsKeepTheGoal checks that a reader finds the solution of every task of five seeds in each of
// its texts, and that typed ones differ from plain ones by nothing but errors that can be corrected.
func TestPhrasingsKeepTheGoal(t *testing.T) {
	t.Parallel()
	n := 126
	if testing.Short() {
		n = 12
	}
	for _, seed := range []string{"1", "2", "3", "4", "5"} {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			g := fresh.New(seed)
			r := newReader(t, g.Tools())
			tasks, vocabulary := tasksOf(t, g, n), make(map[string]bool)
			for _, task := range tasks {
				for w := range phrasing.Words(task.Description) {
					vocabulary[w] = true
				}
			}
			var id assay.TaskID
			var texts map[string]map[string]string
			for _, task := range tasks {
				if task.ID != id {
					id, texts = task.ID, g.Phrasings(task.ID)
				}
				all := texts[task.Description]
				if len(all) != len(assay.Phrasings)-1 {
					t.Fatalf("%s at %s has %d texts", task.ID, task.Difficulty, len(all))
				}
				for _, name := range assay.Phrasings {
					text := all[name]
					switch name {
					case assay.Plain:
						text = task.Description
					case assay.Typed:
						if text = corrected(text, vocabulary); text != task.Description {
							t.Errorf("%s: %s\nis corrected to %s", task.ID, all[name], text)
						}
						if all[name] == task.Description {
							t.Errorf("%s has no typing errors: %s", task.ID, text)
						}
						continue // the reader has read this text
					default:
						if text == task.Description {
							t.Errorf("%s: %s is plain", task.ID, text)
						}
					}
					if got := solution(r, text, &task); got != "" {
						t.Errorf("%s at %s, %s: %s\n%s", task.ID, task.Difficulty, name, text, got)
					}
				}
			}
		})
	}
}

// solution returns "" if a reader finds the required tools in a text, or what it finds.
func solution(r *reader, text string, task *assay.Task) string {
	got, err := r.solve(text)
	if err == nil && slices.Equal(got, task.Required) {
		return ""
	}
	return fmt.Sprintf("%v, %v, want %v", got, err, task.Required)
}

var digits = regexp.MustCompile(`\d+`)

// TestReaderNoticesWhatIsMissing checks that the reader does not find the solution of a text without one
// of its limits, and of one whose teams have changed places where it says who decides.
func TestReaderNoticesWhatIsMissing(t *testing.T) {
	t.Parallel()
	g := fresh.New("2")
	r := newReader(t, g.Tools())
	numbers, missed := 0, 0
	for _, task := range tasksOf(t, g, 6) {
		for name, text := range g.Phrasings(task.ID)[task.Description] {
			if name == assay.Typed {
				continue
			}
			dated := monthText.FindStringIndex(text)
			for _, at := range digits.FindAllStringIndex(text, -1) {
				if dated != nil && at[0] >= dated[0] && at[1] <= dated[1] {
					continue
				}
				numbers++
				if solution(r, text[:at[0]]+text[at[1]:], &task) == "" {
					missed++
					t.Logf("%s: without %s: %s", name, text[at[0]:at[1]], text)
				}
			}
			sentences := strings.SplitAfter(text, ". ")
			if task.Difficulty != "very_easy" || len(sentences) < 3 {
				continue
			}
			for i := range sentences {
				if r.says(sentences[i]) && solution(r, strings.Join(slices.Delete(slices.Clone(sentences), i, i+1), ""), &task) == "" {
					t.Errorf("%s: without %q: %s", name, sentences[i], text)
				}
			}
		}
	}
	if numbers < 500 || missed > 0 {
		t.Errorf("%d of %d numbers are not missed", missed, numbers)
	}
}

// says reports whether a sentence names an operation.
func (r *reader) says(sentence string) bool {
	return slices.ContainsFunc(wordText.FindAllString(sentence, -1), func(w string) bool {
		return r.verbs[strings.ToLower(w)] != ""
	})
}

// TestPhrasingsUseNoNames checks that no word of the other phrasings has a stem that names can have.
func TestPhrasingsUseNoNames(t *testing.T) {
	t.Parallel()
	names, plain := make(map[string]string), make(map[string]bool)
	for _, file := range []string{"data/domains.yaml", "data/words.yaml"} {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if i := strings.Index(string(b), "\ntasks:"); i >= 0 {
			for _, stem := range bm25.Words(string(b[i:])) { // names have none of these, either
				plain[stem] = true
			}
		}
		for line := range strings.Lines(string(b)) {
			field, list, _ := strings.Cut(strings.TrimSpace(line), ": ")
			if field == "heads" || field == "verbs" {
				for _, stem := range bm25.Words(list) {
					names[stem] = list
				}
			}
		}
	}
	b, err := os.ReadFile("data/phrasings.yaml")
	if err != nil {
		t.Fatal(err)
	}
	talk := slices.Concat(phrasing.SmallTalk.Openings, phrasing.SmallTalk.Asides, phrasing.SmallTalk.Closings)
	marks := regexp.MustCompile(`\{\w+\}|(?m)^ *#.*$|^\w+:`)
	for _, stem := range bm25.Words(marks.ReplaceAllString(string(b), "") + strings.Join(talk, " ")) {
		if list, taken := names[stem]; taken && !plain[stem] {
			t.Errorf("%s is also in %.60s", stem, list)
		}
	}
}
