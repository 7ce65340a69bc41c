package library

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/assay-eval/assay/internal/task/yamldoc"
)

// The memory that a JSON value may need when it is decoded, in bytes, beside its text.
const (
	valueSize = 300
	maxMemory = 40 << 20
)

// A jsonGuard reads JSON text and stops where a value is nested too deeply or has too many parts.
// It reads in front of the decoder, which checks the syntax.
type jsonGuard struct {
	io.Reader
	at       int64 // the offset of the next byte
	whole    bool  // whether the text is decoded as a whole, or else element by element
	depth    int
	list     int   // the depth at which commas separate elements
	start    int64 // of the current element
	values   int   // of the current element
	inString bool
	escaped  bool
	stopped  error // the reason why there is no more text
}

// A limitError is the reason why a jsonGuard stopped, with the offset.
type limitError struct {
	at            int64
	message, hint string
}

func (e *limitError) Error() string { return e.message }

// in adds the place in a file to the error.
func (e *limitError) in(path string) error {
	return fmt.Errorf("%w\nhint: %s", errorAt(path, e.at, e), e.hint)
}

func (g *jsonGuard) Read(b []byte) (int, error) {
	if g.stopped != nil {
		return 0, g.stopped
	}
	n, err := g.Reader.Read(b)
	for i, c := range b[:n] {
		if g.stopped = g.next(c); g.stopped != nil {
			return i, g.stopped
		}
	}
	return n, err
}

// next follows one byte.
func (g *jsonGuard) next(c byte) error {
	at := g.at
	g.at++
	switch {
	case g.escaped:
		g.escaped = false
	case g.inString:
		g.escaped, g.inString = c == '\\', c != '"'
	case c == '"':
		g.inString = true
	case c == '[' || c == '{':
		if g.depth == 0 && c == '{' {
			g.list = 2 // the elements are in a field of an object
		} else if g.depth == 0 {
			g.list = 1
		}
		g.depth++
	case c == ']' || c == '}':
		g.depth--
	case c == ',':
		g.values++
		if !g.whole && g.depth <= g.list {
			g.values, g.start = 0, at
		}
	}
	switch {
	case g.depth > yamldoc.MaxDepth:
		return &limitError{at, yamldoc.TooDeep, yamldoc.FlatHint}
	case int64(g.values)*valueSize > maxMemory+5*(at-g.start):
		return &limitError{
			at, "too many values",
			"split the file; everything before this place is within the limit",
		}
	}
	return nil
}

// maxRegistry is the size limit of files of tools.
const maxRegistry = 64 << 20

// readJSON returns the content of a JSON file after the byte order mark.
func readJSON(path string, mark int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() > maxRegistry {
		return nil, fmt.Errorf("%s: the file has %d bytes, more than the limit of %d\n"+
			"hint: check whether this is the right file", path, st.Size(), maxRegistry)
	}
	if _, err := f.Seek(mark, io.SeekStart); err != nil {
		return nil, err
	}
	b := make([]byte, st.Size()-mark)
	_, err = io.ReadFull(&jsonGuard{Reader: f, at: mark, whole: true}, b)
	if limit, ok := errors.AsType[*limitError](err); ok {
		return nil, limit.in(path)
	}
	return b, err
}
