package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

const redacted = "[redacted]"

// shortestSecret is the minimum length in bytes of a secret that is scrubbed. A shorter one is no
// protection and would appear in honest replies by chance.
const shortestSecret = 8

// Secret is a credential. It always prints as "[redacted]". In an unexported
// field, whose methods are not called, it prints as an address. The zero Secret
// is empty.
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

// redactURL removes all parts of a URL that may contain a credential.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(invalid URL)"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// A Redactor replaces secrets in text by "[redacted]", in all spellings in which a server may echo
// them, and in disguise. A nil Redactor does not change text.
type Redactor struct {
	secrets []string
	// prepare fills in the fields below, before the first text.
	prepare sync.Once
	// spellings are sorted, longest first, so that a spelling that contains another
	// one is replaced first.
	spellings []string
	// cores has a part that all spellings of a secret share, for each secret without such a part
	// of leastPart bytes, which disguises find.
	cores     []string
	disguises *disguises
}

// NewRedactor returns a Redactor for secrets. It ignores secrets of fewer than eight bytes.
func NewRedactor(secrets []Secret) *Redactor {
	s := &Redactor{}
	for _, secret := range secrets {
		if text := secret.reveal(); len(text) >= shortestSecret {
			s.secrets = append(s.secrets, text)
		}
	}
	slices.Sort(s.secrets)
	s.secrets = slices.Compact(s.secrets)
	return s
}

func (s *Redactor) fill() {
	for _, text := range s.secrets {
		s.spellings = append(s.spellings, spellings(text)...)
		if c := core(text); len(c) < leastPart {
			s.cores = append(s.cores, c)
		}
	}
	slices.SortFunc(s.spellings, func(a, b string) int {
		if d := len(b) - len(a); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	s.spellings = slices.Compact(s.spellings)
	s.disguises = newDisguises(s.secrets)
}

// core returns the longest part of text that no spelling escapes. It may be empty,
// and then every text contains it.
func core(text string) string {
	var longest string
	for _, run := range strings.FieldsFunc(text, func(r rune) bool { return !isPlain(r) }) {
		if len(run) > len(longest) {
			longest = run
		}
	}
	return longest
}

// isPlain reports whether no spelling escapes c.
func isPlain[T byte | rune](c T) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		c == '-' || c == '_' || c == '.'
}

// spellings returns text itself, with invalid UTF-8 as encoders replace it, and as escaped in JSON,
// Go and URLs.
func spellings(text string) []string {
	all := []string{
		text,
		string([]rune(text)),
		escapeASCII(text, "%04x"),
		escapeASCII(text, "%04X"),
		url.QueryEscape(text),
		url.PathEscape(text),
	}
	inJSON, err := Marshal(text)
	escaped, errEscaped := json.Marshal(text)
	if err := errors.Join(err, errEscaped); err != nil {
		panic("wire: encode a string: " + err.Error())
	}
	for _, quoted := range []string{string(inJSON), string(escaped), strconv.Quote(text)} {
		quoted = quoted[1 : len(quoted)-1]
		all = append(all, quoted, strings.ReplaceAll(quoted, "/", `\/`))
	}
	return all
}

// escapeASCII escapes all characters except letters, digits and "-_." with \u, as
// cautious JSON encoders do.
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

// with returns a Redactor for the secrets of both s and t.
func (s *Redactor) with(t *Redactor) *Redactor {
	if s == nil {
		return t
	}
	unknown := func(text string) bool { return !slices.Contains(s.secrets, text) }
	if !slices.ContainsFunc(t.secrets, unknown) {
		return s
	}
	both := &Redactor{secrets: slices.Concat(s.secrets, t.secrets)}
	slices.Sort(both.secrets)
	both.secrets = slices.Compact(both.secrets)
	return both
}

// body removes the spellings of secrets from a body. Disguises are left to text, because texts in
// a body may have further escapes.
func (s *Redactor) body(b []byte) []byte {
	if !mayLeak(s, b) {
		return b
	}
	for _, secret := range s.spellings {
		b = bytes.ReplaceAll(b, []byte(secret), []byte(redacted))
	}
	return b
}

// Text removes secrets from a text.
func (s *Redactor) Text(t string) string {
	if !mayLeak(s, t) {
		return t
	}
	for _, secret := range s.spellings {
		t = strings.ReplaceAll(t, secret, redacted)
	}
	return s.disguises.redact(t)
}

// mayLeak reports whether a text may contain a secret. Nearly all texts do not.
func mayLeak[T string | []byte](s *Redactor, text T) bool {
	if s == nil || len(s.secrets) == 0 {
		return false
	}
	s.prepare.Do(s.fill)
	return suspects(s.disguises, text) ||
		slices.ContainsFunc(s.cores, func(c string) bool { return contains(text, c) })
}

func contains[T string | []byte](text T, part string) bool {
	switch text := any(text).(type) {
	case string:
		return strings.Contains(text, part)
	case []byte:
		return bytes.Contains(text, []byte(part))
	}
	return false
}
