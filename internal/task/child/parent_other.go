//go:build !linux

package child

import "os/exec"

// killStrays is a no-op, because only Linux shows which processes a program has started.
func killStrays(string, int) {}

func launch(cmd *exec.Cmd) error { return cmd.Start() }

func forget(*exec.Cmd) {}

// Descends returns false, because only Linux knows.
func Descends(int) bool { return false }
