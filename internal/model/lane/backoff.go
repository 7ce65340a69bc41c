package lane

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/assay-eval/assay"
)

// doubled returns a wait that doubles n times, up to the longest, for any n.
func doubled(first, longest time.Duration, n int) time.Duration {
	for ; n > 0 && first < longest; n-- {
		first *= 2
	}
	return min(first, longest)
}

// backOff waits between two requests of a turn, of which tries have failed.
func backOff(ctx context.Context, tries int, waits *assay.Waits) error {
	// The first wait is short because most faults are single ones. A lane that is really down
	// pauses anyway, and its turns then wait for it.
	const base, longest = 100 * time.Millisecond, 20 * time.Second
	start := time.Now()
	timer := time.NewTimer(rand.N(doubled(base, longest, tries)))
	defer timer.Stop()
	defer func() { waits.Queued += time.Since(start) }()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &assay.Fault{
			Kind: assay.Interrupted, Detail: "stopped while backing off", Err: context.Cause(ctx),
		}
	}
}
