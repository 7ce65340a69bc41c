package world

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
)

// Luck is all the chance of one call. It is a function of the trial's seed,
// the tool, and how often that tool was called before, and of nothing else:
// not of the order of other calls, the model, the clock or the scheduler.
type Luck struct {
	// Success is uniform in [0,1); the call works when it is below its chance.
	Success float64
	picks   [3]uint64
}

// Draw returns the luck of the k-th call, counted from 0, of a tool in the
// trial with that seed: the first 32 bytes of SHA-256 over a fixed text, read
// as four big-endian words.
func Draw(seed uint64, tool string, k int) Luck {
	sum := sha256.Sum256(fmt.Appendf(nil, "assay luck 1\x00%d\x00%s\x00%d", seed, tool, k))
	var l Luck
	l.Success = float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
	for i := range l.picks {
		l.picks[i] = binary.BigEndian.Uint64(sum[8*(i+1):])
	}
	return l
}

// pick returns a number in [0,n) from the i-th spare word. The bias is n/2^64.
func (l Luck) pick(i, n int) int { return int(l.picks[i] % uint64(n)) }
