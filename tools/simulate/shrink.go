package main

import (
	"fmt"
	"os"
	"slices"
)

// shortest leaves out items of a world as long as it still breaks a law, also if that takes a few
// tries, because the scheduler is free.
func shortest(r *result) *result {
	items := len(drawItems(r.Seed))
	dropped := make(map[int]bool)
	fails := func() *result {
		for range 3 {
			if again := alone(r.Seed, dropped); len(again.Wrong) > 0 {
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
	var all []int
	for i := range dropped {
		all = append(all, i)
	}
	slices.Sort(all)
	fmt.Fprintf(os.Stderr, "the same again: --seed %d --one --drop %s\n", r.Seed, joined(all))
	return best
}
