package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v4/plugin/loaderlimits"
)

// MaxDepth is the largest number of mappings and lists within each other, in YAML and in JSON.
const MaxDepth = 100

// TooDeep and FlatHint are the message and the hint of a file that is nested more deeply.
var (
	TooDeep  = fmt.Sprintf("nested more than %d levels deep", MaxDepth)
	FlatHint = "look for brackets that are not closed, or write the values less deeply"
)

// limits ends the reading of a deep file before all of it is in memory. The library counts brackets
// and indentation apart; check counts both.
var limits = loaderlimits.New(loaderlimits.DepthFunc(
	func(depth int, _ *loaderlimits.DepthContext) error {
		if depth > MaxDepth {
			return errors.New(TooDeep)
		}
		return nil
	}))

func (d *Document) tooDeep(line, column int) *Error {
	return d.Here(line, column, TooDeep, FlatHint)
}

// maxSigns is the largest number of signs that may each begin two values, because the YAML library
// keeps about 200 bytes for each value. A file may have one more sign for every 16 bytes.
const maxSigns = 50_000

// unprintable returns an error at the first byte that YAML does not allow, or that the library
// takes for the end of a line although editors do not.
func (d *Document) unprintable() *Error {
	line, column := 1, 1
	for rest := d.source; len(rest) > 0; column++ {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		switch {
		case r == utf8.RuneError && size == 1:
			return d.Here(line, column, "the file is not UTF-8 text", "save it as UTF-8")
		case r == '\n':
			line, column = line+1, 0
		case r == '\t', r == '\r' && bytes.HasPrefix(rest, []byte("\n")):
		case unicode.IsControl(r), r == '\u2028', r == '\u2029', r == 0xfffe, r == 0xffff:
			return d.Here(line, column, "the control character "+
				strings.Trim(strconv.QuoteRuneToASCII(r), "'")+" cannot be used",
				"remove it, or write it as an escape in double quotes")
		}
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
		if signs > maxSigns+len(d.source)/16 {
			return d.Here(line, utf8.RuneCount(d.source[start:i])+1, "the file has too many values",
				"split the file; everything before this place is within the limit")
		}
	}
	return nil
}

// sign reports whether a byte of the file may begin a value.
func (d *Document) sign(i int) bool {
	switch d.source[i] {
	case '[', '{', ',':
		return true
	case ':', '-', '?', '#':
		return i+1 == len(d.source) || strings.IndexByte(" \t\r\n", d.source[i+1]) >= 0
	case '\'', '"', '&', '*', '!':
		return i == 0 || strings.IndexByte(" \t\n\"'", d.source[i-1]) >= 0
	}
	return false
}
