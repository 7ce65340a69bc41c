package wire

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/hex"
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

// A Redactor replaces secrets in text by "[redacted]", in the spellings in which a server may echo
// them: plain, escaped as in JSON, Go and URLs, in base64 and in hexadecimal. It does not find parts
// of a secret. A nil Redactor does not change text.
type Redactor struct {
	secrets []string
	// prepare fills in spellings before the first text. They are sorted, longest first, so that a
	// spelling that contains another one is replaced first.
	prepare   sync.Once
	spellings []string
}

// NewRedactor returns a Redactor for secrets. It ignores secrets of fewer than eight bytes.
func NewRedactor(secrets []Secret) *Redactor {
	s := &Redactor{}
	for _, secret := range secrets {
		if text := secret.reveal(); len(text) >= shortestSecret {
			s.secrets = append(s.secrets, text)
		}
	}
	return s
}

func (s *Redactor) fill() {
	for _, text := range s.secrets {
		s.spellings = append(s.spellings, spellings(text)...)
	}
	slices.SortFunc(s.spellings, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	s.spellings = slices.Compact(s.spellings)
}

// spellings returns text itself, with invalid UTF-8 as encoders replace it, as escaped in JSON, Go
// and URLs, and in base64 and hexadecimal.
func spellings(text string) []string {
	all := []string{
		text,
		string([]rune(text)),
		escapeASCII(text, "%04x"),
		escapeASCII(text, "%04X"),
		url.QueryEscape(text),
		url.PathEscape(text),
		hex.EncodeToString([]byte(text)),
		strings.ToUpper(hex.EncodeToString([]byte(text))),
		base64.RawStdEncoding.EncodeToString([]byte(text)),
		base64.RawURLEncoding.EncodeToString([]byte(text)),
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

// isPlain reports whether no escape is needed for c.
func isPlain(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' ||
		c == '-' || c == '_' || c == '.'
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
	return &Redactor{secrets: slices.Concat(s.secrets, t.secrets)}
}

// body removes secrets from a body. Those with further escapes are left to Text, which gets the
// texts in a body.
func (s *Redactor) body(b []byte) []byte {
	if s == nil {
		return b
	}
	s.prepare.Do(s.fill)
	for _, spelling := range s.spellings {
		if bytes.Contains(b, []byte(spelling)) {
			b = bytes.ReplaceAll(b, []byte(spelling), []byte(redacted))
		}
	}
	return b
}

// Text removes secrets from a text.
func (s *Redactor) Text(t string) string {
	if s == nil {
		return t
	}
	s.prepare.Do(s.fill)
	for _, spelling := range s.spellings {
		t = strings.ReplaceAll(t, spelling, redacted)
	}
	return t
}
