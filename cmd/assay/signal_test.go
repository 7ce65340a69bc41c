package main

import (
	"context"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// TestUntilInterrupted checks that a signal cancels the work and replaces its error. Without a
// signal, the error of the work is returned.
func TestUntilInterrupted(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	p := &process{signals: signals}
	broken := errors.New("broken")
	for _, want := range []error{nil, broken} {
		if got := untilInterrupted(t.Context(), p,
			func(context.Context) error { return want }); got != want {
			t.Errorf("error %v, want %v", got, want)
		}
	}
	signals <- syscall.SIGTERM
	err := untilInterrupted(t.Context(), p, func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Minute):
			return errors.New("the signal was not noticed")
		}
	})
	if exitCode(err) != exitInterrupted || !strings.HasPrefix(err.Error(), "interrupted\n") {
		t.Errorf("exit code %d for %v", exitCode(err), err)
	}
	signals <- syscall.SIGTERM
	err = untilInterrupted(t.Context(), p, func(ctx context.Context) error {
		<-ctx.Done()
		return nil // the work ended in time
	})
	if err != nil {
		t.Errorf("finished work has the error %v", err)
	}
}

// TestSignalEndsEveryCommand checks that an interruptible command ends at the first signal with a
// hint.
func TestSignalEndsEveryCommand(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	p := &process{signals: signals}
	begun := make(chan struct{})
	cmd := interruptible(p, &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error {
		close(begun)
		<-cmd.Context().Done()
		return cmd.Context().Err()
	}})
	cmd.SetContext(t.Context())
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{})
	go func() {
		<-begun
		signals <- os.Interrupt
	}()
	err := cmd.ExecuteContext(t.Context())
	if exitCode(err) != exitInterrupted ||
		!strings.Contains(err.Error(), "run the same command again") {
		t.Errorf("error %v, exit code %d", err, exitCode(err))
	}
}

// TestSecondSignalEndsTheProgram checks that work that ignores its context cannot hang the
// program.
func TestSecondSignalEndsTheProgram(t *testing.T) {
	t.Parallel()
	signals, ended := make(chan os.Signal, 2), make(chan struct{})
	p := &process{signals: signals, abort: func() { close(ended) }}
	err := untilInterrupted(t.Context(), p, func(ctx context.Context) error {
		signals <- os.Interrupt
		<-ctx.Done()
		signals <- os.Interrupt
		<-ended
		return ctx.Err()
	})
	if exitCode(err) != exitInterrupted {
		t.Errorf("error %v", err)
	}
}
