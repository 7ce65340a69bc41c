package mcp

import (
	"fmt"
	"io"
	"sync/atomic"
)

// meter counts the output of a server, and ends a stream that is too long.
type meter struct{ n atomic.Int64 }

var (
	errFlood   = fmt.Errorf("it sent more than %d MB", maxOutput/megabyte)
	errTooLong = fmt.Errorf("it sent a message of more than %d MB", maxMessage/megabyte)
)

func (m *meter) flooded() bool { return m.n.Load() > maxOutput }

// reader returns r until the limit is reached.
func (m *meter) reader(r io.ReadCloser) io.ReadCloser { return &metered{r, m} }

type metered struct {
	io.ReadCloser
	meter *meter
}

func (r *metered) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.meter.n.Add(int64(n))
	if r.meter.flooded() {
		return 0, errFlood
	}
	return n, err
}
