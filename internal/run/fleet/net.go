package fleet

import "context"

// A Hub is the run's end of the network.
type Hub interface {
	// Offer puts an assignment into the queue, from which one worker takes it, or several.
	Offer(ctx context.Context, assignment string) error
	// Serve answers the calls of workers, each in its own goroutine, until stop is called.
	Serve(answer func(ctx context.Context, call string, body []byte) []byte) (stop func(), err error)
	Close() error
}

// A Link is a worker's end of the network. It finds the run again after the network was down.
type Link interface {
	// Call makes a call and returns the answer. It fails when ctx ends, or earlier if there is no
	// answer.
	Call(ctx context.Context, call string, body []byte) ([]byte, error)
	// Take takes up to n assignments from the queue. It waits until there is one, but returns
	// before long in any case.
	Take(ctx context.Context, n int) ([]Delivery, error)
}

// A Delivery is an assignment from the queue.
type Delivery interface {
	Assignment() string
	// Done takes the assignment out of the queue. Otherwise it is delivered again after a while.
	Done() error
}
