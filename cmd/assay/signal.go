package main

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"
)

// untilInterrupted carries work out with a context that ends with the first
// signal. The second ends the program, for work can hang in what knows no context,
// such as a pipe that nobody reads.
func untilInterrupted(ctx context.Context, p *process, work func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	interrupted := &codedError{exitInterrupted, errors.New("interrupted\nhint: run the same command again; what is stored is not done twice")}
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

// interruptible makes a command that knows nothing of signals end with the first.
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
