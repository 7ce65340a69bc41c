package store

import (
	"context"
	"runtime"
	"sync"
)

// inBlocks reads the row IDs from 1 to last in blocks of some rows, by several
// goroutines, and hands what read returns to take in the order of the rows, until
// take returns false or an error. read has to end when its context does. Readers are
// ahead of take by a few blocks, whatever take does.
func inBlocks[T any](ctx context.Context, last, rows int64, read func(ctx context.Context, first, last int64) T, take func(T) (bool, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	type job struct {
		first int64
		done  chan T
	}
	readers := min(runtime.GOMAXPROCS(0), 4)
	todo, due := make(chan job, readers), make(chan job, readers)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range readers {
		all.Go(func() {
			for j := range todo {
				j.done <- read(ctx, j.first, min(j.first+rows-1, last))
			}
		})
	}
	all.Go(func() {
		defer close(todo)
		defer close(due)
		for first := int64(1); first <= last; first += rows {
			j := job{first, make(chan T, 1)}
			for _, queue := range []chan job{due, todo} {
				select {
				case queue <- j:
				case <-ctx.Done():
					return
				}
			}
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
