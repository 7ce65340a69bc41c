package bm25_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/assay-eval/assay/internal/task/bm25"
)

func TestWordsJoinsForms(t *testing.T) {
	t.Parallel()
	for _, forms := range [][]string{
		{"parse", "parses", "parsing", "parser", "parsed"},
		{"validate", "validator", "validation", "validating"},
		{"notify", "notifies", "notifier"},
		{"transform", "transformer", "transforms", "transformation"},
	} {
		t.Run(forms[0], func(t *testing.T) {
			t.Parallel()
			want := bm25.Words(forms[0])
			for _, f := range forms[1:] {
				if diff := cmp.Diff(want, bm25.Words(f)); diff != "" {
					t.Errorf("Words(%q) (-want +got):\n%s", f, diff)
				}
			}
		})
	}
}

func TestSearchPrefersTextsThatShareMoreWords(t *testing.T) {
	t.Parallel()
	x := bm25.New([]string{
		"read a file from disk",
		"send a message to a person",
		"read a message and read it again",
	})
	var docs []int
	for _, h := range x.Search("reading messages", 5) {
		docs = append(docs, h.Doc)
	}
	if diff := cmp.Diff([]int{2, 0, 1}, docs); diff != "" {
		t.Errorf("order of hits (-want +got):\n%s", diff)
	}
	if hits := x.Search("the of and", 5); len(hits) != 0 {
		t.Errorf("a search for stop words found %v", hits)
	}
}

func TestSearchIsLimitedSortedAndRepeatable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`([a-d]{3,5} ){0,6}`)
		texts := rapid.SliceOfN(text, 0, 8).Draw(t, "texts")
		query := text.Draw(t, "query")
		n := rapid.IntRange(0, 9).Draw(t, "n")

		x := bm25.New(texts)
		hits := x.Search(query, n)
		if len(hits) > n {
			t.Fatalf("got %d hits, want at most %d", len(hits), n)
		}
		for i := 1; i < len(hits); i++ {
			a, b := hits[i-1], hits[i]
			if a.Score < b.Score || a.Score == b.Score && a.Doc > b.Doc {
				t.Fatalf("hits out of order: %v", hits)
			}
		}
		if diff := cmp.Diff(hits, x.Search(query, n)); diff != "" {
			t.Fatalf("the second search differs (-first +second):\n%s", diff)
		}
	})
}
