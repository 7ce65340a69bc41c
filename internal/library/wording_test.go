package library_test

import (
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/library"
)

// TestClausesFindTheirTools guards what keyword agents live on: a clause of a
// built-in task, put to a BM25 search over names and descriptions, mostly
// finds the tool that it asks for.
func TestClausesFindTheirTools(t *testing.T) {
	t.Parallel()
	idx := newIndex(library.Tools())
	perTool := make(map[string][2]int) // hits, clauses
	var hits, all int
	for task := range library.Generate() {
		clauses := clauseEnds.Split(task.Description, -1)
		if len(clauses) != len(task.Required) {
			t.Errorf("%s has %d clauses for %d tools: %s", task.ID, len(clauses), len(task.Required), task.Description)
			continue
		}
		for i, c := range clauses {
			n := perTool[task.Required[i]]
			n[1]++
			all++
			if got := idx.first(c); got == task.Required[i] {
				n[0]++
				hits++
			} else if testing.Verbose() {
				t.Logf("%s: %q found %s, not %s", task.ID, c, got, task.Required[i])
			}
			perTool[task.Required[i]] = n
		}
	}
	t.Logf("%d of %d clauses find their tool first", hits, all)
	if float64(hits) < 0.9*float64(all) {
		t.Errorf("only %d of %d clauses find their tool first", hits, all)
	}
	for _, tool := range library.Tools() {
		if n := perTool[tool.Name]; 2*n[0] < n[1] || n[1] == 0 {
			t.Errorf("%s: %d of %d clauses find it", tool.Name, n[0], n[1])
		}
	}
}

var clauseEnds = regexp.MustCompile(`\. |; |, then `)

func words(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// index is the least BM25 that can rank tools: the weight of each word for
// the tools that it occurs in.
type index struct {
	names   []string
	weights map[string]map[int]float64
}

func newIndex(tools []assay.Tool) *index {
	x := &index{weights: make(map[string]map[int]float64)}
	size := make([]float64, len(tools))
	var mean float64
	for i, tool := range tools {
		x.names = append(x.names, tool.Name)
		for _, w := range words(tool.Name + " " + tool.Description) {
			if x.weights[w] == nil {
				x.weights[w] = make(map[int]float64)
			}
			x.weights[w][i]++
			size[i]++
			mean += 1 / float64(len(tools))
		}
	}
	for _, counts := range x.weights {
		df := float64(len(counts))
		idf := math.Log(1 + (float64(len(tools))-df+0.5)/(df+0.5))
		for i, n := range counts {
			counts[i] = idf * n * 2.2 / (n + 1.2*(0.25+0.75*size[i]/mean))
		}
	}
	return x
}

func (x *index) first(query string) string {
	scores := make([]float64, len(x.names))
	for _, w := range words(query) {
		for i, weight := range x.weights[w] {
			scores[i] += weight
		}
	}
	return x.names[slices.Index(scores, slices.Max(scores))]
}
