package world_test

import (
	"testing"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/task/world"
)

func TestSearchFindsByWords(t *testing.T) {
	t.Parallel()
	catalog := assay.NewCatalog([]assay.Tool{
		{Name: "parse", Description: "turn raw text into records"},
		{Name: "check", Description: "compare records with a schema"},
		{Name: "log", Description: "note a line in the journal"},
	})
	s := world.NewSearch(catalog)
	got := s.Tools("checking the records against a schema")
	if len(got) == 0 || got[0].Name != "check" {
		t.Errorf("Tools() = %v, want check first", got)
	}
	if got := s.Tools("xyzzy"); len(got) != 0 {
		t.Errorf("Tools(nonsense) = %v, want none", got)
	}
}
