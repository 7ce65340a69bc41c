package workflow

import "math/bits"

// A set holds numbers below [maxTools].
type set uint64

const maxTools = 64

// only is the set of one number, empty for a negative one.
func only(i int) set {
	if i < 0 {
		return 0
	}
	return 1 << i
}

func (s set) has(i int) bool { return s&only(i) != 0 }

func (s set) len() int { return bits.OnesCount64(uint64(s)) }

// all yields the numbers in order.
func (s set) all(yield func(int) bool) {
	for ; s != 0; s &= s - 1 {
		if !yield(bits.TrailingZeros64(uint64(s))) {
			return
		}
	}
}
