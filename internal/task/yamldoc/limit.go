package yamldoc

import (
	"cmp"
	"fmt"
	"unicode/utf8"

	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/token"
)

// MaxDepth is the largest number of mappings and lists within each other, in YAML and in JSON.
const MaxDepth = 100

// TooDeep and FlatHint are the message and the hint of a file that is nested more deeply.
var (
	TooDeep  = fmt.Sprintf("nested more than %d levels deep", MaxDepth)
	FlatHint = "look for brackets that are not closed, or write the values less deeply"
)

// The memory that a file may need, in bytes. The YAML library keeps about tokenSize bytes for each
// token. For each entry it keeps the path from the root, which has all names on the way.
const (
	tokenSize = 360
	maxMemory = 28 << 20
)

// maxSigns is the largest number of signs that may each begin a value or end one. The scanner splits
// a file as a whole, and finds up to three tokens around a sign.
const maxSigns = 60_000

// scan splits the file into tokens. It returns an error at the first token that is nested too
// deeply, because the parser needs memory that grows with the square of the depth, and at the first
// token beyond the memory that a file may need.
func (d *Document) scan() (token.Tokens, error) {
	if err := cmp.Or(d.unprintable(), d.crowded()); err != nil {
		return nil, err
	}
	all := lexer.Tokenize(string(d.source))
	var n nesting
	memory := 0
	for _, t := range all {
		memory += tokenSize + n.add(t)
		switch {
		case n.depth() > MaxDepth:
			return nil, d.Here(t.Position.Line, t.Position.Column, TooDeep, FlatHint)
		case memory > maxMemory+len(d.source):
			return nil, d.tooMany(t.Position.Line, t.Position.Column)
		}
	}
	return all, nil
}

func (d *Document) tooMany(line, column int) *Error {
	return d.Here(line, column, "the file has too many values, or too long names above them",
		"split the file; everything before this place is within the limit")
}

// unprintable returns an error at the first byte that YAML does not allow.
func (d *Document) unprintable() *Error {
	line, column := 1, 1
	for rest := d.source; len(rest) > 0; column++ {
		r, size := utf8.DecodeRune(rest)
		switch {
		case r == utf8.RuneError && size == 1:
			return d.Here(line, column, "the file is not UTF-8 text", "save it as UTF-8")
		case r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == 0x7f:
			return d.Here(line, column, fmt.Sprintf(`the control character \x%02x cannot be used`, r),
				"remove it, or write it as an escape in double quotes")
		case r == '\n':
			line, column = line+1, 0
		}
		rest = rest[size:]
	}
	return nil
}

// crowded returns an error at the first sign beyond those that the file may have.
func (d *Document) crowded() *Error {
	line, start, signs := 1, 0, 0
	for i, c := range d.source {
		if c == '\n' {
			line, start = line+1, i+1
		}
		if d.sign(i) {
			signs++
		}
		if signs > maxSigns+len(d.source)/250 {
			return d.tooMany(line, utf8.RuneCount(d.source[start:i])+1)
		}
	}
	return nil
}

// sign reports whether a byte of the file may separate values. Signs within words do not.
func (d *Document) sign(i int) bool {
	switch d.source[i] {
	case '[', ']', '{', '}', ',':
		return true
	case ':', '-', '?', '&', '*', '!', '\'', '"', '|', '>', '#', '%', '@':
		return !d.word(i-1) || !d.word(i+1)
	}
	return false
}

// word reports whether a byte of the file belongs to a word.
func (d *Document) word(i int) bool {
	if i < 0 || i >= len(d.source) {
		return false
	}
	c := d.source[i]
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c >= 0x80
}

// A nesting follows the mappings and lists that are open while tokens are read. It need not
// recognize broken files, which the parser reports.
type nesting struct {
	open []level
	path int          // the length of the path to the current entry
	run  int          // of tokens in a row that may each begin a level, but for the first
	last *token.Token // the previous token
}

// A level is a mapping or a list.
type level struct {
	flow   bool // it is written in brackets
	list   bool
	column int // of a level without brackets
	path   int // the length of its part of the path
}

func (n *nesting) depth() int { return len(n.open) + max(0, n.run-1) }

// add follows one token. It returns the length of the path if the token begins an entry.
func (n *nesting) add(t *token.Token) (path int) {
	before := n.last
	n.last = t
	switch t.Type {
	case token.SequenceStartType, token.MappingStartType:
		n.run = 0
		n.push(level{flow: true})
	case token.SequenceEndType, token.MappingEndType:
		n.run = 0
		n.close()
	case token.DocumentHeaderType, token.DocumentEndType:
		*n = nesting{}
	case token.CollectEntryType:
		n.run = 0
		return n.path
	case token.TagType, token.AnchorType:
		n.run++
	case token.SequenceEntryType:
		n.begin(true, t.Position.Column, 8)
		return n.path
	case token.MappingKeyType:
		n.begin(false, t.Position.Column, 0)
	case token.MappingValueType:
		key := t
		if before != nil {
			key = before
		}
		n.begin(false, key.Position.Column, len(key.Value))
		return n.path
	}
	return 0
}

// begin follows the begin of an entry of a list or of a mapping.
func (n *nesting) begin(list bool, column, path int) {
	if top := n.top(); top != nil && top.flow {
		n.run++
		n.name(path)
		return
	}
	n.run = 0
	for top := n.top(); top != nil && !top.flow; top = n.top() {
		// A list may begin below the name of its field, and the next field ends it.
		if top.column < column || top.column == column && (list || !top.list) {
			break
		}
		n.pop()
	}
	if top := n.top(); top == nil || top.flow || top.column != column || top.list != list {
		n.push(level{list: list, column: column})
	}
	n.name(path)
}

func (n *nesting) top() *level {
	if len(n.open) == 0 {
		return nil
	}
	return &n.open[len(n.open)-1]
}

func (n *nesting) push(l level) { n.open = append(n.open, l) }

func (n *nesting) pop() {
	n.path -= n.top().path
	n.open = n.open[:len(n.open)-1]
}

// close ends a level in brackets.
func (n *nesting) close() {
	for len(n.open) > 0 {
		flow := n.top().flow
		n.pop()
		if flow {
			return
		}
	}
}

// name sets the length of the current entry's part of the path.
func (n *nesting) name(length int) {
	n.path += length - n.top().path
	n.top().path = length
}
