package store

import (
	"context"
	"math"
	"runtime"
	"sync"
)

// inBlocks reads the rows up to the row ID last in several goroutines, in blocks of a number of
// IDs. It passes the results of read to take in the order of the rows, until take returns false
// or an error. Because IDs may have gaps of any size, a block begins at the row that seek finds.
// read has to return when its context ends. Readers are a few blocks ahead of take at most.
func inBlocks[T any](
	ctx context.Context, last, rows int64,
	seek func(ctx context.Context, from int64) (first int64, found bool),
	read func(ctx context.Context, first, last int64) T, take func(T) (bool, error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	type job struct {
		first, last int64
		done        chan T
	}
	readers := min(runtime.GOMAXPROCS(0), 4)
	todo, due := make(chan job, readers), make(chan job, readers)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range readers {
		all.Go(func() {
			for j := range todo {
				j.done <- read(ctx, j.first, j.last)
			}
		})
	}
	all.Go(func() {
		defer close(todo)
		defer close(due)
		for from := int64(math.MinInt64); ; {
			first, found := seek(ctx, from)
			if !found || first > last || first < from {
				return
			}
			j := job{first, last, make(chan T, 1)}
			if end := first + rows - 1; end >= first && end < last { // the sum may overflow
				j.last = end
			}
			for _, queue := range []chan job{due, todo} {
				select {
				case queue <- j:
				case <-ctx.Done():
					return
				}
			}
			if j.last == last {
				return
			}
			from = j.last + 1
		}
	})
	for j := range due {
		select {
		case block := <-j.done:
			if more, err := take(block); err != nil || !more {
				return err
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return context.Cause(ctx)
}
