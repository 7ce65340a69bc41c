package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// shortest leaves out items of a world as long as it still breaks a law, also if that takes a few
// tries, because the scheduler is free.
func shortest(ctx context.Context, r *result) *result {
	items := len(drawItems(r.Seed, false))
	dropped := make(map[int]bool)
	fails := func() *result {
		for range 3 {
			if again := alone(ctx, task{Seed: r.Seed, Drop: slices.Sorted(maps.Keys(dropped))}); len(again.Wrong) > 0 {
				return again
			}
		}
		return nil
	}
	best := fails()
	if best == nil {
		r.Wrong = append(r.Wrong, "the same world did not break a law in three more tries: use --times")
		return r
	}
	for size := max(1, items/2); ; size /= 2 {
		for n := 0; n < items; n += size {
			var now []int
			for i := n; i < min(n+size, items); i++ {
				if !dropped[i] {
					now = append(now, i)
					dropped[i] = true
				}
			}
			if len(now) == 0 {
				continue
			}
			if shorter := fails(); shorter != nil {
				best = shorter
				continue
			}
			for _, i := range now {
				delete(dropped, i)
			}
		}
		if size == 1 {
			break
		}
	}
	all := strings.Trim(strings.ReplaceAll(fmt.Sprint(slices.Sorted(maps.Keys(dropped))), " ", ","), "[]")
	fmt.Fprintf(os.Stderr, "the same again: --seed %d --one --drop %s\n", r.Seed, all)
	return best
}
