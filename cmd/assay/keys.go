package main

import (
	"context"
	"io"
	"math"
	"os"

	"github.com/assay-eval/assay"
	"github.com/assay-eval/assay/internal/model/lane"
	"github.com/assay-eval/assay/internal/run/session"
	"github.com/assay-eval/assay/internal/run/terminal"
)

// Help texts about keys, for the last line of the live view.
const (
	shortHelp = "keys: ?"
	longHelp  = "keys: p pause or resume, + and - limits by a tenth, q stop like Ctrl-C, ? hide"
)

// openKeyboard returns nil unless the input is a terminal that this process may read from.
func openKeyboard(in io.Reader) *terminal.Keyboard {
	f, ok := in.(*os.File)
	if !ok || !isTerminal(f) {
		return nil
	}
	return terminal.NewKeyboard(int(f.Fd()))
}

// listen carries out the orders of the keys until ctx ends. Changes are the orders of `assay ctl`,
// so they are logged in the store.
func listen(
	ctx context.Context, k *terminal.Keyboard, store string, view *terminal.Terminal, run session.Live,
) {
	help := false
	for ctx.Err() == nil {
		var err error
		switch k.Read() {
		case 'p', 'P':
			err = pauseOrResume(ctx, store, !run.Progress().PausedSince.IsZero())
		case '+', '=':
			err = scaleLimits(ctx, store, 1.1)
		case '-', '_':
			err = scaleLimits(ctx, store, 0.9)
		case 'q', 'Q':
			k.Interrupt()
		case '?', 'h':
			help = !help
			view.Footer(map[bool]string{true: longHelp, false: shortHelp}[help])
		}
		if err != nil && ctx.Err() == nil {
			run.Note(err.Error())
		}
	}
}

func pauseOrResume(ctx context.Context, store string, paused bool) error {
	o := session.Order{Do: "pause"}
	if paused {
		o.Do = "resume"
	}
	_, err := session.Send(ctx, store, o)
	return err
}

// scaleLimits multiplies the limits in force on each lane, stated or learned.
func scaleLimits(ctx context.Context, store string, factor float64) error {
	r, err := session.Send(ctx, store, session.Order{Do: "status"})
	if err != nil {
		return err
	}
	done := make(map[string]bool)
	for _, m := range r.Run.Models {
		for _, l := range m.Lanes {
			if done[l.Lane] {
				continue
			}
			done[l.Lane] = true
			o := session.Order{Do: "set", Names: []string{l.Lane}, Limits: scaled(l, factor)}
			if _, err := session.Send(ctx, store, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// scaled returns the limits of a lane times a factor, changed by one at least.
func scaled(l terminal.LaneState, factor float64) map[assay.Bucket]int {
	limits := make(map[assay.Bucket]int)
	for _, b := range lane.Buckets {
		n := *l.Limits.Of(b)
		if n == 0 || b == assay.RequestsPerDay || b == assay.Burst {
			continue
		}
		next := int(math.Round(float64(n) * factor))
		if next == n {
			next += int(math.Copysign(1, factor-1))
		}
		limits[b] = max(1, next)
	}
	return limits
}
