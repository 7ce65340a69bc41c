package wire

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// keyLetters are the letters in the keys of most providers.
const keyLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// randomKey returns a key in the style of a provider.
func randomKey(r *rand.Rand) string {
	prefix := []string{"sk-", "sk-proj-", "sk-ant-api03-", "gsk_", "AIza", "", "xai-"}[r.IntN(7)]
	b := make([]byte, 16+r.IntN(90))
	for i := range b {
		b[i] = keyLetters[r.IntN(len(keyLetters))]
	}
	return prefix + string(b)
}

func backwards(s string) string {
	b := []byte(s)
	slices.Reverse(b)
	return string(b)
}

// split puts white space between the letters of a text.
func split(t *rapid.T, s string) string {
	size := rapid.IntRange(1, 12).Draw(t, "size")
	space := rapid.SampledFrom([]string{" ", "\n", "\r\n", "\t ", "  "}).Draw(t, "space")
	var parts []string
	for chunk := range slices.Chunk([]byte(s), size) {
		parts = append(parts, string(chunk))
	}
	return strings.Join(parts, space)
}

// encoded returns a secret in base64 with other bytes around it.
func encoded(t *rapid.T, key string, e *base64.Encoding) string {
	before := rapid.StringN(0, 9, 9).Draw(t, "before")
	after := rapid.StringN(0, 9, 9).Draw(t, "after")
	return e.EncodeToString([]byte(before + key + after))
}

// costumes are the ways in which an endpoint may echo a key.
var costumes = map[string]func(t *rapid.T, key string) string{
	"Plain":     func(_ *rapid.T, key string) string { return key },
	"Upper":     func(_ *rapid.T, key string) string { return strings.ToUpper(key) },
	"Lower":     func(_ *rapid.T, key string) string { return strings.ToLower(key) },
	"Backwards": func(_ *rapid.T, key string) string { return backwards(key) },
	"Hex":       func(_ *rapid.T, key string) string { return hex.EncodeToString([]byte(key)) },
	"UpperHex":  func(_ *rapid.T, key string) string { return fmt.Sprintf("%X", key) },
	"SpacedHex": func(_ *rapid.T, key string) string { return fmt.Sprintf("% x", key) },
	"Base64":    func(t *rapid.T, key string) string { return encoded(t, key, base64.StdEncoding) },
	"URLBase64": func(t *rapid.T, key string) string { return encoded(t, key, base64.RawURLEncoding) },
	"Split":     split,
	"SplitBase64": func(t *rapid.T, key string) string {
		return split(t, base64.StdEncoding.EncodeToString([]byte(key)))
	},
	"Start": func(t *rapid.T, key string) string {
		return key[:rapid.IntRange(8, len(key)).Draw(t, "cut")]
	},
	"End": func(t *rapid.T, key string) string {
		return key[rapid.IntRange(0, len(key)-8).Draw(t, "cut"):]
	},
	"Middle": func(t *rapid.T, key string) string {
		from := rapid.IntRange(0, len(key)-8).Draw(t, "from")
		return key[from:rapid.IntRange(from+8, len(key)).Draw(t, "to")]
	},
}

// TestNoDisguiseHidesASecret checks that no disguise of a random key leaves eight of its letters
// in a text.
func TestNoDisguiseHidesASecret(t *testing.T) {
	t.Parallel()
	for name, dress := range costumes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
				keys := []Secret{NewSecret(randomKey(r)), NewSecret(randomKey(r))}
				shown := rapid.Custom(func(t *rapid.T) string {
					return dress(t, keys[rapid.IntRange(0, 1).Draw(t, "key")].reveal())
				}).Filter(func(s string) bool { return !isWord(s) }).Draw(t, "shown")
				// The text around it has no letter that could continue an encoding.
				before := rapid.StringMatching(`[a-z ,:.]{0,40}[:"(]`).Draw(t, "before text")
				after := rapid.StringMatching(`[")][a-z ,:.]{0,40}`).Draw(t, "after text")
				got := NewRedactor(keys).Text(before + shown + after)
				if name == "SplitBase64" {
					// The last letters may be words of the text around it.
					if rest := len(got) - len(before+redacted+after); rest >= 0 && rest < 12 {
						got = before + redacted + after
					}
				}
				if want := before + redacted + after; got != want {
					t.Errorf("shown as %s\nis %q\nwant %q", shown, got, want)
				}
			})
		})
	}
}

// TestHonestTextIsNotRedacted checks texts that look like keys and encodings: random words,
// digests, and base64.
func TestHonestTextIsNotRedacted(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	var keys []Secret
	for range 20 {
		keys = append(keys, NewSecret(randomKey(r)))
	}
	for _, name := range []string{
		"sk-no-key-required", "lm-studio", "not-needed", "ollama-local", "EMPTY-KEY", "000000000000",
	} {
		keys = append(keys, NewSecret(name))
	}
	s := NewRedactor(keys)
	raw := make([]byte, 60)
	for range 20_000 {
		for i := range raw {
			raw[i] = byte(r.Uint32())
		}
		text := base64.StdEncoding.EncodeToString(raw) + " " + hex.EncodeToString(raw) + " " +
			randomKey(r)[13:] + ` the key is required; "needed": 00000000, studio=100000000 empty key`
		if got := s.Text(text); got != text {
			t.Fatalf("redacted %q\nas %q", text, got)
		}
	}
}

func BenchmarkScrub(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 16} {
		var keys []Secret
		for range n {
			keys = append(keys, NewSecret(randomKey(r)))
		}
		s := NewRedactor(keys)
		body := []byte(strings.Repeat(`{"content":"An ordinary reply of a model, as it comes."}`, 70))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			for b.Loop() {
				s.body(body)
			}
		})
	}
}
