package lane

import (
	"context"

	"github.com/assay-eval/assay"
)

type (
	progressContextKey struct{}
	spentContextKey    struct{}
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

// OnSpent returns a context for [Pool.Chat], which calls spent with what each request has used and
// cost, when it has ended. If spent returns a fault, a request that failed is not tried again, and
// the turn ends in that fault. spent must not block.
func OnSpent(
	ctx context.Context, spent func(*assay.Response) *assay.Fault,
) context.Context {
	return context.WithValue(ctx, spentContextKey{}, spent)
}

// spentOf returns the function of [OnSpent], or one without effect.
func spentOf(ctx context.Context) func(*assay.Response) *assay.Fault {
	if spent, ok := ctx.Value(spentContextKey{}).(func(*assay.Response) *assay.Fault); ok {
		return spent
	}
	return func(*assay.Response) *assay.Fault { return nil }
}
