//go:build !(linux && amd64)

package main

// clockCanJump is false where this program does not know how to replace [time.Now].
const clockCanJump = false

func replaceClock() {}
