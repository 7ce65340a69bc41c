package workflow

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
)

// chooser makes random choices that depend only on its text and on the options. A choice does not
// depend on earlier ones.
type chooser string

// roll returns the number for the i-th choice of a purpose.
func (d chooser) roll(purpose string, i int) uint64 {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", d, purpose, i))
	return binary.BigEndian.Uint64(sum[:8])
}

// pick returns a number in [0,n).
func (d chooser) pick(purpose string, i, n int) int { return int(d.roll(purpose, i) % uint64(n)) }

// shuffle returns the numbers in random order.
func (d chooser) shuffle(purpose string, of []int) []int {
	rolls := make(map[int]uint64, len(of))
	for _, i := range of {
		rolls[i] = d.roll(purpose, i)
	}
	byRoll := func(a, b int) int { return cmp.Compare(rolls[a], rolls[b]) }
	return slices.SortedFunc(slices.Values(of), byRoll)
}

// numbers returns the numbers in [from,to).
func numbers(from, to int) []int {
	var list []int
	for i := from; i < to; i++ {
		list = append(list, i)
	}
	return list
}
