package policy

import "math/bits"

// A Set holds numbers below [maxTools].
type Set uint64

const maxTools = 64

// Only returns the set that holds one number. It is empty for a negative number.
func Only(i int) Set {
	if i < 0 {
		return 0
	}
	return 1 << i
}

// Has reports whether the set holds a number.
func (s Set) Has(i int) bool { return s&Only(i) != 0 }

// Len returns how many numbers the set holds.
func (s Set) Len() int { return bits.OnesCount64(uint64(s)) }

// All yields the numbers in ascending order.
func (s Set) All(yield func(int) bool) {
	for ; s != 0; s &= s - 1 {
		if !yield(bits.TrailingZeros64(uint64(s))) {
			return
		}
	}
}
