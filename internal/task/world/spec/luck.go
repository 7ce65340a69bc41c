package spec

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/assay-eval/assay"
)

// Luck holds all the chance in one call. It depends only on the trial's seed, the tool and how
// often that tool was called before. It does not depend on the order of other calls, the model,
// the clock or the scheduler.
type Luck struct {
	// Success is uniform in [0,1). The call succeeds if it is below the call's chance.
	Success float64
	picks   [3]uint64
}

// Draw returns the luck of the k-th call of a tool, counted from 0, in the trial with a seed. It
// is the first 32 bytes of the SHA-256 of a fixed text, read as four big-endian words.
func Draw(seed uint64, tool string, k int) Luck {
	text := append(make([]byte, 0, 128), "assay luck 1\x00"...)
	text = append(strconv.AppendUint(text, seed, 10), 0)
	text = append(append(text, tool...), 0)
	sum := sha256.Sum256(strconv.AppendInt(text, int64(k), 10))
	var l Luck
	l.Success = float64(binary.BigEndian.Uint64(sum[:8])>>11) / (1 << 53)
	for i := range l.picks {
		l.picks[i] = binary.BigEndian.Uint64(sum[8*(i+1):])
	}
	return l
}

// Fault returns the kind of fault that the call meets unless its luck spares it. It uses the third
// spare word.
func (l Luck) Fault(mix assay.FaultMix) assay.ToolFault {
	return mix.Kind(float64(l.picks[2]>>11) / (1 << 53))
}

// Pick returns a number in [0,n) from the i-th spare word. Its bias is n/2^64.
func (l Luck) Pick(i, n int) int { return int(l.picks[i] % uint64(n)) }
