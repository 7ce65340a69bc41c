//go:build !race

package fresh_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/fresh"
)

// A reader knows what the descriptions of tools say: the records that they take and make, and their
// numbers, by the word that follows each.
type reader struct {
	names        []string
	takes, makes map[string]string
	numbers      map[string]map[string]int
	verbs        map[string]string // the tool of each form of its verb
	kinds        []string          // all records
}

var (
	madeText   = regexp.MustCompile(`^The (.+), in the order of the (.+)\.$`)
	numberText = regexp.MustCompile(`(\d+) (\w+)`)
	limitText  = regexp.MustCompile(`at (most|least) (\d+) (\w+)`)
	changeText = regexp.MustCompile(`(\d+) (higher|lower)`)
	// deciders are the ways to say who decides.
	deciders = []*regexp.Regexp{
		regexp.MustCompile(`^It is the (.+) who decide, and not the .+\.$`),
		regexp.MustCompile(`^What the .+ want does not count here, and what the (.+) want does\.$`),
		regexp.MustCompile(`^Do not go by the .+, go by the (.+)\.$`),
		regexp.MustCompile(`^Go by the (.+), do not go by the .+\.$`),
		regexp.MustCompile(`^The .+ have given way to the (.+)\.$`),
		regexp.MustCompile(`^The (.+) have it their way, much as the .+ regret it\.$`),
		regexp.MustCompile(`^For once, the .+ have no say in this, as opposed to the (.+)\.$`),
	}
)

func newReader(t *testing.T, tools []assay.Tool) *reader {
	t.Helper()
	r := &reader{
		takes: make(map[string]string), makes: make(map[string]string),
		numbers: make(map[string]map[string]int), verbs: make(map[string]string),
	}
	for _, tool := range tools {
		i := slices.IndexFunc(tool.Returns, func(r assay.Return) bool { return r.Name == "data" })
		if i < 0 {
			continue
		}
		found := madeText.FindStringSubmatch(tool.Returns[i].Description)
		if found == nil {
			t.Fatalf("no records in %q", tool.Returns[i].Description)
		}
		r.names = append(r.names, tool.Name)
		r.makes[tool.Name], r.takes[tool.Name] = found[1], found[2]
		r.numbers[tool.Name] = make(map[string]int)
		for _, n := range numberText.FindAllStringSubmatch(tool.Description, -1) {
			r.numbers[tool.Name][n[2]], _ = strconv.Atoi(n[1])
		}
		r.kinds = append(r.kinds, found[2], found[1])
		verb, _, _ := strings.Cut(tool.Name, "_")
		stem := strings.TrimSuffix(verb, "e")
		for _, form := range []string{verb, stem + "ed", stem + "ing"} {
			r.verbs[form] = tool.Name
		}
	}
	return r
}

// A bound is a limit as the text states it.
type bound struct {
	least  bool
	number int
	of     string
}

// bounds returns the limits of a text in order.
func bounds(text string) (all []bound) {
	for _, found := range limitText.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[2])
		all = append(all, bound{found[1] == "least", n, found[3]})
	}
	return all
}

func (r *reader) keeps(tool string, limits []bound) bool {
	return !slices.ContainsFunc(limits, func(b bound) bool {
		n, ok := r.numbers[tool][b.of]
		return !ok || b.least && n < b.number || !b.least && n > b.number
	})
}

// paths returns the paths between records that keep to limits.
func (r *reader) paths(from, to string, limits []bound, most int) (all [][]string) {
	if from == to {
		all = append(all, nil)
	}
	for _, tool := range r.names {
		if most > 0 && r.takes[tool] == from && r.keeps(tool, limits) {
			for _, rest := range r.paths(r.makes[tool], to, limits, most-1) {
				all = append(all, append([]string{tool}, rest...))
			}
		}
	}
	return all
}

// decided returns the limits of the team that decides.
func decided(t *testing.T, text string) []bound {
	t.Helper()
	sentences := strings.SplitAfter(text, ". ")
	last := sentences[len(sentences)-1]
	winner := ""
	for _, d := range deciders {
		if found := d.FindStringSubmatch(last); found != nil {
			winner = found[1]
		}
	}
	if winner == "" {
		t.Fatalf("nobody decides in %q", last)
	}
	all := bounds(text)
	if changes := changeText.FindAllStringSubmatch(text, -1); len(changes) == 2 {
		for i, c := range changes {
			n, _ := strconv.Atoi(c[1])
			if c[2] == "lower" {
				n = -n
			}
			all = append(all, bound{all[i].least, all[i].number + n, all[i].of})
		}
	}
	if len(all) != 4 {
		t.Fatalf("%d limits in %q", len(all), text)
	}
	// The first team is named where its limits begin.
	before := text[:limitText.FindStringIndex(text)[0]]
	before = before[strings.LastIndex(before, ". ")+2:]
	if strings.Contains(before, "he "+winner+" ") {
		return all[:2]
	}
	return all[2:]
}

// TestTextsDetermineSolutions reads tasks as a careful reader does, and finds exactly one path of
// tools: the required one.
func TestTextsDetermineSolutions(t *testing.T) {
	t.Parallel()
	for _, seed := range []string{"3", "8"} {
		g := fresh.New(seed)
		r := newReader(t, g.Tools())
		for _, task := range tasksOf(t, g, 15) {
			var limits []bound
			switch task.Difficulty {
			case "medium":
				limits = bounds(task.Description)
			case "hard", "very_hard":
				limits = decided(t, task.Description)
			default:
				continue
			}
			from, to := r.takes[task.Required[0]], r.makes[task.Required[len(task.Required)-1]]
			for _, kind := range []string{from, to} {
				if task.Difficulty == "medium" && !strings.Contains(task.Description, kind) {
					t.Errorf("%s does not name %s", task.Description, kind)
				}
			}
			if got := r.paths(from, to, limits, 10); len(limits) != 2 || len(got) != 1 ||
				!slices.Equal(got[0], task.Required) {
				t.Errorf("%s\nhas the solutions %v, want %v", task.Description, got, task.Required)
			}
		}
	}
}
