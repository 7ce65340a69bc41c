package lane_test

import (
	"fmt"
	"time"

	"github.com/assay-eval/assay/internal/model/lane"
)

// A hundred conversations of two turns share ten slots. Each request takes a
// second, so there are twenty rounds of ten requests.
func ExampleSimulate() {
	lanes := []lane.Config{{Name: "a", Limits: lane.Limits{Concurrency: 10}}}
	s := lane.Simulate(lanes, lane.Work{Conversations: 100, Turns: 2, Latency: time.Second})
	fmt.Println(s.Requests, "requests in", s.Wall)
	fmt.Printf("%.0f %% of the slots used\n", 100*s.Ledgers[0].Occupancy())
	// Output:
	// 200 requests in 20s
	// 100 % of the slots used
}
