package lane

import (
	"context"

	"github.com/assay-eval/assay"
)

type (
	progressContextKey struct{}
	purseContextKey    struct{}
)

// OnProgress returns a context for [Pool.Chat], which calls tell with false when a request begins
// to wait for a lane and with true when it is sent. A request that is tried again does both again.
// tell must not block.
func OnProgress(ctx context.Context, tell func(sent bool)) context.Context {
	return context.WithValue(ctx, progressContextKey{}, tell)
}

// progressOf returns the function of [OnProgress], or one without effect.
func progressOf(ctx context.Context) func(sent bool) {
	if tell, ok := ctx.Value(progressContextKey{}).(func(bool)); ok {
		return tell
	}
	return func(bool) {}
}

// A Purse pays for the requests of a turn. Its methods must not block, nor call a [Pool].
type Purse interface {
	// Allow is asked before each request, also while it waits for a lane. If it returns a fault, the
	// request is not sent, and the turn ends in that fault.
	Allow() *assay.Fault
	// Spend counts what a request has used and cost, when it has ended.
	Spend(*assay.Response)
}

// PaidBy returns a context for [Pool.Chat], whose requests a purse pays for.
func PaidBy(ctx context.Context, p Purse) context.Context {
	return context.WithValue(ctx, purseContextKey{}, p)
}

// purseOf returns the purse of [PaidBy], or nil.
func purseOf(ctx context.Context) Purse {
	p, _ := ctx.Value(purseContextKey{}).(Purse)
	return p
}
