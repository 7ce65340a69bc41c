package wire

import (
	"io"
	"net"
	"sync"
)

// Body is the body of a request in pieces, some of which are shared with
// other requests. It drops each piece once it has been read, and all pieces when
// it is closed. A body with 30 tools has 20 KB, and thousands of requests may
// wait for minutes.
type Body struct {
	mu     sync.Mutex  // a transport may close a body while it reads it
	pieces net.Buffers // guarded by mu
}

// NewBody returns a body of pieces, which it does not modify.
func NewBody(pieces ...[]byte) *Body { return &Body{pieces: pieces} }

// size returns the number of unread bytes.
func (b *Body) size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n int64
	for _, piece := range b.pieces {
		n += int64(len(piece))
	}
	return n
}

func (b *Body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.pieces.Read(p)
	if err == io.EOF {
		b.pieces = nil
	}
	return n, err
}

// Close makes all further reads return [io.EOF].
func (b *Body) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pieces = nil
	return nil
}
