package world

import (
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
)

// SearchResults is how many tools a search returns at most.
const SearchResults = 5

// Search finds tools by what they do. The texts are the catalog's alone, so
// no result depends on a task. It is immutable and safe for concurrent use.
type Search struct {
	catalog *assay.Catalog
	index   *bm25.Index
}

// NewSearch indexes the catalog's tools.
func NewSearch(catalog *assay.Catalog) *Search {
	var texts []string
	for _, t := range catalog.All() {
		texts = append(texts, toolText(t))
	}
	return &Search{catalog: catalog, index: bm25.New(texts)}
}

// toolText holds the words by which a tool can be found. The name's words
// stand twice: a name says what a tool is for more than any other text.
func toolText(t assay.Tool) string {
	words := []string{t.Name, t.Category, t.Operation, t.Description}
	for _, p := range t.Parameters {
		if p.Name != "options" {
			words = append(words, p.Name)
		}
	}
	return strings.Join(words, " ")
}

// Tools returns the tools that fit the query best, best first.
func (s *Search) Tools(query string) []assay.Tool {
	var tools []assay.Tool
	for _, h := range s.index.Search(query, SearchResults) {
		tools = append(tools, s.catalog.All()[h.Doc])
	}
	return tools
}
