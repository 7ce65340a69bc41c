package runlog

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// shortestSecret is the minimum length of a secret in bytes. Shorter ones would
// match ordinary text by chance.
const shortestSecret = 8

// A redactor replaces secrets in text by "[redacted]". A redactor without
// secrets changes nothing.
type redactor struct{ *strings.Replacer }

func newRedactor(secrets []string) redactor {
	var all []string
	for _, s := range secrets {
		if len(s) >= shortestSecret {
			all = append(all, spellings(s)...)
		}
	}
	if all == nil {
		return redactor{}
	}
	// Longest first, so that a secret that starts with another is replaced
	// completely.
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, s := range all {
		pairs = append(pairs, s, "[redacted]")
	}
	return redactor{strings.NewReplacer(pairs...)}
}

// spellings returns the secret as it is and as JSON, Go and URLs escape it,
// because logged text may quote such text.
func spellings(secret string) []string {
	all := []string{quote(secret, false), quote(secret, true), strconv.Quote(secret)}
	for _, s := range all[:2] {
		all = append(all, strings.ReplaceAll(s, "/", `\/`))
	}
	for i, s := range all {
		all[i] = s[1 : len(s)-1]
	}
	asRead := string([]rune(secret)) // invalid UTF-8 as encoders replace it
	return append(all, asRead, url.QueryEscape(secret), url.PathEscape(secret))
}

func quote(s string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	if err := enc.Encode(s); err != nil {
		panic("runlog: encode a string: " + err.Error())
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// scalar matches the strings, numbers and literals of a JSON document.
var scalar = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[^"\s{}\[\]:,]+`)

// json redacts the decoded strings and the numbers of a valid document. It
// leaves everything else as it is.
func (r redactor) json(doc []byte) []byte {
	if r.Replacer == nil {
		return doc
	}
	return scalar.ReplaceAllFunc(doc, func(token []byte) []byte {
		text := string(token)
		if token[0] == '"' {
			if err := json.Unmarshal(token, &text); err != nil {
				panic("runlog: decode a string: " + err.Error())
			}
		}
		if clean := r.Replace(text); clean != text {
			return []byte(quote(clean, false))
		}
		return token
	})
}
