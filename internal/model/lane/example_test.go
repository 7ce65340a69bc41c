package lane_test

import (
	"fmt"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
)

// A hundred conversations of two turns share ten slots. Each request takes a
// second, so there are twenty rounds of ten requests.
func ExampleForesee() {
	lanes := []lane.Config{{Name: "a", Limits: lane.Limits{Concurrency: 10}}}
	f := lane.Foresee(lanes, lane.Work{Conversations: 100, Turns: 2, Latency: time.Second})
	fmt.Println(f.Requests, "requests in", f.Wall, "because of the", f.Bottleneck, "of", f.Lane)
	// Output:
	// 200 requests in 20s because of the concurrency of a
}
