package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const redacted = "[redacted]"

// shortestSecret is the length, in bytes, below which a value is not scrubbed:
// it protects nothing, and honest replies would contain it by chance.
const shortestSecret = 8

// A Secret is a credential. It prints as "[redacted]" in every way; behind an
// unexported field, where methods of a field are not consulted, it prints as
// an address. The zero Secret is empty.
type Secret struct{ text *string }

// NewSecret wraps a credential.
func NewSecret(text string) Secret { return Secret{&text} }

// IsZero reports whether the secret is empty.
func (s Secret) IsZero() bool { return s.reveal() == "" }

func (s Secret) reveal() string {
	if s.text == nil {
		return ""
	}
	return *s.text
}

func (s Secret) String() string { return redacted }

// Format prints "[redacted]" for every verb.
func (s Secret) Format(f fmt.State, _ rune) { io.WriteString(f, redacted) }

// LogValue logs "[redacted]".
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalText keeps the secret out of encoded documents.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// redactURL leaves of a URL what cannot hold a credential.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(invalid URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// A scrubber replaces secrets in text by "[redacted]", in the spellings that a
// server can echo them in. A nil scrubber changes nothing.
type scrubber struct {
	// spellings are sorted, longest first, so that one which contains another
	// is replaced whole.
	spellings []string
	// cores has of each secret a part that all its spellings share. A text
	// without any of them, as nearly all are, holds no secret.
	cores []string
}

func newScrubber(secrets []Secret) *scrubber {
	s := &scrubber{}
	for _, secret := range secrets {
		if text := secret.reveal(); len(text) >= shortestSecret {
			s.spellings = append(s.spellings, spellings(text)...)
			s.cores = append(s.cores, core(text))
		}
	}
	return s.sorted()
}

// sorted puts s in order and returns it.
func (s *scrubber) sorted() *scrubber {
	slices.SortFunc(s.spellings, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	s.spellings = slices.Compact(s.spellings)
	slices.Sort(s.cores)
	s.cores = slices.Compact(s.cores)
	return s
}

// core is the longest run in text of what no spelling escapes; it may be
// empty, which every text contains.
func core(text string) string {
	var longest string
	for _, run := range strings.FieldsFunc(text, func(r rune) bool { return !isPlain(r) }) {
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// isPlain reports whether every spelling has c as it is.
func isPlain[T byte | rune](c T) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '-' || c == '_' || c == '.'
}

// spellings lists text as it is and as JSON, Go and URLs escape it.
func spellings(text string) []string {
	escaped, err := json.Marshal(text)
	if err != nil {
		panic("openai: encode a string: " + err.Error())
	}
	inJSON := string(escaped[1 : len(escaped)-1])
	goQuoted := strconv.Quote(text)
	return []string{
		text,
		inJSON,
		strings.ReplaceAll(inJSON, "/", `\/`),
		escapeASCII(text, "%04x"),
		escapeASCII(text, "%04X"),
		goQuoted[1 : len(goQuoted)-1],
		url.QueryEscape(text),
		url.PathEscape(text),
	}
}

// escapeASCII writes all but letters, digits and "-_." of text as JSON's \u
// escapes, as cautious encoders do.
func escapeASCII(text, hex string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		if isPlain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, `\u`+hex, c)
		}
	}
	return b.String()
}

// with returns a scrubber that also knows the secrets of t.
func (s *scrubber) with(t *scrubber) *scrubber {
	if s == nil {
		return t
	}
	both := &scrubber{spellings: slices.Concat(s.spellings, t.spellings), cores: slices.Concat(s.cores, t.cores)}
	return both.sorted()
}

func (s *scrubber) bytes(b []byte) []byte {
	if s == nil || !slices.ContainsFunc(s.cores, func(core string) bool { return bytes.Contains(b, []byte(core)) }) {
		return b
	}
	for _, secret := range s.spellings {
		b = bytes.ReplaceAll(b, []byte(secret), []byte(redacted))
	}
	return b
}

func (s *scrubber) text(t string) string {
	if s == nil || !slices.ContainsFunc(s.cores, func(core string) bool { return strings.Contains(t, core) }) {
		return t
	}
	for _, secret := range s.spellings {
		t = strings.ReplaceAll(t, secret, redacted)
	}
	return t
}
