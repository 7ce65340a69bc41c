package workflow

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// dice makes choices that are functions of its text and of what is chosen, and
// of nothing else: not of the choices before.
type dice string

// roll returns a number that belongs to a purpose and to the i-th of its
// choices.
func (d dice) roll(purpose string, i int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", d, purpose, i))
	return binary.BigEndian.Uint64(sum[:8])
}

// pick returns a number below n.
func (d dice) pick(purpose string, i, n int) int { return int(d.roll(purpose, i) % uint64(n)) }

// shuffle returns numbers in an order of its own.
func (d dice) shuffle(purpose string, of []int) []int {
	rolls := make(map[int]uint64, len(of))
	for _, i := range of {
		rolls[i] = d.roll(purpose, i)
	}
	return slices.SortedFunc(slices.Values(of), func(a, b int) int { return cmp.Compare(rolls[a], rolls[b]) })
}

// numbers returns those from one up to, and without, another.
func numbers(from, to int) []int {
	var list []int
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}
