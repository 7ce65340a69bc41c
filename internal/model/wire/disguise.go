package wire

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"unicode"
)

// disguises finds secrets in other forms than their spellings: in upper or lower case, backwards,
// in hexadecimal, in base64 of either alphabet and any alignment, split by white space, and parts
// of all these. Nearly all texts are free of them, which a filter shows at a cost of about a
// nanosecond a byte.
type disguises struct {
	forms []form
	// grams maps [gramSize] bytes to their places in forms. filter contains all of them.
	grams  map[uint64][]spot
	filter [1 << (filterBits - 6)]uint64
}

// A form is a folded secret in one disguise.
type form struct {
	text string
	// least is the length of the shortest part that counts as a leak.
	least int
	// plain is the secret before it was folded if a part may be an ordinary word. It is empty if
	// the form is encoded.
	plain string
}

// A spot is a place in a form.
type spot struct{ form, at int }

// A part of leastPart bytes contains gramSize bytes that end at a multiple of step, wherever it
// begins.
const (
	leastPart  = 8
	step       = 4
	gramSize   = leastPart - step + 1
	gramMask   = 1<<(8*gramSize) - 1
	filterBits = 18
	// leastWord is the length from which a part counts even if it has letters of one case only.
	// The key "no-key-required" does not make a secret of the word "required".
	leastWord = 12
)

// folded maps a byte to its lower case, the two alphabets of base64 to each other, and white space
// to 0.
var folded = func() (table [256]byte) {
	for i := range table {
		table[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			table[i] = byte(i) + 'a' - 'A'
		}
	}
	table['-'], table['_'] = '+', '/'
	table[' '], table['\t'], table['\r'], table['\n'] = 0, 0, 0, 0
	return table
}()

func fold(s string) string {
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if c := folded[s[i]]; c != 0 {
			b = append(b, c)
		}
	}
	return string(b)
}

func newDisguises(secrets []string) *disguises {
	d := &disguises{grams: make(map[uint64][]spot)}
	for _, s := range secrets {
		d.add(form{text: fold(s), least: leastPart, plain: s})
		backwards := []byte(s)
		slices.Reverse(backwards)
		d.add(form{text: fold(string(backwards)), least: leastPart, plain: string(backwards)})
		d.add(form{text: hex.EncodeToString([]byte(s)), least: 2 * leastPart})
		for shift := range 3 {
			d.add(form{text: fold(inBase64(s, shift)), least: leastPart * 8 / 6})
		}
	}
	return d
}

// inBase64 returns the characters that base64 has for a secret after shift other bytes, without the
// characters that depend on the bytes around it.
func inBase64(secret string, shift int) string {
	text := base64.RawStdEncoding.EncodeToString([]byte(strings.Repeat("\x00", shift) + secret))
	if (shift+len(secret))%3 != 0 {
		text = text[:len(text)-1]
	}
	return text[[3]int{0, 2, 3}[shift]:]
}

func (d *disguises) add(f form) {
	d.forms = append(d.forms, f)
	var gram uint64
	for i := range len(f.text) {
		gram = (gram<<8 | uint64(f.text[i])) & gramMask
		if i+1 < gramSize {
			continue
		}
		d.grams[gram] = append(d.grams[gram], spot{len(d.forms) - 1, i + 1 - gramSize})
		bit := filterBit(gram)
		d.filter[bit/64] |= 1 << (bit % 64)
	}
}

func filterBit(gram uint64) uint64 { return gram * 0x9e3779b97f4a7c15 >> (64 - filterBits) }

// suspects reports whether a text may contain a secret of at least leastPart bytes.
func suspects[T string | []byte](d *disguises, text T) bool {
	var gram uint64
	n := 0
	for i := range len(text) {
		c := folded[text[i]]
		if c == 0 {
			continue
		}
		gram = gram<<8 | uint64(c)
		if n++; n%step != 0 {
			continue
		}
		bit := filterBit(gram & gramMask)
		if d.filter[bit/64]&(1<<(bit%64)) != 0 && d.grams[gram&gramMask] != nil {
			return true
		}
	}
	return false
}

// redact replaces all disguised secrets.
func (d *disguises) redact(text string) string {
	var b strings.Builder
	end := 0
	for i, part := range d.find(text) {
		if part.from > end || i == 0 {
			b.WriteString(text[end:part.from])
			b.WriteString(redacted)
		}
		end = max(end, part.to)
	}
	return b.String() + text[end:]
}

// A textSpan is a part of a text.
type textSpan struct{ from, to int }

// find returns the disguised secrets in the order of their starts. They may overlap.
func (d *disguises) find(text string) []textSpan {
	// Compare the text without white space. place has the place of each byte in text.
	bare, place := make([]byte, 0, len(text)), make([]int, 0, len(text))
	for i := range len(text) {
		if c := folded[text[i]]; c != 0 {
			bare, place = append(bare, c), append(place, i)
		}
	}
	var found []textSpan
	var gram uint64
	for i, c := range bare {
		gram = (gram<<8 | uint64(c)) & gramMask
		if (i+1)%step != 0 {
			continue
		}
		for _, s := range d.grams[gram] {
			if part, leak := d.leak(bare, i+1-gramSize, s); leak {
				whole := textSpan{place[part.from], place[part.to-1] + 1}
				if d.forms[s.form].plain == "" {
					whole = widen(text, whole)
				}
				found = append(found, whole)
			}
		}
	}
	slices.SortFunc(found, func(a, b textSpan) int { return a.from - b.from })
	return found
}

// leak returns the longest part of a form around a place where the two agree, and whether that is
// enough to be a leak.
func (d *disguises) leak(bare []byte, at int, s spot) (textSpan, bool) {
	f := &d.forms[s.form]
	start, first := at, s.at
	for start > 0 && first > 0 && bare[start-1] == f.text[first-1] {
		start, first = start-1, first-1
	}
	end, last := at, s.at
	for end < len(bare) && last < len(f.text) && bare[end] == f.text[last] {
		end, last = end+1, last+1
	}
	n := last - first
	leak := n >= f.least
	// Parts of a form with white space are not compared with words, because places differ.
	if leak && n < leastWord && n < len(f.text) && len(f.plain) == len(f.text) {
		leak = !isWord(f.plain[first:last])
	}
	return textSpan{start, end}, leak
}

// isWord reports whether a text has letters of one case only, or digits only.
func isWord(s string) bool {
	var lower, upper, digits, others bool
	for _, r := range s {
		switch {
		case 'a' <= r && r <= 'z':
			lower = true
		case 'A' <= r && r <= 'Z':
			upper = true
		case '0' <= r && r <= '9':
			digits = true
		case r > unicode.MaxASCII:
			others = true
		}
	}
	kinds := 0
	for _, has := range []bool{lower, upper, digits, others} {
		if has {
			kinds++
		}
	}
	return kinds < 2
}

// widen extends a part to the whole encoded word, because its ends encode bytes of the secret, too.
func widen(text string, part textSpan) textSpan {
	for part.from > 0 && isBase64(text[part.from-1]) {
		part.from--
	}
	for part.to < len(text) && isBase64(text[part.to]) {
		part.to++
	}
	return part
}

func isBase64(c byte) bool {
	return isPlain(c) && c != '.' || c == '+' || c == '/' || c == '='
}
