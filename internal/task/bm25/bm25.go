// Package bm25 ranks short texts by the words that they share with a query.
//
// It owns the tokens, the stemming and the ranking of tool search, so a search gives the same
// answer on every machine. It doesn't know about tools or tasks, and it doesn't learn: the same
// texts and query always give the same ranking.
package bm25

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"
)

// The free parameters of Okapi BM25 (Robertson and Zaragoza, "The Probabilistic Relevance
// Framework", 2009, section 3.4). These are the usual untuned defaults.
const (
	k1 = 1.2
	b  = 0.75
)

// An Index holds texts. It is immutable and safe for concurrent use.
type Index struct {
	docs   []map[string]int // how often each word occurs, by text
	length []int            // number of words, by text
	mean   float64          // mean length
	df     map[string]int   // number of texts that contain a word
}

// A Hit is one text that shares a word with the query.
type Hit struct {
	// Doc is the text's position in the argument of New.
	Doc   int
	Score float64
}

// New indexes texts.
func New(texts []string) *Index {
	x := &Index{df: make(map[string]int)}
	total := 0
	for _, text := range texts {
		tf := make(map[string]int)
		words := Words(text)
		for _, w := range words {
			tf[w]++
		}
		for w := range tf {
			x.df[w]++
		}
		x.docs = append(x.docs, tf)
		x.length = append(x.length, len(words))
		total += len(words)
	}
	if len(texts) > 0 {
		x.mean = float64(total) / float64(len(texts))
	}
	return x
}

// Search returns the n best texts, best first. It returns fewer if fewer texts share a word with
// the query. Texts with equal scores keep their order.
func (x *Index) Search(query string, n int) []Hit {
	terms := Words(query)
	slices.Sort(terms)
	terms = slices.Compact(terms)
	var hits []Hit
	for i := range x.docs {
		if s := x.score(i, terms); s > 0 {
			hits = append(hits, Hit{Doc: i, Score: s})
		}
	}
	slices.SortStableFunc(hits, func(a, b Hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(n, len(hits))]
}

func (x *Index) score(doc int, terms []string) float64 {
	sum := 0.0
	for _, t := range terms {
		tf := float64(x.docs[doc][t])
		if tf == 0 {
			continue
		}
		norm := 1 - b + b*float64(x.length[doc])/x.mean
		sum += x.idf(t) * tf * (k1 + 1) / (tf + k1*norm)
	}
	return sum
}

// idf returns the inverse document frequency, in the variant that is never negative.
func (x *Index) idf(term string) float64 {
	n, df := float64(len(x.docs)), float64(x.df[term])
	return math.Log(1 + (n-df+0.5)/(df+0.5))
}

// Words splits text into lower-case stems and drops stop words.
func Words(text string) []string {
	fields := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
	words := fields[:0]
	for _, f := range fields {
		if !slices.Contains(stopWords, f) {
			words = append(words, stem(f))
		}
	}
	return words
}

var stopWords = strings.Fields(`a all an and any are as at be by each for from has have if in into
	is it its of on or so that the their them then there these this those to up was what when where
	which while will with you your`)

// suffixes are tried in order. The first that leaves at least three letters is removed.
var suffixes = strings.Fields(`ations ation ators ator ating ated ates ate ings ing iers ier ies ied
	ers ors er or ed es y e s`)

// stem maps the forms of a verb and its agent noun to one word, such as parse, parses, parsing and
// parser.
func stem(w string) string {
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(w, s); ok && len(rest) >= 3 {
			return rest
		}
	}
	return w
}
