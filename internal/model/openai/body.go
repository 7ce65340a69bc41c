package openai

import (
	"io"
	"net"
	"sync"
)

// A requestBody is the body of a request, in pieces of which some are shared
// with other requests. It lets go of every piece that is read and of all when
// it is closed: a body with 30 tools is 20 KB, and thousands of requests wait
// for minutes.
type requestBody struct {
	mu     sync.Mutex  // a transport may close a body while it reads it
	pieces net.Buffers // guarded by mu
}

func newRequestBody(pieces ...[]byte) *requestBody { return &requestBody{pieces: pieces} }

// size is how many bytes are left to read.
func (b *requestBody) size() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	var n int64
	for _, piece := range b.pieces {
		n += int64(len(piece))
	}
	return n
}

func (b *requestBody) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, err := b.pieces.Read(p)
	if err == io.EOF {
		b.pieces = nil
	}
	return n, err
}

// Close makes all further reads return [io.EOF].
func (b *requestBody) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.pieces = nil
	return nil
}
