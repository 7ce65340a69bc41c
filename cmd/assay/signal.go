package main

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// grace is how long work may take to end after a signal. A parser or a read from a pipe does not
// know contexts.
const grace = time.Second

// forward passes signals on. It calls abort if a signal is not taken, because then the program does
// something that does not wait for signals, such as reading a file.
func forward(received <-chan os.Signal, taken chan<- os.Signal, abort func()) {
	for s := range received {
		select {
		case taken <- s:
		case <-time.After(grace):
			abort()
		}
	}
}

// untilInterrupted does work with a context that ends at the first signal. If the work does not end
// soon after it, or at the second signal, the program ends, because work may hang where a context
// does not reach, such as in a write to a pipe without a reader.
func untilInterrupted(ctx context.Context, p *process, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	interrupted := &codedError{exitInterrupted, errors.New("interrupted\n" +
		"hint: run the same command again; stored results are not computed twice")}
	done := make(chan struct{})
	var listener sync.WaitGroup
	listener.Go(func() {
		select {
		case <-p.signals:
			cancel(interrupted)
		case <-done:
			return
		}
		select {
		case <-p.signals:
		case <-time.After(grace):
		case <-done:
			return
		}
		if p.abort != nil {
			p.abort()
		}
	})
	err := work(ctx)
	close(done)
	listener.Wait()
	defer cancel(nil)
	if err != nil && context.Cause(ctx) == error(interrupted) {
		return interrupted
	}
	return err
}

// interruptible makes a command end at the first signal.
func interruptible(p *process, cmd *cobra.Command) *cobra.Command {
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return untilInterrupted(cmd.Context(), p, func(ctx context.Context) error {
			cmd.SetContext(ctx)
			return run(cmd, args)
		})
	}
	return cmd
}
