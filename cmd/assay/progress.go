package main

import (
	"fmt"
	"strings"
	"sync"
	"time"
)

// A longWork shows on a terminal how much of some long work is done. If standard error is not a
// terminal, it stays silent.
type longWork struct {
	p    *process
	what string

	mu    sync.Mutex
	begun time.Time
	shown time.Time
	width int
}

// showAfter is how long work may take before its progress is shown.
const showAfter = time.Second

func (p *process) progress(what string) *longWork {
	return &longWork{p: p, what: what, begun: time.Now()}
}

// at shows how much is done, five times a second at most. If of is 0, it is unknown.
func (s *longWork) at(done, of int) { s.on(s.what, done, of) }

func (s *longWork) on(what string, done, of int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.p.errTerminal || now.Sub(s.begun) < showAfter || now.Sub(s.shown) < showAfter/5 {
		return
	}
	s.shown = now
	text := fmt.Sprintf("%s: %d of %d", what, done, of)
	if of == 0 {
		text = fmt.Sprintf("%s: %d", what, done)
	}
	fmt.Fprintf(s.p.err, "\r%s%s", text, strings.Repeat(" ", max(0, s.width-len(text))))
	s.width = len(text)
}

// end clears the line.
func (s *longWork) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.width > 0 {
		fmt.Fprintf(s.p.err, "\r%s\r", strings.Repeat(" ", s.width))
	}
}
