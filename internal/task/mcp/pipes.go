package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/assay-eval/assay/internal/task/child"
)

// pipes are the standard streams of a server that is a process. They pass on what is a message, and
// remember why they broke: the client closes them then, and the process ends without a fault of its
// own.
type pipes struct {
	process *child.Process
	decoder *json.Decoder
	lines   []byte // messages that have been read and not been passed on, one a line

	mu  sync.Mutex
	why error // the first reason; nil as long as both streams work
}

func newPipes(p *child.Process, m *meter) *pipes {
	return &pipes{process: p, decoder: json.NewDecoder(m.reader(p.Stdout))}
}

// broken returns why the streams broke, or nil.
func (p *pipes) broken() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

// breaks records a reason unless there is one, and returns the one that counts.
func (p *pipes) breaks(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.why == nil {
		p.why = err
	}
	return p.why
}

// gone records that the server has closed a stream. Its end may become known a little later.
func (p *pipes) gone(stream string) error {
	const late = 500 * time.Millisecond
	select {
	case <-p.process.Ended():
		return p.breaks(errors.New("it ended: " + p.process.State()))
	case <-time.After(late):
		return p.breaks(fmt.Errorf("it closed its standard %s", stream))
	}
}

// Read implements [io.Reader]. It belongs to one goroutine.
func (p *pipes) Read(b []byte) (int, error) {
	if len(p.lines) == 0 {
		if err := p.next(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.lines)
	p.lines = p.lines[n:]
	return n, nil
}

// next reads a message, or the messages of a batch.
func (p *pipes) next() error {
	var raw json.RawMessage
	err := p.decoder.Decode(&raw)
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		rest, _ := io.ReadAll(p.decoder.Buffered()) // a buffer does not fail
		return p.breaks(notMessage(rest, err))
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return p.gone("output")
	case errors.Is(err, errFlood):
		return p.breaks(err)
	case err != nil: // the client has closed the stream
		return err
	case len(raw) > maxMessage:
		return p.breaks(errTooLong)
	}
	batch := []json.RawMessage{raw}
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &batch); err != nil {
			return p.breaks(notMessage(raw, err))
		}
	}
	for _, message := range batch {
		if _, err := jsonrpc.DecodeMessage(message); err != nil {
			return p.breaks(notMessage(raw, err))
		}
		p.lines = append(append(p.lines, message...), '\n')
	}
	if len(batch) == 0 {
		return p.breaks(notMessage(raw, errors.New("it is empty")))
	}
	return nil
}

// notMessage returns the error of a text on the standard output. It does not wrap the reason, which
// may have the type of a server's answer.
func notMessage(text []byte, reason error) error {
	line, _, _ := bytes.Cut(bytes.TrimSpace(text), []byte("\n"))
	return fmt.Errorf("it wrote a line to its standard output that is not a message: %q (%v)",
		head(line), reason)
}

// Close implements [io.Closer]. It closes the standard output.
func (p *pipes) Close() error { return p.process.Stdout.Close() }

// input is the standard input of a server.
type input struct{ *pipes }

// Write implements [io.Writer].
func (p input) Write(b []byte) (int, error) {
	n, err := p.process.Stdin.Write(b)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		err = p.gone("input")
	}
	return n, err
}

// Close implements [io.Closer]. It closes the standard input.
func (p input) Close() error { return p.process.Stdin.Close() }
