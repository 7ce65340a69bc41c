package world

import (
	"strings"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/bm25"
)

// SearchResults is the maximum number of tools that a search returns.
const SearchResults = 5

// Search finds tools by their descriptions. It only indexes the catalog's own texts, so results do
// not depend on a task. It is immutable and safe for concurrent use.
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

// toolText returns the words by which a tool can be found. The words of the name occur twice,
// because category and operation repeat them. A name describes a tool better than other texts.
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
