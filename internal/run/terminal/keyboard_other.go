//go:build !linux && !darwin && !freebsd

package terminal

// A Keyboard does not exist here, so a run reads no keys.
type Keyboard struct{}

// NewKeyboard returns nil.
func NewKeyboard(int) *Keyboard { return nil }

// Read returns 0.
func (*Keyboard) Read() byte { return 0 }

// Restore is a no-op.
func (*Keyboard) Restore() {}

// Interrupt is a no-op.
func (*Keyboard) Interrupt() {}
