package store

import (
	"context"
	"runtime"
	"sync"
)

// A rowBlock is a range of row IDs and the attempts in it.
type rowBlock[T any] struct {
	first, last int64
	rows        []T
	err         error // why SQLite did not return the attempts after the last row
}

// inBlocks reads the attempts from one row ID to another in several goroutines, in blocks of a
// number of IDs. It passes the blocks to take in the order of the rows, until take returns false or
// an error. Because IDs may have gaps of any size, a block begins at an existing row. read has to
// return when its context ends. Readers are a few blocks ahead of take at most.
func inBlocks[T any](
	ctx context.Context, db *DB, from, last, rows int64,
	read func(ctx context.Context, first, last int64) ([]T, error),
	take func(rowBlock[T]) (bool, error),
) error {
	ctx, cancel := context.WithCancel(ctx)
	type job struct {
		first, last int64
		done        chan rowBlock[T]
	}
	readers := min(runtime.GOMAXPROCS(0), 4)
	todo, due := make(chan job, readers), make(chan job, readers)
	var all sync.WaitGroup
	defer all.Wait()
	defer cancel()
	for range readers {
		all.Go(func() {
			for j := range todo {
				rows, err := read(ctx, j.first, j.last)
				j.done <- rowBlock[T]{j.first, j.last, rows, err}
			}
		})
	}
	all.Go(func() {
		defer close(todo)
		defer close(due)
		for {
			first, found := db.seek(ctx, from)
			if !found || first > last || first < from {
				return
			}
			j := job{first, last, make(chan rowBlock[T], 1)}
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
