package terminal_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// fakeScreen interprets the output of a program to a terminal. It knows the
// escape sequences that bubbletea needs to draw and collects all others.
type fakeScreen struct {
	cells   [][]rune
	row     int
	col     int
	unknown []string
	modes   map[string]bool // by number, such as ?25
}

func newScreen() *fakeScreen { return &fakeScreen{modes: make(map[string]bool)} }

// lines returns the text on the screen without trailing spaces.
func (s *fakeScreen) lines() []string {
	var out []string
	for _, row := range s.cells {
		out = append(out, strings.TrimRight(strings.ReplaceAll(string(row), "\x00", " "), " "))
	}
	for len(out) > 0 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

// Write implements [io.Writer].
func (s *fakeScreen) Write(p []byte) (int, error) {
	text := []rune(string(p))
	for i := 0; i < len(text); i++ {
		switch r := text[i]; r {
		case '\n': // like a terminal that is not in raw mode
			s.row, s.col = s.row+1, 0
		case '\r':
			s.col = 0
		case '\b':
			s.col--
		case '\x1b':
			i += s.escape(text[i+1:])
		default:
			*s.cell(s.col) = r
			s.col++
		}
	}
	return len(p), nil
}

func (s *fakeScreen) cell(col int) *rune {
	for s.row >= len(s.cells) {
		s.cells = append(s.cells, nil)
	}
	for col >= len(s.cells[s.row]) {
		s.cells[s.row] = append(s.cells[s.row], 0)
	}
	return &s.cells[s.row][col]
}

// escape interprets the sequence after an escape character and returns its
// length.
func (s *fakeScreen) escape(text []rune) int {
	if len(text) == 0 || text[0] != '[' {
		s.unknown = append(s.unknown, fmt.Sprintf("%q", string(text[:min(3, len(text))])))
		return 1
	}
	end := 1
	for end < len(text)-1 && (text[end] < '@' || text[end] > '~') {
		end++
	}
	s.control(string(text[1:end]), text[end])
	return end + 1
}

func (s *fakeScreen) control(parameters string, final rune) {
	n, err := strconv.Atoi(parameters)
	if err != nil {
		n = 1
	}
	switch final {
	case 'A':
		s.row = max(0, s.row-n)
	case 'B':
		s.row += n
	case 'C':
		s.col += n
	case 'D':
		s.col = max(0, s.col-n)
	case 'G':
		s.col = n - 1
	case 'J':
		s.erase(s.col)
		s.cells = s.cells[:min(s.row+1, len(s.cells))]
	case 'K':
		s.erase(s.col)
	case 'X':
		for i := range n {
			*s.cell(s.col + i) = 0
		}
	case 'P': // delete
		s.cell(s.col + n)
		s.cells[s.row] = slices.Delete(s.cells[s.row], s.col, s.col+n)
	case '@': // insert
		s.cell(s.col)
		s.cells[s.row] = slices.Insert(s.cells[s.row], s.col, make([]rune, n)...)
	case 'b': // repeat the last character
		r := *s.cell(s.col - 1)
		for range n {
			*s.cell(s.col) = r
			s.col++
		}
	case 'h', 'l':
		s.modes[parameters] = final == 'h'
	case 'm':
	default:
		s.unknown = append(s.unknown, fmt.Sprintf("CSI %s %c", parameters, final))
	}
	if parameters != "" && err != nil && strings.ContainsRune("ABCDGJKXPb@", final) ||
		parameters != "" && strings.ContainsRune("JK", final) {
		s.unknown = append(s.unknown, fmt.Sprintf("CSI %s %c", parameters, final))
	}
}

func (s *fakeScreen) erase(from int) {
	if s.row < len(s.cells) {
		s.cells[s.row] = s.cells[s.row][:min(from, len(s.cells[s.row]))]
	}
}
