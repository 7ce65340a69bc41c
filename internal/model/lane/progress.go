package lane

import "context"

type progressContextKey struct{}

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
