//go:build !linux && !darwin && !freebsd

package main

// A keyboard does not exist here, so a run reads no keys.
type keyboard struct{}

func newKeyboard(int) *keyboard { return nil }

func (*keyboard) read() byte { return 0 }
func (*keyboard) restore()   {}
func (*keyboard) interrupt() {}
