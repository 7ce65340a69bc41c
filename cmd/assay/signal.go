package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"
)

// untilInterrupted does work with a context that ends at the first signal. The second signal ends
// the program, because work may hang where a context does not reach, such as in a write to a pipe
// without a reader.
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
			if p.abort != nil {
				p.abort()
			}
		case <-done:
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
